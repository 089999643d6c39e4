//! Who is calling, as the configuration finds it: a header's digest, or a claim of the bearer token taken at its word.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use callbox_config::IdentitySource;
use callbox_wire::json::string_text;
use callbox_wire::mcp::each_member;
use callbox_wire::redact::Redactor;

use super::bounded::Key;
use super::head;
use super::rules::{MAX_NAME, clipped};
use crate::tap::HeaderText;

/// Longest token whose claims are read.
const MAX_TOKEN: usize = 16 << 10;

/// Who sent one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Identity {
    /// Keyed digest of the credential or claim.
    pub(super) principal: Option<Key>,
    pub(super) tenant: Option<Box<str>>,
    /// One of them is a claim that nobody verified.
    pub(super) asserted: bool,
}

impl Identity {
    pub(super) fn of(
        headers: &HeaderText,
        authorization: Option<&[u8]>,
        principal: &IdentitySource,
        tenant: Option<&IdentitySource>,
        redactor: &Redactor,
    ) -> Self {
        let mut identity = Self::default();
        let credential = match principal {
            IdentitySource::Header(name) if name.eq_ignore_ascii_case("authorization") => {
                authorization.filter(|value| !value.is_empty())
            }
            IdentitySource::Header(_) => head::source(headers, principal),
            // Without the claim it is the credential that tells clients apart.
            IdentitySource::Claim(_) => authorization.filter(|value| !value.is_empty()),
        };
        let claimed = match principal {
            IdentitySource::Claim(name) => claim(authorization, name),
            IdentitySource::Header(_) => None,
        };
        identity.principal = match &claimed {
            Some(claimed) => Some(redactor.digest("claim", claimed.as_bytes())),
            None => credential.map(|value| redactor.digest("principal", value)),
        };
        identity.asserted = claimed.is_some();
        if let Some(source) = tenant {
            let name = match source {
                IdentitySource::Header(_) => {
                    head::source(headers, source).map(|value| head::readable(value).into_owned())
                }
                IdentitySource::Claim(name) => {
                    let claimed = claim(authorization, name);
                    identity.asserted |= claimed.is_some();
                    claimed
                }
            };
            identity.tenant = name.map(|name| clipped(&redactor.text(&name), MAX_NAME).into());
        }
        identity
    }
}

/// How a principal is shown.
pub(super) fn shown(principal: &Key) -> String {
    let mut text = String::with_capacity(2 + 32);
    text.push_str("h:");
    for byte in principal {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).unwrap_or_default());
        }
    }
    text
}

/// The digest behind what is shown.
pub(super) fn hidden(principal: &str) -> Option<Key> {
    let digits = principal.strip_prefix("h:")?;
    let mut key = Key::default();
    for (at, byte) in key.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(key)
}

/// A claim of a bearer token: strings by text, anything else as spelled.
fn claim(authorization: Option<&[u8]>, name: &str) -> Option<String> {
    let value = std::str::from_utf8(authorization?).ok()?;
    let (scheme, token) = value.split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("bearer") || token.len() > MAX_TOKEN {
        return None;
    }
    let payload = token.trim().split('.').nth(1)?;
    let payload = URL_SAFE_NO_PAD.decode(payload.trim_end_matches('=')).ok()?;
    let mut found = None;
    each_member(std::str::from_utf8(&payload).ok()?, |member, value| {
        if member == name && value.get() != "null" {
            let text = string_text(value.get()).map(std::borrow::Cow::into_owned);
            found = Some(text.unwrap_or_else(|| value.get().to_owned()));
        }
    });
    found.filter(|claim| !claim.is_empty())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use callbox_wire::redact::Rules;

    use super::*;

    fn of(headers: &str, principal: &IdentitySource, tenant: Option<&IdentitySource>) -> Identity {
        let redactor = Redactor::new(Rules::default(), &[1; 32]).unwrap();
        let text = HeaderText(headers.as_bytes().to_vec());
        let authorization = head::value(&text, "authorization");
        Identity::of(&text, authorization, principal, tenant, &redactor)
    }

    fn token(claims: &str) -> String {
        format!(
            "authorization: bEaReR eyJhbGciOiJub25lIn0.{}.x\nx-tenant: acme\n",
            URL_SAFE_NO_PAD.encode(claims)
        )
    }

    #[test]
    fn a_header_is_told_by_its_digest_only() {
        let source = IdentitySource::Header("authorization".to_owned());
        let one = of("authorization: Bearer a\n", &source, None);
        assert_eq!(one, of("Authorization: Bearer a\n", &source, None));
        assert_ne!(one, of("authorization: Bearer b\n", &source, None));
        assert!(!one.asserted);
        assert_eq!(of("x: 1\n", &source, None).principal, None);
        let digest = one.principal.unwrap();
        assert_eq!(hidden(&shown(&digest)), Some(digest));
        assert_eq!(hidden("h:zz"), None);
    }

    #[test]
    fn a_claim_outlives_its_token_and_is_marked() {
        let source = IdentitySource::Claim("sub".to_owned());
        let tenant = IdentitySource::Header("x-tenant".to_owned());
        let one = of(&token(r#"{"sub":"u1","iat":1}"#), &source, Some(&tenant));
        let two = of(&token(r#"{"sub":"u1","iat":2}"#), &source, Some(&tenant));
        assert_eq!(one, two);
        assert!(one.asserted);
        assert_eq!(one.tenant.as_deref(), Some("acme"));
    }

    #[test]
    fn without_the_claim_the_credential_counts() {
        let source = IdentitySource::Claim("sub".to_owned());
        let one = of(&token(r#"{"x":1}"#), &source, None);
        assert!(one.principal.is_some() && !one.asserted);
        assert_ne!(one, of("authorization: Bearer opaque\n", &source, None));
        assert_eq!(of("", &source, None), Identity::default());
    }
}
