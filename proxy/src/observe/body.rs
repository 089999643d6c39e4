//! One body's copy on its way to messages: decoding, events or one text, and the memory it may take.

use std::borrow::Cow;

use bytes::Bytes;
use callbox_wire::coding::ContentDecoder;
use callbox_wire::collect::{Collected, Collector, Overflow};
use callbox_wire::sse::{Decoder, SseEvent};

/// Decoded output that its input cannot explain, per allowed message byte; see `ContentDecoder::for_header`.
const BOMB_FACTOR: u64 = 64;

/// What a body is by its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// JSON.
    Json,
    /// Server-sent events.
    Events,
    /// Something else, or nothing that says: read as text, for the words of an HTTP error.
    Other,
}

impl Content {
    /// By the value of `Content-Type`.
    pub(super) fn of(content_type: Option<&[u8]>) -> Self {
        let Some(value) = content_type else {
            return Self::Other;
        };
        let media = value.split(|byte| *byte == b';').next().unwrap_or_default();
        let media = media.trim_ascii();
        let ends = |tail: &[u8]| {
            media.len() >= tail.len()
                && media
                    .get(media.len() - tail.len()..)
                    .is_some_and(|end| end.eq_ignore_ascii_case(tail))
        };
        if media.eq_ignore_ascii_case(b"text/event-stream") {
            Self::Events
        } else if ends(b"/json") || ends(b"+json") {
            Self::Json
        } else {
            Self::Other
        }
    }
}

/// Bytes that all bodies under way hold together, and their limit.
#[derive(Debug)]
pub(super) struct Budget {
    used: usize,
    limit: usize,
}

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self { used: 0, limit }
    }

    pub(super) fn set_limit(&mut self, limit: usize) {
        self.limit = limit;
    }

    #[cfg(test)]
    pub(super) fn used(&self) -> usize {
        self.used
    }

    fn settle(&mut self, held: &mut usize, now: usize) {
        self.used = (self.used + now).saturating_sub(*held);
        *held = now;
    }

    fn spent(&self) -> bool {
        self.used > self.limit
    }
}

/// A whole text, or the beginning of one and what is known of the rest.
#[derive(Debug, Default)]
pub(super) enum Text {
    #[default]
    None,
    /// One frame as the tap gave it.
    Frame(Bytes),
    Collected(Collected),
}

impl Text {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::None => &[],
            Self::Frame(bytes) => bytes,
            Self::Collected(collected) => &collected.text,
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::None => 0,
            Self::Frame(bytes) => bytes.len() as u64,
            Self::Collected(collected) => collected.bytes,
        }
    }

    pub(super) fn is_blank(&self) -> bool {
        self.overflow().is_none() && self.bytes().trim_ascii().is_empty()
    }

    pub(super) fn overflow(&self) -> Option<&Overflow> {
        match self {
            Self::Collected(collected) => collected.overflow.as_ref(),
            _ => None,
        }
    }
}

/// One direction of an exchange.
#[derive(Debug)]
pub(super) struct Body {
    decoder: Option<Box<ContentDecoder>>,
    sink: Sink,
    cap: usize,
    held: usize,
    /// Why nothing more can be read of it.
    pub(super) undecoded: Option<String>,
    /// The tap dropped part of it.
    pub(super) lost: bool,
    /// Bytes as on the wire.
    pub(super) bytes: u64,
}

#[derive(Debug)]
enum Sink {
    Nothing,
    Frame(Bytes),
    Text(Box<Collector>),
    Events(Box<Decoder>),
}

impl Body {
    pub(super) fn new(content: Content, coding: Option<Cow<'_, str>>, cap: usize) -> Self {
        let mut body = Self {
            decoder: None,
            sink: match content {
                Content::Events => Sink::Events(Box::new(Decoder::new(cap))),
                Content::Json | Content::Other => Sink::Nothing,
            },
            cap,
            held: 0,
            undecoded: None,
            lost: false,
            bytes: 0,
        };
        if let Some(coding) = coding {
            match ContentDecoder::for_header(
                Some(&coding),
                (cap as u64).saturating_mul(BOMB_FACTOR),
            ) {
                Ok(decoder) if decoder.is_identity() => {}
                Ok(decoder) => body.decoder = Some(Box::new(decoder)),
                Err(error) => body.undecoded = Some(error.to_string()),
            }
        }
        body
    }

    /// Takes the next frame; whole events go to `events`.
    pub(super) fn push(&mut self, frame: Bytes, budget: &mut Budget, events: &mut Vec<SseEvent>) {
        self.bytes += frame.len() as u64;
        if self.undecoded.is_some() || (self.lost && !matches!(self.sink, Sink::Events(_))) {
            return;
        }
        match &mut self.decoder {
            None => self.sink.take(frame, self.cap, events),
            Some(decoder) => {
                let (sink, cap) = (&mut self.sink, self.cap);
                let decoded = decoder.push(&frame, &mut |bytes| {
                    sink.take(Bytes::copy_from_slice(bytes), cap, events);
                });
                if let Err(error) = decoded {
                    self.undecoded = Some(error.to_string());
                }
            }
        }
        budget.settle(&mut self.held, self.sink.held());
        if budget.spent() {
            self.sink.keep_no_more();
        }
    }

    /// Frames were dropped here.
    pub(super) fn lose(&mut self, budget: &mut Budget) {
        self.lost = true;
        if self.decoder.is_some() {
            self.undecoded
                .get_or_insert_with(|| "frames of it were dropped".to_owned());
        }
        match &mut self.sink {
            // What is begun cannot be finished; the next whole event can be read again.
            Sink::Events(decoder) => drop(decoder.finish()),
            sink => *sink = Sink::Nothing,
        }
        budget.settle(&mut self.held, self.sink.held());
    }

    /// Ends the body: its text, and the bytes of an event that was begun and not finished.
    pub(super) fn finish(
        &mut self,
        whole: bool,
        budget: &mut Budget,
        events: &mut Vec<SseEvent>,
    ) -> (Text, Option<u64>) {
        if let Some(mut decoder) = self.decoder.take()
            && self.undecoded.is_none()
        {
            let (sink, cap) = (&mut self.sink, self.cap);
            let finished = decoder.finish(&mut |bytes| {
                sink.take(Bytes::copy_from_slice(bytes), cap, events);
            });
            // A body that was cut off ends too early in its coding as well, which is not worth another word.
            if let (Err(error), true) = (finished, whole) {
                self.undecoded = Some(error.to_string());
            }
        }
        let (text, begun) = match std::mem::replace(&mut self.sink, Sink::Nothing) {
            Sink::Nothing => (Text::None, None),
            Sink::Frame(frame) => (Text::Frame(frame), None),
            Sink::Text(mut collector) => (Text::Collected(collector.finish()), None),
            Sink::Events(mut decoder) => (Text::None, decoder.finish()),
        };
        budget.settle(&mut self.held, 0);
        (text, begun)
    }
}

impl Sink {
    fn take(&mut self, frame: Bytes, cap: usize, events: &mut Vec<SseEvent>) {
        if frame.is_empty() {
            return;
        }
        let mut collector = match self {
            Self::Events(decoder) => return decoder.push(&frame, &mut |event| events.push(event)),
            Self::Text(collector) => return collector.push(&frame),
            // Nearly all messages are one frame: it is kept as it is.
            Self::Nothing if frame.len() <= cap => {
                *self = Self::Frame(frame);
                return;
            }
            Self::Nothing => Collector::new(cap),
            Self::Frame(first) => {
                let mut collector = Collector::new(cap);
                collector.push(first);
                collector
            }
        };
        collector.push(&frame);
        *self = Self::Text(Box::new(collector));
    }

    fn held(&self) -> usize {
        match self {
            Self::Nothing => 0,
            Self::Frame(frame) => frame.len(),
            Self::Text(collector) => collector.held(),
            Self::Events(decoder) => decoder.held(),
        }
    }

    fn keep_no_more(&mut self) {
        match self {
            Self::Nothing | Self::Frame(_) => {}
            Self::Text(collector) => collector.keep_no_more(),
            Self::Events(decoder) => decoder.keep_no_more(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        body: &mut Body,
        frames: &[&'static [u8]],
        budget: &mut Budget,
    ) -> (Text, Vec<SseEvent>) {
        let mut events = Vec::new();
        for frame in frames {
            body.push(Bytes::from_static(frame), budget, &mut events);
        }
        let (text, _) = body.finish(true, budget, &mut events);
        (text, events)
    }

    #[test]
    fn media_types() {
        for (value, content) in [
            ("application/json; charset=utf-8", Content::Json),
            ("APPLICATION/problem+JSON", Content::Json),
            ("text/event-stream;charset=utf-8", Content::Events),
            ("text/html", Content::Other),
            ("", Content::Other),
        ] {
            assert_eq!(Content::of(Some(value.as_bytes())), content, "{value}");
        }
        assert_eq!(Content::of(None), Content::Other);
    }

    #[test]
    fn one_frame_or_many_make_one_text() {
        let mut budget = Budget::new(1 << 20);
        let mut body = Body::new(Content::Json, None, 100);
        let (text, _) = read(&mut body, &[b"{\"id\"", b":1}"], &mut budget);
        assert_eq!(text.bytes(), b"{\"id\":1}");
        let mut body = Body::new(Content::Json, None, 4);
        let (text, _) = read(&mut body, &[b"{\"id\":1}"], &mut budget);
        assert_eq!((text.bytes(), text.len()), (&b"{\"id"[..], 8));
        assert!(text.overflow().is_some());
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn over_the_budget_no_more_is_kept() {
        let mut budget = Budget::new(10);
        let mut one = Body::new(Content::Json, None, 100);
        let mut events = Vec::new();
        one.push(Bytes::from_static(b"{\"a\":1,"), &mut budget, &mut events);
        one.push(Bytes::from_static(b"\"b\":2,"), &mut budget, &mut events);
        assert_eq!(budget.used(), 13, "over by no more than one frame");
        one.push(Bytes::from_static(b"\"c\":3}"), &mut budget, &mut events);
        assert_eq!(budget.used(), 13);
        let (text, _) = one.finish(true, &mut budget, &mut events);
        assert_eq!((text.bytes().len(), text.len()), (13, 19));
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn after_a_gap_events_are_read_again_and_text_is_not() {
        let mut budget = Budget::new(1 << 20);
        let mut events = Vec::new();
        let mut body = Body::new(Content::Events, None, 100);
        body.push(Bytes::from_static(b"data: {\"a"), &mut budget, &mut events);
        body.lose(&mut budget);
        body.push(
            Bytes::from_static(b"\":1}\n\ndata: 2\n\n"),
            &mut budget,
            &mut events,
        );
        assert_eq!(events.len(), 1);
        let mut body = Body::new(Content::Json, None, 100);
        body.push(Bytes::from_static(b"{\"a"), &mut budget, &mut events);
        body.lose(&mut budget);
        body.push(Bytes::from_static(b"\":1}"), &mut budget, &mut events);
        let (text, _) = body.finish(true, &mut budget, &mut events);
        assert!(text.is_blank());
        assert_eq!(body.bytes, 7);
    }

    #[test]
    fn an_unknown_coding_is_said() {
        let mut budget = Budget::new(1 << 20);
        let mut body = Body::new(Content::Json, Some("sdch".into()), 100);
        let (text, _) = read(&mut body, &[b"xyz"], &mut budget);
        assert!(text.is_blank());
        assert!(body.undecoded.is_some_and(|why| why.contains("sdch")));
        assert_eq!(body.bytes, 3);
    }
}
