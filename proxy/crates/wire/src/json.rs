//! The smallest JSON facts the rest of the crate shares: reading one token.
//!
//! No tree, no values: whole documents are read by `rpc`, documents too long to keep by `collect`.

use std::borrow::Cow;

/// The text of a JSON string token, quotes included in `raw`; none when it is no string, or an escape in it means no
/// character (a lone surrogate).
pub fn string_text(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr2(b'\\', b'"', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<String>(raw).ok().map(Cow::Owned)
}
