//! Whatever stands in a file or a variable: no panic, and never more than a message.

use std::sync::LazyLock;

use callbox_config::{Env, Settings, Sources, documented_defaults, parse};
use proptest::prelude::*;

static GOOD: LazyLock<String> = LazyLock::new(documented_defaults);

/// Pieces that make a text look like a configuration.
fn piece() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("[listen]\n".to_owned()),
        Just("[[upstream]]\n".to_owned()),
        Just("[record.redact]\n".to_owned()),
        Just("[identity]\n".to_owned()),
        "(address|url|name|keys|detectors|pointers|principal|match|tls|workers|max_age|queue_bytes|level) = ",
        "\"[ -~]{0,20}\"\n",
        "-?[0-9]{1,25}(\\.[0-9]{1,4})?\n",
        "\"[0-9]{1,22} ?([KMGTP]?i?B|[smhdw]|ms|mo)\"\n",
        "\"(http|https|ws)://[a-z0-9.:@\\[\\]/?#]{0,20}\"\n",
        "\\{ (header|claim|env|file|tool|pointer|host|path_prefix|server_name) = \"[^\"\\\\]{0,10}\" \\}\n",
        "\\[(\"[a-z/~*]{0,6}\", ?){0,3}\\]\n",
        "[\\[\\]{}\"'=.,#\\\\\n\t ]{1,6}",
        any::<String>(),
    ]
}

proptest! {
    /// No text of a file makes us panic, and a text that is refused has a reason.
    #[test]
    fn any_text_is_read_or_refused(pieces in prop::collection::vec(piece(), 0..12)) {
        if let Err(error) = parse(&pieces.concat()) {
            prop_assert!(!error.problems().is_empty());
            prop_assert!(!error.to_string().is_empty());
        }
    }

    /// A good file with a few bytes changed: the problems stand in lines that the file has.
    #[test]
    fn a_damaged_file_is_read_or_refused(at in any::<prop::sample::Index>(), put in any::<char>(), cut in 0..40_usize) {
        let good = &*GOOD;
        let mut chars: Vec<_> = good.chars().collect();
        let at = at.index(chars.len());
        let end = (at + cut).min(chars.len());
        chars.splice(at..end, [put]);
        let text: String = chars.into_iter().collect();
        if let Err(error) = parse(&text) {
            for problem in error.problems() {
                if let callbox_config::Origin::File { line, .. } = &problem.origin {
                    prop_assert!(*line <= text.lines().count() + 1, "{}", problem);
                }
            }
        }
    }

    /// No variable makes us panic. What serde refuses, we have refused before.
    #[test]
    fn any_variable_is_read_or_refused(
        name in "(LISTEN|RECORD|ADMIN|UPSTREAM|IDENTITY|LOG|DATA|X)(__(ADDRESS|TOKEN|KEYS|TLS|REDACT|H2C|WORKERS|LEVEL|TENANT)){0,3}",
        value in piece(),
    ) {
        let env = Env::from_iter([(format!("CALLBOX__{name}"), value.replace('\0', ""))]);
        let sources = Sources { env, ..Sources::default() };
        if let Err(error) = Settings::for_queries(&sources) {
            for problem in error.problems() {
                prop_assert!(problem.origin != callbox_config::Origin::Default, "{}", problem);
            }
        }
    }
}
