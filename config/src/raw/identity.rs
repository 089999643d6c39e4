//! `[identity]`: who is calling.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::order::keys;

/// Who is calling, and which calls belong together. callbox verifies no credential; that is the server's work.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>()))]
pub(crate) struct Identity {
    /// What tells callers apart. Only a keyed hash of the value is stored.
    pub(crate) principal: IdentitySource,
    /// Which customer or team a call belongs to. The value is stored as it is. Without this key calls have no tenant.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = IdentitySource::example())]
    pub(crate) tenant: Option<IdentitySource>,
    /// Members of W3C baggage, or keys of `_meta`, that name the conversation a call belongs to; the first one found
    /// counts.
    pub(crate) conversation: Vec<String>,
}

impl Default for Identity {
    fn default() -> Self {
        Self {
            principal: IdentitySource {
                header: Some("authorization".to_owned()),
                claim: None,
            },
            tenant: None,
            conversation: ["gen_ai.conversation.id", "session.id"]
                .map(str::to_owned)
                .to_vec(),
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
#[schemars(extend("x-order" = keys::<Self>(), "minProperties" = 1, "maxProperties" = 1))]
pub(crate) struct IdentitySource {
    /// Name of a request header; its value counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"x-tenant")]
    pub(crate) header: Option<String>,
    /// Name of a claim in the bearer token (JWT). The token's signature is not verified; records mark the value as
    /// asserted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(example = &"org_id")]
    pub(crate) claim: Option<String>,
}

impl IdentitySource {
    fn example() -> Self {
        Self {
            header: Some("x-tenant".to_owned()),
            claim: None,
        }
    }
}
