//! One message's text, bounded, with the facts that survive truncation.
//!
//! A message up to the cap is kept as it is and costs one copy. Of a longer one the first bytes are kept, and the whole
//! is counted, hashed and scanned for what identifies it, wherever that stands (an `id` may come after 100 MB of result).

use crate::rpc::IdField;

/// Gathers one message at a time; reusable.
#[derive(Debug)]
pub struct Collector {
    cap: usize,
    text: Vec<u8>,
    bytes: u64,
}

/// What was gathered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collected {
    /// The message's first bytes, at most the collector's cap.
    pub text: Vec<u8>,
    /// Length of the whole message.
    pub bytes: u64,
    /// What is known of the rest; set when the message is longer than `text`.
    pub overflow: Option<Overflow>,
}

/// Facts about a message that is kept in part only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// SHA-256 of the whole message.
    pub sha256: [u8; 32],
    /// What its JSON says at the places that matter.
    pub outline: Outline,
}

/// What identifies a JSON-RPC message, read from a text that was never held as a whole.
///
/// The scanner does not validate: of text that is no JSON it reports what it took for members. Names and ids longer than
/// [`Outline::MAX_VALUE_BYTES`] count as absent (an id: as invalid).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The `id` member.
    pub id: IdField,
    /// The `method` member, if a string.
    pub method: Option<String>,
    /// Whether there is a `result`.
    pub has_result: bool,
    /// Whether there is an `error` (`"error": null` next to a result is none).
    pub has_error: bool,
    /// Whether `result.isError` is `true`.
    pub is_error: bool,
    /// `result.resultType`, if a string.
    pub result_type: Option<String>,
    /// `params.name`, if a string.
    pub tool: Option<String>,
    /// The message is an array: a batch, whose members are not outlined.
    pub is_array: bool,
    /// The outermost value was closed and nothing but blanks came after it.
    pub complete: bool,
}

impl Outline {
    /// Longest spelling of an id or a name that is kept.
    pub const MAX_VALUE_BYTES: usize = 4096;
}

impl Default for Outline {
    fn default() -> Self {
        Self {
            id: IdField::Missing,
            method: None,
            has_result: false,
            has_error: false,
            is_error: false,
            result_type: None,
            tool: None,
            is_array: false,
            complete: false,
        }
    }
}

impl Collector {
    /// A collector that keeps at most `cap` bytes of a message.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            text: Vec::new(),
            bytes: 0,
        }
    }

    /// Takes the message's next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        let room = self.cap - self.text.len();
        self.text.extend(bytes.iter().take(room));
    }

    /// Ends the message and starts over.
    pub fn finish(&mut self) -> Collected {
        Collected {
            text: std::mem::take(&mut self.text),
            bytes: std::mem::take(&mut self.bytes),
            overflow: None,
        }
    }
}
