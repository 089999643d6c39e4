//! Server-sent events, read as the WHATWG standard says, however the bytes are split.
//!
//! What is delivered is what a client of the standard sees, plus events that carry no data but an id or a retry time
//! (MCP's priming events). Comments are counted. Memory is bounded whatever the length of a line.

use memchr::{memchr2, memchr3};

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
    /// Whether there was a data line, even an empty one; without, clients of the standard deliver nothing.
    pub has_data: bool,
}

/// Splits a stream into events; reusable.
#[derive(Debug)]
pub struct Decoder {
    place: Place,
    /// Bytes of the byte order mark seen at the start of the stream; all of them once the start is past.
    mark: usize,
    /// The last byte was CR; an LF that follows is part of the same line end.
    after_cr: bool,
    /// Field name at hand, or the value of a field other than `data`.
    short: Vec<u8>,
    data: Collector,
    block: Block,
    comments: u64,
}

/// What the event at hand has so far, its data aside.
#[derive(Debug, Default)]
struct Block {
    event: Option<String>,
    id: Option<String>,
    retry: Option<u64>,
    has_data: bool,
    /// Length of its lines, line ends and comments aside.
    bytes: u64,
}

/// Where in a line the decoder is.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// At its start or in the field name.
    Name,
    /// After the colon, where one space is skipped.
    Space(Field),
    /// In the value.
    Value(Field),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Data,
    Event,
    Id,
    Retry,
    Comment,
    Unknown,
}

const MARK: &[u8] = b"\xEF\xBB\xBF";

/// One byte more than the longest name, so that longer ones match none.
const MAX_NAME_BYTES: usize = 6;

impl Decoder {
    /// Longest `event` or `id` that is kept; more is cut.
    pub const MAX_FIELD_BYTES: usize = 4096;

    /// A decoder that keeps at most `max_event_bytes` of an event's data.
    pub fn new(max_event_bytes: usize) -> Self {
        Self {
            place: Place::Name,
            mark: 0,
            after_cr: false,
            short: Vec::new(),
            data: Collector::new(max_event_bytes),
            block: Block::default(),
            comments: 0,
        }
    }

    /// Takes the stream's next bytes and hands over every event they complete.
    pub fn push(&mut self, chunk: &[u8], sink: &mut dyn FnMut(SseEvent)) {
        let mut rest = self.skip_mark(chunk);
        while let [first, after @ ..] = rest {
            rest = match self.place {
                Place::Name if std::mem::take(&mut self.after_cr) && *first == b'\n' => after,
                Place::Name => self.name(rest, sink),
                Place::Space(field) => {
                    self.place = Place::Value(field);
                    self.count(field, usize::from(*first == b' '));
                    if *first == b' ' { after } else { rest }
                }
                Place::Value(field) => self.value(field, rest),
            };
        }
    }

    /// Bytes of the event at hand that are kept in memory.
    pub fn held(&self) -> usize {
        self.data.held()
    }

    /// Keeps no more of the event at hand than it has; see [`Collector::keep_no_more`].
    pub fn keep_no_more(&mut self) {
        self.data.keep_no_more();
    }

    /// Comment lines begun so far.
    pub fn comments(&self) -> u64 {
        self.comments
    }

    /// Ends the stream and starts over; the length of an event that was begun and not delivered, if there is one.
    pub fn finish(&mut self) -> Option<u64> {
        let mark = if self.mark < MARK.len() {
            self.mark as u64
        } else {
            0
        };
        let bytes = self.block.bytes + mark;
        let mut short = std::mem::take(&mut self.short);
        short.clear();
        let mut data = std::mem::replace(&mut self.data, Collector::new(0));
        drop(data.finish());
        *self = Self {
            short,
            data,
            ..Self::new(0)
        };
        (bytes > 0).then_some(bytes)
    }

    fn skip_mark<'b>(&mut self, chunk: &'b [u8]) -> &'b [u8] {
        let mut rest = chunk;
        while let (Some(expected), [first, after @ ..]) = (MARK.get(self.mark), rest) {
            if first != expected {
                // Not a mark: these bytes begin a field name.
                let seen = std::mem::replace(&mut self.mark, MARK.len());
                self.keep(MARK.get(..seen).unwrap_or_default(), MAX_NAME_BYTES);
                self.block.bytes += seen as u64;
                break;
            }
            self.mark += 1;
            rest = after;
        }
        rest
    }

    fn name<'b>(&mut self, bytes: &'b [u8], sink: &mut dyn FnMut(SseEvent)) -> &'b [u8] {
        let end = memchr3(b':', b'\n', b'\r', bytes);
        let (name, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.keep(name, MAX_NAME_BYTES);
        self.block.bytes += name.len() as u64;
        let [end, rest @ ..] = rest else { return rest };
        if *end == b':' {
            let field = self.begin();
            self.count(field, 1);
            self.place = Place::Space(field);
        } else if self.short.is_empty() {
            self.after_cr = *end == b'\r';
            self.dispatch(sink);
        } else {
            let field = self.begin();
            self.end_line(field, *end);
        }
        rest
    }

    fn value<'b>(&mut self, field: Field, bytes: &'b [u8]) -> &'b [u8] {
        let end = memchr2(b'\n', b'\r', bytes);
        let (value, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        self.count(field, value.len());
        match field {
            Field::Data => self.data.push(value),
            Field::Event | Field::Id | Field::Retry => self.keep(value, Self::MAX_FIELD_BYTES),
            Field::Comment | Field::Unknown => {}
        }
        let [end, rest @ ..] = rest else { return rest };
        self.end_line(field, *end);
        rest
    }

    /// The field whose name is complete; its value begins.
    fn begin(&mut self) -> Field {
        let field = match self.short.as_slice() {
            b"data" => Field::Data,
            b"event" => Field::Event,
            b"id" => Field::Id,
            b"retry" => Field::Retry,
            b"" => Field::Comment,
            _ => Field::Unknown,
        };
        self.short.clear();
        match field {
            Field::Data => {
                if self.block.has_data {
                    self.data.push(b"\n");
                }
                self.block.has_data = true;
            }
            Field::Comment => self.comments += 1,
            _ => {}
        }
        field
    }

    fn end_line(&mut self, field: Field, end: u8) {
        self.place = Place::Name;
        self.after_cr = end == b'\r';
        let value = String::from_utf8_lossy(&self.short);
        match field {
            Field::Event => {
                self.block.event = Some(value.into_owned()).filter(|event| !event.is_empty());
            }
            Field::Id if !value.contains('\0') => self.block.id = Some(value.into_owned()),
            Field::Retry if value.bytes().all(|byte| byte.is_ascii_digit()) => {
                self.block.retry = value.parse().ok().or(self.block.retry);
            }
            _ => {}
        }
        self.short.clear();
    }

    /// A blank line.
    fn dispatch(&mut self, sink: &mut dyn FnMut(SseEvent)) {
        let Block {
            event,
            id,
            retry,
            has_data,
            ..
        } = std::mem::take(&mut self.block);
        if has_data || id.is_some() || retry.is_some() {
            sink(SseEvent {
                event,
                id,
                retry,
                data: self.data.finish(),
                has_data,
            });
        }
    }

    fn keep(&mut self, bytes: &[u8], limit: usize) {
        let room = limit.saturating_sub(self.short.len());
        self.short
            .extend_from_slice(bytes.get(..room).unwrap_or(bytes));
    }

    fn count(&mut self, field: Field, bytes: usize) {
        if field != Field::Comment {
            self.block.bytes += bytes as u64;
        }
    }
}
