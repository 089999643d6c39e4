//! `[identity]`.

use http::HeaderName;

use super::{Cx, one_of};
use crate::raw;
use crate::settings::{Identity, IdentitySource};
use crate::write::shown;

pub(super) fn resolve(cx: &mut Cx<'_>, raw: &raw::Identity) -> Identity {
    for (at, name) in raw.conversation.iter().enumerate() {
        if name.trim().is_empty() {
            let problem = cx
                .problem(&format!("identity.conversation[{at}]"), "an empty name")
                .allowed("the name of a baggage member or `_meta` key, such as \"session.id\"");
            cx.findings.push(problem);
        }
    }
    let principal = source(cx, "identity.principal", &raw.principal);
    Identity {
        principal: principal.unwrap_or_else(|| IdentitySource::Header("authorization".to_owned())),
        tenant: raw
            .tenant
            .as_ref()
            .and_then(|raw| source(cx, "identity.tenant", raw)),
        conversation: raw.conversation.clone(),
    }
}

fn source(cx: &mut Cx<'_>, key: &str, raw: &raw::IdentitySource) -> Option<IdentitySource> {
    let choices = [
        ("header", raw.header.as_ref()),
        ("claim", raw.claim.as_ref()),
    ];
    match one_of(cx, key, choices)? {
        (0, name) => {
            let parsed = HeaderName::from_bytes(name.as_bytes());
            if parsed.is_err() {
                let problem = cx
                    .problem(&format!("{key}.header"), "not a header name")
                    .found(shown(name))
                    .allowed("a header name such as \"x-tenant\"");
                cx.findings.push(problem);
            }
            Some(IdentitySource::Header(parsed.ok()?.as_str().to_owned()))
        }
        (_, name) => {
            if name.is_empty() {
                let problem = cx
                    .problem(&format!("{key}.claim"), "an empty name")
                    .allowed("the name of a claim such as \"sub\"");
                cx.findings.push(problem);
            }
            Some(IdentitySource::Claim(name.clone()))
        }
    }
}
