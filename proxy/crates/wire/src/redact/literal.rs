//! The tokens of JSON, read without their meaning: strings, numbers, blanks.

use super::bytes::{at, part, rest, run};
use super::content::{STOP, TRIGGER};

/// The text cannot be read from here on.
pub(super) struct Fault(pub(super) usize);

/// A string: where it ends and what is in it.
pub(super) struct Literal {
    /// Of the closing quote, or of the text.
    pub(super) end: usize,
    pub(super) closed: bool,
    pub(super) escaped: bool,
    /// Classes of the bytes in it, as far as they were looked at.
    pub(super) marks: u8,
}

impl Literal {
    /// The string whose opening quote is at `i`. `cut`: it may end with the text.
    pub(super) fn read(
        text: &[u8],
        i: usize,
        cut: bool,
        classes: &[u8; 256],
    ) -> Result<Self, Fault> {
        let mut literal = Self {
            end: i + 1,
            closed: false,
            escaped: false,
            marks: 0,
        };
        loop {
            let (length, marks) = plain(rest(text, literal.end), classes);
            literal.marks |= marks;
            literal.end += length;
            match at(text, literal.end) {
                _ if literal.end >= text.len() => break,
                b'"' => {
                    literal.closed = true;
                    break;
                }
                b'\\' => {
                    literal.escaped = true;
                    if at(text, literal.end + 1) == b'u' {
                        // It may stand for a byte that would have been a mark.
                        literal.marks |= TRIGGER;
                    }
                    match escape(rest(text, literal.end)) {
                        Escape::Whole(length) => literal.end += length,
                        Escape::Cut => {
                            literal.end = text.len();
                            break;
                        }
                        Escape::None => return Err(Fault(i)),
                    }
                }
                _ => return Err(Fault(i)),
            }
        }
        if !literal.closed && !cut {
            return Err(Fault(i));
        }
        Ok(literal)
    }
}

/// How far `text` has no byte that a string stops at, and the classes of the bytes up to there.
fn plain(text: &[u8], classes: &[u8; 256]) -> (usize, u8) {
    const SHORT: usize = 64;
    let mut marks = 0;
    for (i, &byte) in part(text, 0, SHORT).iter().enumerate() {
        let class = classes.get(usize::from(byte)).unwrap_or(&0);
        if class & STOP != 0 {
            return (i, marks);
        }
        marks |= class;
    }
    let long = rest(text, SHORT);
    if long.is_empty() {
        return (text.len(), marks);
    }
    // A long text nearly always has a mark; then its end is found faster by itself.
    let end = memchr::memchr2(b'"', b'\\', long).unwrap_or(long.len());
    let controls = part(long, 0, end)
        .iter()
        .fold(0, |any, &byte| any | u8::from(byte < 0x20));
    let end = if controls == 0 {
        end
    } else {
        run(long, 0, |byte| byte >= 0x20)
    };
    (SHORT + end, marks | TRIGGER)
}

enum Escape {
    Whole(usize),
    Cut,
    None,
}

fn escape(text: &[u8]) -> Escape {
    match text.get(1) {
        None => Escape::Cut,
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::Whole(2),
        Some(b'u') => {
            let digits = part(text, 2, 6);
            match (digits.iter().all(u8::is_ascii_hexdigit), digits.len()) {
                (true, 4) => Escape::Whole(6),
                (true, _) => Escape::Cut,
                (false, _) => Escape::None,
            }
        }
        Some(_) => Escape::None,
    }
}

/// The length of the blanks that `text` begins with.
pub(super) fn blanks(text: &[u8]) -> usize {
    text.iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        .unwrap_or(text.len())
}

/// The end of the number that starts at `i`. `cut`: it may end with the text where a digit should be.
pub(super) fn number(text: &[u8], i: usize, cut: bool) -> Option<usize> {
    let digits = |from: usize| {
        let end = run(text, from, |byte| byte.is_ascii_digit());
        let some = end > from || cut && end >= text.len();
        some.then_some(end.min(text.len()))
    };
    let start = i + usize::from(at(text, i) == b'-');
    let mut end = digits(start)?;
    if end > start + 1 && at(text, start) == b'0' {
        return None;
    }
    if at(text, end) == b'.' {
        end = digits(end + 1)?;
    }
    if matches!(at(text, end), b'e' | b'E') {
        let sign = usize::from(matches!(at(text, end + 1), b'+' | b'-'));
        end = digits(end + 1 + sign)?;
    }
    Some(end)
}
