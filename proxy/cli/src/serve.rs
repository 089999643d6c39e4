//! Where `up` and `proxy` hand over to the server. Nothing about arguments here, and nothing about serving elsewhere in
//! this crate.

use std::path::Path;

use callbox_config::{Loaded, Sources};

use crate::exit::Exit;

/// Runs the proxy on these settings until it is told to stop. `sources` are for reading the settings again on SIGHUP.
pub(crate) fn up(
    sources: &Sources,
    loaded: &Loaded,
    ready_file: Option<&Path>,
) -> anyhow::Result<Exit> {
    let _ = (sources, loaded, ready_file);
    anyhow::bail!("this build has no proxy yet")
}
