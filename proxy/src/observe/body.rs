//! One body as the observer reads it: decoded, split into messages, bounded. Knows nothing of what the messages mean.

use std::time::Instant;

use callbox_wire::coding::ContentDecoder;
use callbox_wire::collect::{Collected, Collector};
use callbox_wire::sse;

/// Expansion of a compressed copy is stopped here, in multiples of what is kept of one message.
const MAX_EXPANSION: u64 = 64;

/// A message's text with what the event around it said.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) at: Instant,
    pub(super) text: Collected,
    /// `event:` field; none for a whole body.
    pub(super) event: Option<String>,
    /// It had an `id:` field, so the stream can be resumed.
    pub(super) resumable: bool,
    /// It is one of a stream's events.
    pub(super) streamed: bool,
}

enum Form {
    Whole(Collector),
    Events(sse::Decoder),
    /// A length and nothing else.
    Ignored,
}

impl std::fmt::Debug for Form {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Whole(_) => "Whole",
            Self::Events(_) => "Events",
            Self::Ignored => "Ignored",
        })
    }
}

/// A body under way.
#[derive(Debug)]
pub(super) struct Body {
    form: Form,
    decoder: Option<ContentDecoder>,
    /// Bytes as on the wire.
    pub(super) bytes: u64,
    /// Why it cannot be read (any further).
    pub(super) undecoded: Option<String>,
    /// Chunks of it were dropped.
    pub(super) lost: bool,
    /// An event was cut by the end of the stream.
    pub(super) incomplete_event: bool,
}

impl Body {
    pub(super) fn new(content_type: Option<&str>, encoding: Option<&str>, cap: usize) -> Self {
        let media_type = content_type
            .unwrap_or_default()
            .split(';')
            .next()
            .unwrap_or_default()
            .trim();
        let form = if media_type.eq_ignore_ascii_case("text/event-stream") {
            Form::Events(sse::Decoder::new(cap))
        } else {
            Form::Whole(Collector::new(cap))
        };
        let mut body = Self {
            form,
            decoder: None,
            bytes: 0,
            undecoded: None,
            lost: false,
            incomplete_event: false,
        };
        if encoding.is_some() {
            match ContentDecoder::for_header(encoding, (cap as u64).saturating_mul(MAX_EXPANSION)) {
                Ok(decoder) if decoder.is_identity() => {}
                Ok(decoder) => body.decoder = Some(decoder),
                Err(unknown) => body.give_up(unknown.to_string()),
            }
        }
        body
    }

    pub(super) fn is_stream(&self) -> bool {
        matches!(self.form, Form::Events(_))
    }

    fn give_up(&mut self, why: String) {
        self.undecoded = Some(why);
        self.form = Form::Ignored;
        self.decoder = None;
    }

    /// Takes a chunk; complete events go to `pieces`.
    pub(super) fn push(&mut self, at: Instant, chunk: &[u8], pieces: &mut Vec<Piece>) {
        self.bytes += chunk.len() as u64;
        let Self { form, decoder, .. } = self;
        let failed = match decoder {
            None => {
                take(form, at, chunk, pieces);
                None
            }
            Some(decoder) => decoder
                .push(chunk, &mut |plain| take(form, at, plain, pieces))
                .err(),
        };
        if let Some(error) = failed {
            self.give_up(error.to_string());
        }
    }

    /// The body ended; what was collected goes to `pieces`.
    pub(super) fn finish(&mut self, at: Instant, complete: bool, pieces: &mut Vec<Piece>) {
        let Self { form, decoder, .. } = self;
        if let Some(decoder) = decoder
            && complete
            && let Err(error) = decoder.finish(&mut |plain| take(form, at, plain, pieces))
        {
            self.give_up(error.to_string());
        }
        match &mut self.form {
            Form::Whole(collector) => {
                if collector.bytes() > 0 {
                    pieces.push(whole(at, collector.finish()));
                }
            }
            Form::Events(decoder) => self.incomplete_event = decoder.finish().is_some(),
            Form::Ignored => {}
        }
        self.form = Form::Ignored;
    }

    /// A whole body that is a complete JSON text already, before its end was seen: for `before-response`.
    pub(super) fn conclude_early(&mut self, at: Instant) -> Option<Piece> {
        let Form::Whole(collector) = &mut self.form else {
            return None;
        };
        if collector.bytes() == 0 {
            return None;
        }
        let text = collector.finish();
        if text.overflow.is_none()
            && serde_json::from_slice::<serde::de::IgnoredAny>(&text.text).is_ok()
        {
            self.form = Form::Ignored;
            return Some(whole(at, text));
        }
        if text.overflow.is_none() {
            collector.push(&text.text);
        } else {
            // Over the cap: its record is made now; what still comes is only counted.
            self.form = Form::Ignored;
            return Some(whole(at, text));
        }
        None
    }
}

fn whole(at: Instant, text: Collected) -> Piece {
    Piece {
        at,
        text,
        event: None,
        resumable: false,
        streamed: false,
    }
}

fn take(form: &mut Form, at: Instant, plain: &[u8], pieces: &mut Vec<Piece>) {
    match form {
        Form::Whole(collector) => collector.push(plain),
        Form::Events(decoder) => decoder.push(plain, &mut |event| {
            pieces.push(Piece {
                at,
                text: event.data,
                event: event.event,
                resumable: event.id.is_some(),
                streamed: true,
            });
        }),
        Form::Ignored => {}
    }
}
