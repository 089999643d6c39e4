//! Where `up` and `proxy` hand over to the server. Nothing about arguments here, and nothing about serving elsewhere in
//! this crate.

use std::io::Write as _;
use std::path::Path;

use callbox_config::{Loaded, LogFormat, Settings, Sources};
use callbox_proxy::run::{Bound, Ended, Hooks, run};

use crate::exit::Exit;

/// Runs the proxy on these settings until it is told to stop. `sources` are for reading the settings again on SIGHUP.
pub(crate) fn up(
    sources: &Sources,
    loaded: &Loaded,
    ready_file: Option<&Path>,
) -> anyhow::Result<Exit> {
    let Loaded { settings, warnings } = loaded;
    let log =
        callbox_telemetry::logging(&settings.log.level, settings.log.format == LogFormat::Json)?;
    for warning in warnings {
        tracing::warn!("{warning}");
    }
    let hooks = Hooks {
        version: env!("CARGO_PKG_VERSION"),
        reload: &|| {
            callbox_config::load(sources)
                .map(|loaded| loaded.settings)
                .map_err(|error| error.to_string())
        },
        log,
        ready: &|bound| ready(settings, bound, ready_file),
    };
    match run(settings, &hooks)? {
        Ended::Drained => Ok(Exit::Ok),
        Ended::AtOnce => Ok(Exit::Error),
    }
}

/// Says where to connect, to people and to programs.
fn ready(settings: &Settings, bound: Bound, ready_file: Option<&Path>) -> std::io::Result<()> {
    let Bound { listen, admin } = bound;
    let scheme = if settings.listen.tls.is_some() {
        "https"
    } else {
        "http"
    };
    let names: Vec<&str> = settings
        .upstreams
        .iter()
        .map(|upstream| upstream.name.as_str())
        .collect();
    writeln!(
        std::io::stderr().lock(),
        "callbox: point clients at {scheme}://{listen} (to {}); metrics on http://{admin}/metrics; log in {}",
        names.join(", "),
        settings.data.display()
    )?;
    let Some(path) = ready_file else {
        return Ok(());
    };
    let text = serde_json::json!({"listen": listen.to_string(), "admin": admin.to_string(), "pid": std::process::id()});
    // Whole or not at all: whoever waits for the file must not read half of it.
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    std::fs::write(&fresh, format!("{text}\n"))?;
    std::fs::rename(&fresh, path)
}
