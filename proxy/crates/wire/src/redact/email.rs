//! E-mail addresses, also with the `@` percent-encoded.

use super::bytes::{after_escape, at, is_word, part, run, run_back};

/// Longest local part by RFC 5321.
const LOCAL: usize = 64;

/// The address whose `@` (of `width` bytes) stands at `i`.
pub(super) fn find(text: &[u8], i: usize, width: usize, floor: usize) -> Option<(usize, usize)> {
    // RFC 5321 allows more, but `to=dana@…`, `'dana@…'` and `{dana@…}` are far more usual than such names.
    let in_local =
        |byte: u8| is_word(byte) || matches!(byte, b'.' | b'_' | b'%' | b'+' | b'-' | b'~');
    let start = run_back(text, i, floor, LOCAL, in_local);
    let start = start + after_escape(text, start, floor);
    let local = part(text, start, i);
    if local.is_empty() {
        return None;
    }
    let domain = i + width;
    let end = domain_end(text, domain)?;
    let retina = |label: &[u8]| matches!(label, [digit, b'x'] if digit.is_ascii_digit());
    let first = part(text, domain, run(text, domain, |byte| byte != b'.'));
    let remote = local == b"git" && matches!(at(text, end), b':' | b'/');
    // `icon@2x.png` and `git@host:repository` are no addresses.
    (!retina(first) && !remote).then_some((start, end))
}

/// The end of the longest host name with a dot and a top level of letters.
fn domain_end(text: &[u8], start: usize) -> Option<usize> {
    let mut end = None;
    let mut label = start;
    loop {
        let stop = run(text, label, |byte| is_word(byte) || byte == b'-');
        let bytes = part(text, label, stop);
        if bytes.is_empty() || bytes.len() > 63 {
            return end;
        }
        let letters = |byte: u8| byte.is_ascii_alphabetic() || byte >= 0x80;
        if label > start && bytes.starts_with(b"xn--") {
            end = Some(stop);
        } else if label > start {
            // Dashes may follow as punctuation: no top level has one.
            let top = run(text, label, letters);
            if top - label >= 2 && (top == stop || at(text, top) == b'-') {
                end = Some(top);
            }
        }
        if at(text, stop) != b'.' || stop - start > 255 {
            return end;
        }
        label = stop + 1;
    }
}
