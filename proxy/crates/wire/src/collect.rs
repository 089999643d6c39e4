//! One message's text, bounded, with the facts that survive truncation.
//!
//! A message up to the cap is kept as it is and costs one copy. Of a longer one the first bytes are kept, and the whole
//! is counted, hashed and scanned for what identifies it, wherever that stands (an `id` may come after 100 MB of result).

mod outline;

use std::fmt;

use sha2::{Digest, Sha256};

pub use self::outline::Outline;
use self::outline::Scanner;

/// Gathers one message at a time; reusable.
#[derive(Debug)]
pub struct Collector {
    cap: usize,
    text: Vec<u8>,
    bytes: u64,
    rest: Option<Box<Rest>>,
    /// `cap`, or less for the message at hand.
    limit: usize,
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

/// Follows a message beyond the cap.
#[derive(Default)]
struct Rest {
    hash: Sha256,
    scanner: Scanner,
}

impl Rest {
    fn push(&mut self, bytes: &[u8]) {
        self.hash.update(bytes);
        self.scanner.push(bytes);
    }
}

impl fmt::Debug for Rest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rest")
            .field("scanner", &self.scanner)
            .finish_non_exhaustive()
    }
}

impl Collector {
    /// A collector that keeps at most `cap` bytes of a message.
    pub fn new(cap: usize) -> Self {
        Self {
            cap,
            limit: cap,
            text: Vec::new(),
            bytes: 0,
            rest: None,
        }
    }

    /// Takes the message's next bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        if let Some(rest) = &mut self.rest {
            rest.push(bytes);
            return;
        }
        let room = self.limit.saturating_sub(self.text.len());
        let (kept, over) = bytes.split_at(bytes.len().min(room));
        self.keep(kept);
        if !over.is_empty() {
            let rest = self.rest.insert(Box::default());
            rest.push(&self.text);
            rest.push(over);
        }
    }

    /// Keeps no more of the message at hand than it has; the rest is only counted, hashed and scanned.
    pub fn keep_no_more(&mut self) {
        self.limit = self.text.len();
    }

    /// Bytes of the message at hand that are kept in memory.
    pub fn held(&self) -> usize {
        self.text.len()
    }

    /// Ends the message and starts over.
    pub fn finish(&mut self) -> Collected {
        self.limit = self.cap;
        Collected {
            text: std::mem::take(&mut self.text),
            bytes: std::mem::take(&mut self.bytes),
            overflow: self.rest.take().map(|mut rest| Overflow {
                sha256: rest.hash.finalize_reset().into(),
                outline: rest.scanner.finish(),
            }),
        }
    }

    /// Bytes of the message at hand so far.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    fn keep(&mut self, bytes: &[u8]) {
        let length = self.text.len() + bytes.len();
        if length > self.text.capacity() {
            // Doubling, as a vector does by itself, but never beyond the cap.
            let capacity = length.max(self.text.capacity() * 2).min(self.cap);
            self.text.reserve_exact(capacity - self.text.len());
        }
        self.text.extend_from_slice(bytes);
    }
}
