//! `[admin]`: the listener for operators.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::PathText;
use super::order::keys;

/// The listener for operators and monitoring: `/metrics`, `/livez`, `/readyz`. Never reachable through `[listen]`.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Admin {
    /// IP address and port to bind, without a host name. Port 0 takes a free port. Tool names and client names are among
    /// the metrics: outside loopback, set a token.
    #[schemars(extend("x-form" = "address", "x-restart" = true, "x-flag" = "--admin"))]
    pub(crate) address: String,
    /// Bearer token that `/metrics` and `/readyz` ask for; `/livez` stays open. Without this key nothing is asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-restart" = true), example = SecretSource::example())]
    pub(crate) token: Option<SecretSource>,
}

impl Default for Admin {
    fn default() -> Self {
        Self {
            address: "127.0.0.1:9464".to_owned(),
            token: None,
        }
    }
}

/// Where a secret is kept; never the secret itself.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>(), "x-secret" = true, "minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct SecretSource {
    /// Name of the environment variable that holds the secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"ADMIN_TOKEN")]
    pub(crate) env: Option<String>,
    /// File that holds the secret; white space around it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"/run/secrets/admin-token")]
    pub(crate) file: Option<PathText>,
}

impl SecretSource {
    fn example() -> Self {
        Self {
            env: None,
            file: Some("/run/secrets/admin-token".into()),
        }
    }
}
