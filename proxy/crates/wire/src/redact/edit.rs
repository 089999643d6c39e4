//! Byte splices: a list of replaced spans, carried from decoded text to the text it was written as.
//!
//! Nothing is re-encoded. What no edit covers stays as it was spelled.

use std::borrow::Cow;

use super::bytes::{at, part, rest};

/// One span to replace.
#[derive(Debug)]
pub(super) struct Edit {
    pub(super) start: usize,
    pub(super) end: usize,
    pub(super) with: String,
}

/// How a piece of text is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spelling {
    /// Between the quotes of a JSON string.
    Json,
    /// Percent-encoded.
    Percent,
    /// Percent-encoded, `+` for a blank.
    Form,
}

/// A stretch of written text and what it means.
enum Unit<'t> {
    Plain(&'t [u8]),
    Escape {
        bytes: [u8; 4],
        decoded: usize,
        written: usize,
    },
}

impl Unit<'_> {
    fn one(byte: u8, written: usize) -> Self {
        Self::Escape {
            bytes: [byte, 0, 0, 0],
            decoded: 1,
            written,
        }
    }

    fn character(c: char, written: usize) -> Self {
        let mut bytes = [0; 4];
        let decoded = c.encode_utf8(&mut bytes).len();
        Self::Escape {
            bytes,
            decoded,
            written,
        }
    }
}

struct Units<'t> {
    text: &'t [u8],
    pos: usize,
    spelling: Spelling,
}

impl<'t> Units<'t> {
    fn new(text: &'t [u8], spelling: Spelling) -> Self {
        Self {
            text,
            pos: 0,
            spelling,
        }
    }

    /// The escape at the position; none when it is no escape but a stray `\` or `%`.
    fn escape(&self) -> Option<Unit<'t>> {
        let (text, i) = (self.text, self.pos);
        match at(text, i) {
            b'+' => Some(Unit::one(b' ', 1)),
            b'%' => {
                let high = char::from(at(text, i + 1)).to_digit(16)?;
                let low = char::from(at(text, i + 2)).to_digit(16)?;
                Some(Unit::one(u8::try_from(high * 16 + low).ok()?, 3))
            }
            _ => match at(text, i + 1) {
                b'b' => Some(Unit::one(8, 2)),
                b'f' => Some(Unit::one(12, 2)),
                b'n' => Some(Unit::one(b'\n', 2)),
                b'r' => Some(Unit::one(b'\r', 2)),
                b't' => Some(Unit::one(b'\t', 2)),
                b'u' => {
                    let first = hex4(text, i + 2)?;
                    // A lone surrogate means no character; the replacement character stands in for it.
                    if (0xD800..0xDC00).contains(&first) && part(text, i + 6, i + 8) == b"\\u" {
                        let second = hex4(text, i + 8).unwrap_or(0);
                        if (0xDC00..0xE000).contains(&second) {
                            let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                            return Some(Unit::character(char::from_u32(code)?, 12));
                        }
                    }
                    Some(Unit::character(
                        char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER),
                        6,
                    ))
                }
                byte @ (b'"' | b'\\' | b'/') => Some(Unit::one(byte, 2)),
                _ => None,
            },
        }
    }
}

impl<'t> Iterator for Units<'t> {
    type Item = Unit<'t>;

    fn next(&mut self) -> Option<Unit<'t>> {
        let tail = rest(self.text, self.pos);
        let next = match self.spelling {
            Spelling::Json => memchr::memchr(b'\\', tail),
            Spelling::Percent => memchr::memchr(b'%', tail),
            Spelling::Form => memchr::memchr2(b'%', b'+', tail),
        };
        let plain = match next {
            None if tail.is_empty() => return None,
            None => tail,
            Some(0) => {
                if let Some(unit) = self.escape() {
                    if let Unit::Escape { written, .. } = unit {
                        self.pos += written;
                    }
                    return Some(unit);
                }
                part(tail, 0, 1)
            }
            Some(n) => part(tail, 0, n),
        };
        self.pos += plain.len();
        Some(Unit::Plain(plain))
    }
}

/// Four hex digits from `i`.
pub(super) fn hex4(text: &[u8], i: usize) -> Option<u32> {
    let digits = text.get(i..i + 4)?;
    digits.iter().try_fold(0, |sum, &digit| {
        Some(sum * 16 + char::from(digit).to_digit(16)?)
    })
}

/// What `written` means.
pub(super) fn decode(written: &[u8], spelling: Spelling) -> Cow<'_, [u8]> {
    let plain = match spelling {
        Spelling::Json => memchr::memchr(b'\\', written),
        Spelling::Percent => memchr::memchr(b'%', written),
        Spelling::Form => memchr::memchr2(b'%', b'+', written),
    };
    if plain.is_none() {
        return Cow::Borrowed(written);
    }
    let mut out = Vec::with_capacity(written.len());
    for unit in Units::new(written, spelling) {
        match unit {
            Unit::Plain(bytes) => out.extend_from_slice(bytes),
            Unit::Escape { bytes, decoded, .. } => out.extend_from_slice(part(&bytes, 0, decoded)),
        }
    }
    Cow::Owned(out)
}

/// Carries edits of `decode(written)` over to `written`, which stands at `base` of the text that `out` edits. One pass.
pub(super) fn carry(
    written: &[u8],
    spelling: Spelling,
    base: usize,
    edits: Vec<Edit>,
    out: &mut Vec<Edit>,
) {
    let mut units = Units::new(written, spelling);
    let mut decoded_before = 0; // decoded offset where the current unit starts
    let mut written_before = 0;
    let mut current = units.next();
    // The written offset of a decoded one; inside an escape, its start or its end.
    let mut locate = |target: usize, at_end: bool| loop {
        let (decoded, length, plain) = match &current {
            None => return written_before,
            Some(Unit::Plain(bytes)) => (bytes.len(), bytes.len(), true),
            Some(Unit::Escape {
                decoded, written, ..
            }) => (*decoded, *written, false),
        };
        let inside = target.saturating_sub(decoded_before);
        if inside == 0 {
            return written_before;
        }
        if inside < decoded {
            return match (plain, at_end) {
                (true, _) => written_before + inside,
                (false, true) => written_before + length,
                (false, false) => written_before,
            };
        }
        decoded_before += decoded;
        written_before += length;
        current = units.next();
    };
    for edit in settled(edits) {
        let start = locate(edit.start, false);
        let end = locate(edit.end, true);
        let with = if spelling == Spelling::Json && edit.with.contains(['"', '\\']) {
            edit.with.replace('\\', "\\\\").replace('"', "\\\"")
        } else {
            edit.with
        };
        out.push(Edit {
            start: base + start,
            end: base + end,
            with,
        });
    }
}

/// `text` with the edits made.
pub(super) fn apply(text: &[u8], edits: Vec<Edit>) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut done = 0;
    for edit in settled(edits) {
        out.extend_from_slice(part(text, done, edit.start));
        out.extend_from_slice(edit.with.as_bytes());
        done = edit.end;
    }
    out.extend_from_slice(rest(text, done));
    String::from_utf8(out)
        .unwrap_or_else(|broken| String::from_utf8_lossy(broken.as_bytes()).into_owned())
}

/// The edits in order, one where several overlap: what lies in a replaced value needs no replacement of its own.
fn settled(mut edits: Vec<Edit>) -> Vec<Edit> {
    edits.sort_by_key(|edit| (edit.start, std::cmp::Reverse(edit.end)));
    edits.dedup_by(|later, kept| {
        let overlaps = later.start < kept.end;
        if overlaps {
            kept.end = kept.end.max(later.end);
        }
        overlaps
    });
    edits
}
