//! Which revision one exchange speaks: the decision table of the protocol notes, in its order.
//!
//! Decided per exchange, never per connection or upstream: a server may serve both eras on one path at the same time.

use super::method::Method;

/// First revision without sessions.
pub const FIRST_MODERN: &str = "2026-07-28";
/// What servers assume when a request says nothing.
pub const ASSUMED: &str = "2025-03-26";
/// The revision of the two-endpoint transport.
pub const TWO_ENDPOINTS: &str = "2024-11-05";

/// Handshake and sessions, or stateless.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// With `initialize`.
    Legacy,
    /// Stateless.
    Modern,
}

/// What an exchange shows of its revision.
#[derive(Clone, Copy, Debug, Default)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "four independent facts about one exchange"
)]
pub struct Evidence<'a> {
    /// `_meta["io.modelcontextprotocol/protocolVersion"]` of the request.
    pub body: Option<&'a str>,
    /// Method of the request.
    pub method: Option<Method>,
    /// There is an `Mcp-Method` header.
    pub method_header: bool,
    /// `params.protocolVersion` of `initialize`.
    pub requested: Option<&'a str>,
    /// `MCP-Protocol-Version` header.
    pub header: Option<&'a str>,
    /// The body is an array.
    pub batch: bool,
    /// The session is known, and this was negotiated in it.
    pub session: Option<&'a str>,
    /// The request names a session that is not known.
    pub unknown_session: bool,
    /// The request went to an announced endpoint, or is the stream that announces one.
    pub endpoint: bool,
}

/// What follows from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Revision<'a> {
    /// Version, when one is named or can be told.
    pub version: Option<&'a str>,
    /// Its era.
    pub era: Era,
    /// Nothing told: servers take it for this, and so does the record.
    pub assumed: bool,
}

/// Whether a version is stateless. Versions are dates; later ones are taken to be like the last known.
pub fn is_modern(version: &str) -> bool {
    let date = version.len() == FIRST_MODERN.len()
        && version.bytes().enumerate().all(|(at, byte)| match at {
            4 | 7 => byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    date && version >= FIRST_MODERN
}

/// The decision table.
pub fn detect<'a>(evidence: &Evidence<'a>) -> Revision<'a> {
    let modern = |version| Revision {
        version,
        era: Era::Modern,
        assumed: false,
    };
    let legacy = |version| Revision {
        version: Some(version),
        era: Era::Legacy,
        assumed: false,
    };
    if evidence.body.is_some() {
        return modern(evidence.body);
    }
    let initialize = evidence.method == Some(Method::Initialize);
    if evidence.method.is_some_and(Method::is_modern_only)
        || (evidence.method_header && !initialize)
    {
        return modern(evidence.header);
    }
    if initialize {
        return Revision {
            version: evidence.requested,
            era: Era::Legacy,
            assumed: false,
        };
    }
    match evidence.header {
        Some(version) if is_modern(version) => return modern(Some(version)),
        Some(version) => return legacy(version),
        None => {}
    }
    // The array comes before the session: servers accept one even where the session's version has none.
    if evidence.batch {
        return legacy(ASSUMED);
    }
    if let Some(version) = evidence.session {
        return legacy(version);
    }
    if evidence.unknown_session {
        return legacy(ASSUMED);
    }
    if evidence.endpoint {
        return legacy(TWO_ENDPOINTS);
    }
    Revision {
        version: Some(ASSUMED),
        era: Era::Legacy,
        assumed: true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(evidence: Evidence<'_>) -> (Option<&str>, Era, bool) {
        let revision = detect(&evidence);
        (revision.version, revision.era, revision.assumed)
    }

    #[test]
    fn first_hit_wins() {
        let none = Evidence::default();
        // 1
        assert_eq!(
            table(Evidence {
                body: Some("2027-01-01"),
                header: Some("2025-11-25"),
                ..none
            }),
            (Some("2027-01-01"), Era::Modern, false)
        );
        // 2
        for method in [Method::Discover, Method::Listen] {
            let method = Some(method);
            assert_eq!(
                table(Evidence { method, ..none }),
                (None, Era::Modern, false)
            );
        }
        assert_eq!(
            table(Evidence {
                method: Some(Method::ToolsCall),
                method_header: true,
                ..none
            }),
            (None, Era::Modern, false)
        );
        // 3
        assert_eq!(
            table(Evidence {
                method: Some(Method::Initialize),
                requested: Some("2025-06-18"),
                ..none
            }),
            (Some("2025-06-18"), Era::Legacy, false)
        );
        // 4
        assert_eq!(
            table(Evidence {
                header: Some("2025-11-25"),
                session: Some("2025-06-18"),
                ..none
            }),
            (Some("2025-11-25"), Era::Legacy, false)
        );
        // 5
        assert_eq!(
            table(Evidence {
                header: Some("2026-07-28"),
                ..none
            }),
            (Some("2026-07-28"), Era::Modern, false)
        );
        // 6
        assert_eq!(
            table(Evidence {
                batch: true,
                session: Some("2025-11-25"),
                ..none
            }),
            (Some("2025-03-26"), Era::Legacy, false)
        );
        // 7
        assert_eq!(
            table(Evidence {
                session: Some("2025-06-18"),
                ..none
            }),
            (Some("2025-06-18"), Era::Legacy, false)
        );
        // 8
        assert_eq!(
            table(Evidence {
                unknown_session: true,
                ..none
            }),
            (Some("2025-03-26"), Era::Legacy, false)
        );
        // 9
        assert_eq!(
            table(Evidence {
                endpoint: true,
                ..none
            }),
            (Some("2024-11-05"), Era::Legacy, false)
        );
        // 11
        assert_eq!(table(none), (Some("2025-03-26"), Era::Legacy, true));
    }

    #[test]
    fn versions_are_dates() {
        assert!(is_modern("2026-07-28"));
        assert!(is_modern("2031-01-01"));
        assert!(!is_modern("2025-11-25"));
        assert!(!is_modern("9.9"));
        assert!(!is_modern("2026/07/28"));
    }
}
