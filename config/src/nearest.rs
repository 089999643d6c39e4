//! Spelling help: the known name an unknown one was probably meant to be.

/// The candidate closest to `name`, if it is close enough to be meant.
pub(crate) fn nearest<'a>(
    name: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    // A longer name is no typo; and the distance costs the product of both lengths.
    if name.len() > 64 {
        return None;
    }
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let name = plain(name);
    let scored = candidates.into_iter().map(|candidate| {
        let plain = plain(candidate);
        let typos = strsim::damerau_levenshtein(&name, &plain);
        let contained = name.len() >= 4 && (plain.contains(&name) || name.contains(&plain));
        (if contained { typos.min(1) } else { typos }, candidate)
    });
    let (typos, best) = scored.min_by_key(|(typos, _)| *typos)?;
    (typos <= name.chars().count().div_ceil(3).min(4)).then_some(best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_names_are_meant() {
        let keys = [
            "address",
            "max_connections",
            "tls",
            "tls_timeout",
            "drain_timeout",
        ];
        for (name, meant) in [
            ("adress", Some("address")),
            ("addr", Some("address")),
            ("max-connections", Some("max_connections")),
            ("maxconnections", Some("max_connections")),
            ("drain", Some("drain_timeout")),
            ("colour", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(name, keys), meant, "{name}");
        }
        assert_eq!(nearest(&"address".repeat(20), keys), None);
    }
}
