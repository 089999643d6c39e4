//! The configuration as written: one type a section, text where the file has text. The doc comments are what operators
//! read: reference, schema and the documented default file are made from them. Interprets nothing; that is `resolve`.

mod admin;
mod identity;
mod listen;
mod log;
mod order;
mod record;
mod text;
mod upstream;

pub(crate) use admin::{Admin, SecretSource};
pub(crate) use identity::{Identity, IdentitySource};
pub(crate) use listen::{ClientCertificate, HalfClose, Listen, ServerTls, Stamp};
pub(crate) use log::{Log, LogFormat};
pub(crate) use record::{Detector, Durability, Payloads, Record, Redact, RedactPointer};
pub(crate) use text::{DurationText, PathText, SizeText};
pub(crate) use upstream::{ClientTls, HostHeader, Protocol, Upstream};

use order::keys;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Settings of callbox, the recording proxy in front of MCP servers.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Config {
    /// Directory of the call log. It is created when missing, and only its owner can read what is in it. Use a local
    /// disk: the log's write-ahead file does not work on network file systems.
    #[schemars(extend("x-restart" = true, "x-flag" = "--data"))]
    pub(crate) data: PathText,
    pub(crate) listen: Listen,
    /// The MCP servers behind callbox, one `[[upstream]]` each. A single one gets every request. Of several, at most one
    /// may come without `match`: it gets what no other matches. Where several match, one with a host comes before one
    /// without, then the longest path prefix wins; the order in the file does not matter. `--upstream` replaces the
    /// whole list, and so does `CALLBOX__UPSTREAM` (a TOML array of tables).
    #[schemars(extend("x-flag" = "--upstream"))]
    pub(crate) upstream: Vec<Upstream>,
    pub(crate) record: Record,
    pub(crate) identity: Identity,
    pub(crate) admin: Admin,
    pub(crate) log: Log,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data: "callbox-data".into(),
            listen: Listen::default(),
            upstream: Vec::new(),
            record: Record::default(),
            identity: Identity::default(),
            admin: Admin::default(),
            log: Log::default(),
        }
    }
}
