//! `[log]`: callbox's own log lines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::order::keys;

/// callbox's own log, written to standard error. Calls are not in it; they are in the call log.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Log {
    /// Least severe level that is written: `off`, `error`, `warn`, `info`, `debug` or `trace`. Single parts can differ:
    /// `info,callbox_proxy=debug`.
    #[schemars(extend("x-flag" = "--log-level"))]
    pub(crate) level: String,
    /// Form of the lines.
    #[schemars(extend("x-restart" = true, "x-flag" = "--log-format"))]
    pub(crate) format: LogFormat,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Human,
        }
    }
}

#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    /// Text for people.
    Human,
    /// One JSON object a line.
    Json,
}
