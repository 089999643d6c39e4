//! Reading bytes without a panic: out of range is zero or empty, and what makes a word is said once.

/// The byte at `i`, or 0 beyond the end.
#[inline]
pub(super) fn at(text: &[u8], i: usize) -> u8 {
    text.get(i).copied().unwrap_or(0)
}

/// The byte before `i`, or 0 at `floor`: what lies before the floor is no business of the caller.
#[inline]
pub(super) fn before(text: &[u8], i: usize, floor: usize) -> u8 {
    if i > floor { at(text, i - 1) } else { 0 }
}

/// `text[start..end]`, cut to what there is.
#[inline]
pub(super) fn part(text: &[u8], start: usize, end: usize) -> &[u8] {
    text.get(start..end.min(text.len())).unwrap_or_default()
}

/// `text[start..]`.
#[inline]
pub(super) fn rest(text: &[u8], start: usize) -> &[u8] {
    text.get(start..).unwrap_or_default()
}

/// A letter, a digit or part of a character beyond ASCII.
#[inline]
pub(super) fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

/// The alphabet of base64url.
#[inline]
pub(super) fn is_base64url(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Blanks between words of one line.
#[inline]
pub(super) fn is_blank(byte: u8) -> bool {
    byte == b' ' || byte == b'\t'
}

/// First index from `from` whose byte is not in the set.
#[inline]
pub(super) fn run(text: &[u8], from: usize, set: impl Fn(u8) -> bool) -> usize {
    rest(text, from)
        .iter()
        .position(|&byte| !set(byte))
        .map_or(text.len().max(from), |n| from + n)
}

/// First index of the bytes before `end` that are in the set, not before `floor` and at most `most` bytes back. It never
/// splits a character.
#[inline]
pub(super) fn run_back(
    text: &[u8],
    end: usize,
    floor: usize,
    most: usize,
    set: impl Fn(u8) -> bool,
) -> usize {
    let floor = floor.max(end.saturating_sub(most));
    let mut start = end;
    while start > floor && set(at(text, start - 1)) {
        start -= 1;
    }
    while start < end && at(text, start) & 0xC0 == 0x80 {
        start += 1;
    }
    start
}

/// The ends of `text` without white space.
pub(super) fn trimmed(text: &[u8]) -> (usize, usize) {
    let start = run(text, 0, |byte| byte.is_ascii_whitespace());
    let mut end = text.len();
    while end > start && at(text, end - 1).is_ascii_whitespace() {
        end -= 1;
    }
    (start, end)
}

/// Whether `text` is a UUID in its usual spelling.
pub(super) fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(i, byte)| match i {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Whether a word may begin at `i`: after no letter or digit, unless they are the end of an escape (`\n`, `\u003c`, `%3D`).
pub(super) fn begins_word(text: &[u8], i: usize, floor: usize) -> bool {
    if !is_word(before(text, i, floor)) {
        return true;
    }
    let lead = i.saturating_sub(floor);
    let escaped = lead >= 2
        && at(text, i - 2) == b'\\'
        && matches!(at(text, i - 1), b'n' | b'r' | b't' | b'b' | b'f');
    let percent = lead >= 3
        && at(text, i - 3) == b'%'
        && part(text, i - 2, i).iter().all(u8::is_ascii_hexdigit);
    let unicode = lead >= 6
        && part(text, i - 6, i - 4) == b"\\u"
        && part(text, i - 4, i).iter().all(u8::is_ascii_hexdigit);
    escaped || percent || unicode
}

/// How many bytes at `start` belong to an escape before the name: the `n` of `\n`, the `3F` of `%3F`.
pub(super) fn after_escape(text: &[u8], start: usize, floor: usize) -> usize {
    let two = part(text, start, start + 2);
    match before(text, start, floor) {
        b'\\' if matches!(two.first(), Some(b'n' | b'r' | b't')) => 1,
        b'%' if two.len() == 2 && two.iter().all(u8::is_ascii_hexdigit) => 2,
        _ => 0,
    }
}
