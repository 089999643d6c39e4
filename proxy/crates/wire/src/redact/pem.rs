//! PEM blocks: keys and certificates, whole or broken off.

use memchr::memmem;

use super::bytes::{at, is_blank, part, rest, run};

/// A block from `i`, and whether a closing line was looked for in vain (there is none further on then).
pub(super) enum Block {
    Found { start: usize, end: usize },
    None { next: usize, no_end: bool },
}

/// The block whose dashes begin at `i`. `no_end`: it is known that no closing line follows.
pub(super) fn find(text: &[u8], i: usize, no_end: bool) -> Block {
    let dashes = run(text, i, |byte| byte == b'-');
    let none = |no_end| Block::None {
        next: dashes,
        no_end,
    };
    // Five by RFC 7468; SSH's own format has four and a blank.
    let begin = run(text, dashes, |byte| byte == b' ');
    if dashes - i < 4 || !rest(text, begin).starts_with(b"BEGIN ") || begin > dashes + 1 {
        return none(no_end);
    }
    let label = begin + b"BEGIN ".len();
    let close = run(text, label, |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
    });
    if close - label > 64 || !rest(text, close).starts_with(b"----") {
        return none(no_end);
    }
    let body = run(text, close, |byte| byte == b'-');
    let start = dashes.saturating_sub(5).max(i);
    if !no_end {
        let found = [&b"-----END "[..], b"---- END "]
            .iter()
            .filter_map(|mark| memmem::find(rest(text, body), mark))
            .min();
        if let Some(offset) = found {
            let mark = run(text, body + offset, |byte| byte == b'-');
            let name = run(text, mark, |byte| {
                byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' '
            });
            let end = run(text, name, |byte| byte == b'-');
            return Block::Found { start, end };
        }
    }
    if is_body(text, body) {
        // Broken off: all the rest may be the key.
        return Block::Found {
            start,
            end: text.len(),
        };
    }
    none(true)
}

/// Whether what follows an opening line reads like the block and not like a sentence about it: base64 or a header, on the
/// next line or written on with an escaped line end; or the text ends before one can tell.
fn is_body(text: &[u8], from: usize) -> bool {
    let mut i = from;
    loop {
        let byte = at(text, i);
        if is_blank(byte) || byte == b'\r' || byte == b'\n' {
            i += 1;
        } else if byte == b'\\' && matches!(at(text, i + 1), b'n' | b'r' | b'\\') {
            i += 2;
        } else {
            break;
        }
    }
    let end = run(text, i, |byte| {
        byte.is_ascii_alphanumeric() || b"+/=-".contains(&byte)
    });
    let header = |name: &[u8]| rest(text, i).starts_with(name);
    let named = [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"]
        .into_iter()
        .any(header);
    part(text, i, end).len() >= 16 || named || end >= text.len() && i > from
}
