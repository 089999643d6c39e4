//! One pass over the members of one object, values as spelled.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer as _, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::string_text;
use crate::rpc::RequestId;

/// Shows each member of a JSON object, in order. False when `json` is no object (members before a fault were shown).
///
/// Of a repeated member the caller sees all; assigning each time makes the last one count, as for nearly all parsers.
pub fn each_member<'a>(json: &'a str, each: impl FnMut(&str, &'a RawValue)) -> bool {
    serde_json::Deserializer::from_str(json)
        .deserialize_map(Each(each))
        .is_ok()
}

struct Each<F>(F);

impl<'de, F: FnMut(&str, &'de RawValue)> Visitor<'de> for Each<F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<(), A::Error> {
        // Names as raw values: a lone surrogate in one is no reason to lose the others.
        while let Some(name) = map.next_key::<&RawValue>()? {
            let value: &RawValue = map.next_value()?;
            self.0(&text(name).unwrap_or_default(), value);
        }
        Ok(())
    }
}

/// The text of a string value.
pub(super) fn text(value: &RawValue) -> Option<Cow<'_, str>> {
    string_text(value.get())
}

/// An id or a token: number or string.
pub(super) fn id(value: &RawValue) -> Option<RequestId> {
    RequestId::from_raw_json(value.get())
}

/// A value unless it is `null`.
pub(super) fn present(value: &RawValue) -> Option<&RawValue> {
    (value.get() != "null").then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_come_in_order_as_spelled() {
        let mut seen = Vec::new();
        assert!(each_member(
            r#" {"a": 1.0, "\u0062":{"x":[1,2]},"a":1e400,"\ud800":0} "#,
            |name, value| { seen.push(format!("{name}={}", value.get())) }
        ));
        assert_eq!(seen, ["a=1.0", r#"b={"x":[1,2]}"#, "a=1e400", "=0"]);
    }

    #[test]
    fn what_is_no_object_has_no_members() {
        for text in ["[]", "1", "\"{}\"", "", "{"] {
            assert!(!each_member(text, |_, _| {}), "{text}");
        }
    }
}
