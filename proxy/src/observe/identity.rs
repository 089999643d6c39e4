//! Who is calling: principal and tenant, from a header or from a claim of the bearer token.
//!
//! Credentials never leave this file: a principal is a keyed digest. Claims are not verified (the server does that) and
//! are marked asserted.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callbox_config::IdentitySource;
use callbox_wire::redact::Redactor;

use super::head;
use crate::tap::HeaderText;

/// Principal and tenant of one exchange.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Identity {
    pub(super) principal: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) asserted: bool,
}

pub(super) fn of(
    headers: &HeaderText,
    principal: &IdentitySource,
    tenant: Option<&IdentitySource>,
    redactor: &Redactor,
) -> Identity {
    let mut asserted = false;
    let principal = read(headers, principal, &mut asserted).map(|value| {
        let digest = redactor.digest("principal", value.as_bytes());
        let mut shown = String::with_capacity(2 + 16);
        shown.push_str("h:");
        for byte in &digest[..8] {
            shown.push(char::from_digit(u32::from(byte >> 4), 16).unwrap_or('0'));
            shown.push(char::from_digit(u32::from(byte & 15), 16).unwrap_or('0'));
        }
        shown
    });
    let tenant = tenant.and_then(|source| read(headers, source, &mut asserted));
    Identity {
        principal,
        tenant,
        asserted,
    }
}

fn read(headers: &HeaderText, source: &IdentitySource, asserted: &mut bool) -> Option<String> {
    match source {
        IdentitySource::Header(name) => head::value(headers, name)
            .filter(|value| !value.is_empty())
            .map(str::to_owned),
        IdentitySource::Claim(name) => {
            let token = head::value(headers, "authorization")?;
            let token = token.get(7..).filter(|_| {
                token
                    .get(..7)
                    .is_some_and(|s| s.eq_ignore_ascii_case("bearer "))
            })?;
            let payload = token.trim().split('.').nth(1)?;
            let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
            let claims: serde_json::Map<String, serde_json::Value> =
                serde_json::from_slice(&payload).ok()?;
            let value = match claims.get(name)? {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(number) => number.to_string(),
                _ => return None,
            };
            *asserted = true;
            Some(value)
        }
    }
}
