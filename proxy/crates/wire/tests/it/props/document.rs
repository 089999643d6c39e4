//! Random documents that look like JSON-RPC: known names in odd places, spelled in odd ways, also twice.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => select(vec![
            "\"jsonrpc\"", "\"id\"", "\"method\"", "\"params\"", "\"result\"", "\"error\"", "\"name\"", "\"isError\"",
            "\"resultType\"", "\"arguments\"", "\"\"", "\"i\\u0064\"", "\"r\\u0065sult\"", "\"\\u006e\\u0061me\"", "\"ID\"",
            "\"a long name that is longer than any that matters, so that it is not kept\"",
        ]).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
    ]
}

fn leaf() -> impl Strategy<Value = String> {
    prop_oneof![
        9 => select(vec![
            "1", "\"1\"", "0", "-0.0", "1.5e3", "9007199254740993", "true", "false", "null", "\"2.0\"", "\"tools/call\"",
            "\"t\\u006fols\\/call\"", "\"}\\\"{\"", "\"[\\\\\"", "\"\"", "{}", "[]", "{ }", "[ ]", "\"\\ud83d\\ude00 那\"",
        ]).prop_map(str::to_owned),
        1 => any::<String>().prop_map(|text| serde_json::to_string(&text).unwrap()),
        1 => any::<f64>().prop_map(|number| if number.is_finite() { format!("{number:e}") } else { "0".into() }),
    ]
}

fn blank() -> impl Strategy<Value = &'static str> {
    select(vec!["", "", "", " ", "\n", "\t\r "])
}

fn object(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    vec((blank(), name(), blank(), blank(), value, blank()), 0..8).prop_map(|members| {
        let members: Vec<String> = members
            .into_iter()
            .map(|(a, name, b, c, value, d)| format!("{a}{name}{b}:{c}{value}{d}"))
            .collect();
        format!("{{{}}}", members.join(","))
    })
}

fn value() -> impl Strategy<Value = String> {
    leaf().prop_recursive(3, 30, 5, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(|elements| format!("[{}]", elements.join(", "))),
            object(inner),
        ]
    })
}

/// A valid object, more often than not a JSON-RPC message of some kind.
pub(super) fn message() -> impl Strategy<Value = String> {
    (blank(), object(value()), blank()).prop_map(|(a, object, b)| format!("{a}{object}{b}"))
}

/// A valid object, wounded.
pub(super) fn noise() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![
        select(b"{}[]\",:\\ 1tu\xEF\xBB\xBF\0".to_vec()),
        any::<u8>()
    ];
    (
        message(),
        vec((any::<prop::sample::Index>(), byte, any::<bool>()), 0..4),
    )
        .prop_map(|(message, wounds)| {
            let mut text = message.into_bytes();
            for (place, byte, replace) in wounds {
                let place = place.index(text.len());
                if replace {
                    text[place] = byte;
                } else {
                    text.insert(place, byte);
                }
            }
            text
        })
}
