//! Header values: credentials by the header's name, correlation left alone, all else scanned.

use std::borrow::Cow;

use base64::Engine;

use super::Redactor;
use super::bytes::{is_blank, part, run, trimmed};
use super::content::About;
use super::edit::{self, Edit};
use super::placeholder::{self, Kind};

/// Attributes of `Set-Cookie` that are no secret.
const ATTRIBUTES: &str =
    "expires max-age domain path secure httponly samesite partitioned priority";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Scheme, then credential.
    Authorization,
    /// Pairs.
    Cookie,
    SetCookie,
    /// All of it.
    Whole(Kind),
    /// A copy of an argument or a name from the body, maybe in base64.
    Mirror,
    /// Ties exchanges together, or says how to read them.
    Correlation,
    Other,
}

impl Redactor {
    fn header_class(&self, name: &str) -> Class {
        let name = name.to_ascii_lowercase();
        match &*name {
            "authorization" | "proxy-authorization" | "x-forwarded-authorization" => {
                Class::Authorization
            }
            "cookie" => Class::Cookie,
            "set-cookie" => Class::SetCookie,
            "mcp-session-id" => Class::Whole(Kind::Session),
            "x-api-key"
            | "api-key"
            | "apikey"
            | "x-auth-token"
            | "x-access-token"
            | "x-csrf-token"
            | "x-xsrf-token"
            | "x-amz-security-token"
            | "x-goog-api-key"
            | "x-goog-iap-jwt-assertion"
            | "cf-access-jwt-assertion"
            | "cf-access-client-secret"
            | "x-amzn-oidc-data"
            | "x-amzn-oidc-accesstoken"
            | "x-ms-token-aad-access-token"
            | "x-forwarded-access-token"
            | "x-forwarded-client-cert"
            | "ssl-client-cert"
            | "dpop"
            | "private-token"
            | "ocp-apim-subscription-key" => Class::Whole(Kind::Key),
            "x-request-id"
            | "request-id"
            | "x-correlation-id"
            | "correlation-id"
            | "x-trace-id"
            | "traceparent"
            | "tracestate"
            | "b3"
            | "x-cloud-trace-context"
            | "x-amzn-trace-id"
            | "cf-ray"
            | "mcp-protocol-version"
            | "mcp-method"
            | "last-event-id"
            | "date"
            | "etag"
            | "content-length"
            | "content-type" => Class::Correlation,
            "mcp-name" => Class::Mirror,
            _ if name.starts_with("x-b3-") => Class::Correlation,
            _ if self.keys.facts(name.as_bytes()).secret => Class::Whole(Kind::Key),
            // Which argument it copies only the tool's schema tells: a pointer may well name that one.
            _ if name.starts_with("mcp-param-") && !self.pointers.is_empty() => {
                Class::Whole(Kind::Pointer)
            }
            _ if name.starts_with("mcp-param-") => Class::Mirror,
            _ => Class::Other,
        }
    }

    pub(super) fn header_value<'t>(&self, name: &str, value: &'t str) -> Cow<'t, str> {
        let text = value.as_bytes();
        let mut edits = Vec::new();
        match self.header_class(name) {
            Class::Correlation => {}
            Class::Whole(kind) => self.replace_part(text, trimmed(text), kind, &mut edits),
            Class::Authorization => {
                let (start, end) = trimmed(text);
                let scheme = run(part(text, 0, end), start, |byte| {
                    byte.is_ascii_alphanumeric() || byte == b'-'
                });
                let credential = run(part(text, 0, end), scheme, is_blank);
                let start = if credential > scheme && credential < end {
                    credential
                } else {
                    start
                };
                self.replace_part(text, (start, end), Kind::Key, &mut edits);
            }
            class @ (Class::Cookie | Class::SetCookie) => {
                self.cookies(text, class == Class::SetCookie, &mut edits);
            }
            Class::Mirror => match unwrap_base64(value) {
                Some(decoded) => {
                    let mut found = Vec::new();
                    self.content(&decoded, about(), &[], &mut found);
                    if !found.is_empty() {
                        // Written as base64 nothing can be replaced in part.
                        let with = self.mint.placeholder(Kind::Key, &decoded);
                        edits.push(Edit {
                            start: 0,
                            end: text.len(),
                            with,
                        });
                    }
                }
                None => self.content(text, about(), &[], &mut edits),
            },
            Class::Other => self.content(text, about(), &[], &mut edits),
        }
        if edits.is_empty() {
            Cow::Borrowed(value)
        } else {
            Cow::Owned(edit::apply(text, edits))
        }
    }

    fn replace_part(
        &self,
        text: &[u8],
        (start, end): (usize, usize),
        kind: Kind,
        edits: &mut Vec<Edit>,
    ) {
        let found = part(text, start, end);
        if !found.is_empty() && !placeholder::is_whole(found) {
            self.replace(text, start, end, kind, edits);
        }
    }

    /// Cookies keep their names, `Set-Cookie` its attributes, too.
    fn cookies(&self, text: &[u8], set: bool, edits: &mut Vec<Edit>) {
        let mut start = 0;
        let mut first = true;
        while start < text.len() {
            let end = run(text, start, |byte| byte != b';');
            let (from, to) = trimmed(part(text, start, end));
            let (from, to) = (start + from, start + to);
            let equals = run(part(text, 0, to), from, |byte| byte != b'=');
            let name = part(text, from, equals).to_ascii_lowercase();
            let attribute =
                set && !first && { ATTRIBUTES.split(' ').any(|one| one.as_bytes() == name) };
            if !attribute {
                let value = if equals < to { equals + 1 } else { from };
                self.replace_part(text, (value, to), Kind::Key, edits);
            }
            first = false;
            start = end + 1;
        }
    }
}

fn about() -> About {
    About {
        names: true,
        ..About::default()
    }
}

/// What the sentinel form of MCP's mirrored headers wraps.
fn unwrap_base64(value: &str) -> Option<Vec<u8>> {
    let inner = value.trim().strip_prefix("=?base64?")?.strip_suffix("?=")?;
    base64::engine::general_purpose::STANDARD.decode(inner).ok()
}
