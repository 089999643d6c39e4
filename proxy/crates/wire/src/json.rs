//! The few JSON facts the rest of the crate shares: the members of one object, the text of one string.
//!
//! No tree, no values: a member is a slice of the text. Repeated members, lone surrogates, numbers of any size and depth of
//! any kind are all fine here, since peers accept them; the grammar itself is `serde_json`'s.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Hands over name and value of each member of the object that `text` is, in order. The values are skipped with a stack
/// on the heap, so a million brackets are only long.
///
/// # Errors
///
/// When `text` is no object. What came before the fault was handed over.
pub fn each_member<'a>(
    text: &'a str,
    sink: &mut dyn FnMut(&str, &'a RawValue),
) -> Result<(), serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Members(sink))?;
    deserializer.end()
}

struct Members<'s, 'a>(&'s mut dyn FnMut(&str, &'a RawValue));

impl<'de> Visitor<'de> for Members<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        // Names as raw values, too: a lone surrogate in one is odd, but no reason to lose the object.
        while let Some(name) = map.next_key::<&RawValue>()? {
            let value = map.next_value()?;
            (self.0)(&string_text(name.get()).unwrap_or_default(), value);
        }
        Ok(())
    }
}

/// The text of a JSON string token, quotes included in `raw`; none when it is no string, or an escape in it means no
/// character (a lone surrogate).
pub fn string_text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr2(b'\\', b'"', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}
