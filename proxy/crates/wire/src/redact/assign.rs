//! Secrets in plain text by the name in front of them: `password=…`, `Authorization: Bearer …`, `"token": "…"`, in logs,
//! settings, forms, dumps and JSON that is broken or cut.
//!
//! The name decides as in JSON. How far the value goes depends on how it is written: to its closing quote, to the end of
//! the line when the name begins the line, else to where a word of its kind ends.

use super::bytes::{
    after_escape, at, before, is_base64url, is_blank, is_word, part, rest, run, run_back,
};
use super::keys::KeyTable;
use super::placeholder::{self, Kind};

/// Longest name looked at.
const NAME: usize = 64;

/// Values that say there is no secret, or what type one has.
const NOTHING: &str = "null none nil undefined true false string str text bytes number int integer bool boolean any \
    object optional required";
/// Words in front of a credential that are not the credential.
const SCHEMES: &str = "basic bearer digest dpop negotiate token apikey";

/// Names that mark secrets.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names<'a> {
    /// Those of the configuration.
    pub(super) keys: &'a KeyTable,
    /// Those of query parameters, when they are looked for.
    pub(super) parameters: Option<&'a KeyTable>,
}

/// The separator (`:`, `=` or an encoded `=`) at `at`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Separator {
    pub(super) at: usize,
    pub(super) width: usize,
}

struct Name {
    start: usize,
    /// The quote that closes it.
    quoted: bool,
    /// It begins the line.
    leads: bool,
}

/// The value after a separator whose name marks it as a secret.
pub(super) fn find(
    text: &[u8],
    separator: Separator,
    floor: usize,
    names: Names<'_>,
) -> Option<(usize, usize, Kind)> {
    let from = value_from(text, separator, floor)?;
    let (name, kind) = name_before(text, separator, floor, names)?;
    let blank = |byte: u8| is_blank(byte) || name.quoted && byte.is_ascii_whitespace();
    let start = run(text, from, blank);
    if start >= text.len() || placeholder::length_at(text, start).is_some() {
        return None;
    }
    let (start, end) = value(text, start, floor, &name, separator);
    let found = part(text, start, end);
    let lower = found.to_ascii_lowercase();
    let nothing = NOTHING.split(' ').any(|word| word.as_bytes() == lower)
        || found.iter().all(|&byte| b"*.\xE2\x80\xA2".contains(&byte))
        || found.len() <= NAME && found.starts_with(b"${") && found.ends_with(b"}");
    (!nothing && !placeholder::is_whole(found)).then_some((start, end, kind))
}

/// The value after a flag (`--password hunter2`) whose dashes begin at `i`.
pub(super) fn flag(text: &[u8], i: usize, floor: usize, keys: &KeyTable) -> Option<(usize, usize)> {
    let start = i + 2;
    let end = run(part(text, 0, start + NAME), start, is_base64url);
    if is_word(before(text, i, floor)) || !is_blank(at(text, end)) {
        return None;
    }
    let value = run(text, end, is_blank);
    if matches!(at(text, value), b'-' | b'<' | b'|' | b'$')
        || placeholder::length_at(text, value).is_some()
        || !keys.facts(part(text, start, end)).secret
    {
        return None;
    }
    let quote = at(text, value);
    let (value, end) = if matches!(quote, b'"' | b'\'') {
        (value + 1, closing_quote(text, value + 1, quote, 0))
    } else {
        (value, word_end(text, value, false))
    };
    (end > value && !placeholder::is_whole(part(text, value, end))).then_some((value, end))
}

/// The text of an element (`<password>hunter2</password>`) whose `<` is at `i`.
pub(super) fn element(text: &[u8], i: usize, keys: &KeyTable) -> Option<(usize, usize)> {
    let end = run(part(text, 0, i + NAME), i + 1, |byte| {
        is_base64url(byte) || byte == b':' || byte == b'.'
    });
    let name = part(text, i + 1, end);
    if name.is_empty() || !keys.facts(name).secret {
        return None;
    }
    let head = part(text, 0, end + 4 * NAME);
    let start = run(head, end, |byte| byte != b'>') + 1;
    let stop = run(text, start, |byte| byte != b'<');
    let closing = rest(text, stop)
        .strip_prefix(b"</")
        .is_some_and(|tail| tail.starts_with(name));
    let found = part(text, start, stop);
    (closing && !found.is_empty() && !placeholder::is_whole(found)).then_some((start, stop))
}

/// Where the value begins at the earliest; none when this is a comparison or a path and no assignment.
fn value_from(text: &[u8], separator: Separator, floor: usize) -> Option<usize> {
    let i = separator.at;
    let next = i + separator.width;
    let previous = before(text, i, floor);
    match (at(text, i), at(text, next)) {
        (b'=', _) if b"=!<>:~".contains(&previous) => None,
        (b'=', b'=' | b'~') | (b':', b':') => None,
        (b':', _) if previous == b':' => None,
        (b':', b'/') if at(text, next + 1) == b'/' => None,
        (b':', b'=') | (b'=', b'>') => Some(next + 1),
        _ => Some(next),
    }
}

fn name_before(
    text: &[u8],
    separator: Separator,
    floor: usize,
    names: Names<'_>,
) -> Option<(Name, Kind)> {
    let mut end = run_back(text, separator.at, floor, 16, is_blank);
    if before(text, end, floor) == b']' {
        end -= 1;
    }
    let quoted = matches!(before(text, end, floor), b'"' | b'\'' | b'`');
    if quoted {
        end = run_back(text, end - 1, floor, 16, |byte| byte == b'\\');
    }
    let in_name = |byte: u8| is_word(byte) || matches!(byte, b'_' | b'-' | b'.');
    let mut start = run_back(text, end, floor, NAME, in_name);
    start += after_escape(text, start, floor);
    let name = part(text, start, end);
    let previous = before(text, start, floor);
    let kind = if names.keys.facts(name).secret {
        Kind::Key
    } else if names.parameters.is_some_and(|parameters| {
        (matches!(previous, b'?' | b'&') || separator.width > 1) && parameters.facts(name).secret
    }) {
        Kind::Url
    } else if previous == b' ' && !quoted {
        start = run_back(text, end, floor, NAME, |byte| byte == b' ' || in_name(byte));
        if !names.keys.ends_phrase(part(text, start, end)) {
            return None;
        }
        Kind::Key
    } else {
        return None;
    };
    let leads = leads_line(text, start, floor);
    let name = Name {
        start,
        quoted,
        leads,
    };
    Some((name, kind))
}

fn leads_line(text: &[u8], start: usize, floor: usize) -> bool {
    let mark = |byte: u8| is_blank(byte) || b"-*#>\"'`".contains(&byte);
    let mut i = run_back(text, start, floor, 16, mark);
    for word in [&b"export"[..], b"set", b"ENV"] {
        if part(text, floor, i).ends_with(word) {
            i = run_back(text, i - word.len(), floor, 16, mark);
            break;
        }
    }
    i == 0 || matches!(before(text, i, floor), b'\n' | b'\r') || is_line_end(text, i, floor)
}

/// Whether an escaped line end stands before `i`.
fn is_line_end(text: &[u8], i: usize, floor: usize) -> bool {
    matches!(before(text, i, floor), b'n' | b'r') && before(text, i - 1, floor) == b'\\'
}

fn value(
    text: &[u8],
    start: usize,
    floor: usize,
    name: &Name,
    separator: Separator,
) -> (usize, usize) {
    let encoded = separator.width > 1;
    let quote_at = run(text, start, |byte| byte == b'\\');
    let quote = at(text, quote_at);
    if matches!(quote, b'"' | b'\'' | b'`') {
        let inside = quote_at + 1;
        return (inside, closing_quote(text, inside, quote, quote_at - start));
    }
    if name.quoted && matches!(quote, b'{' | b'[') {
        return (start, closing_bracket(text, start));
    }
    let around = before(text, name.start, floor);
    if !name.quoted && matches!(around, b'"' | b'\'' | b'`') {
        return (start, closing_quote(text, start, around, 0));
    }
    let mut end = if name.leads {
        line_value(text, start, at(text, separator.at) == b'=')
    } else {
        word_end(text, start, encoded)
    };
    let word = part(text, start, end).to_ascii_lowercase();
    if SCHEMES.split(' ').any(|scheme| scheme.as_bytes() == word) && is_blank(at(text, end)) {
        end = word_end(text, run(text, end, is_blank), encoded);
    }
    (start, end)
}

/// The quote that ends a value whose opening one had `escapes` backslashes before it; the end of the text without one.
fn closing_quote(text: &[u8], from: usize, quote: u8, escapes: usize) -> usize {
    let mut i = from;
    while let Some(offset) = memchr::memchr(quote, rest(text, i)) {
        let found = i + offset;
        let slashes = run_back(text, found, i, usize::MAX, |byte| byte == b'\\');
        if found - slashes <= escapes {
            return slashes;
        }
        i = found + 1;
    }
    text.len()
}

/// The end of the brackets that open at `from`, strings looked through; the end of the text when they do not close.
fn closing_bracket(text: &[u8], from: usize) -> usize {
    let mut depth = 0_usize;
    for (offset, byte) in rest(text, from).iter().enumerate() {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return from + offset + 1;
        }
    }
    text.len()
}

/// To the end of the line; in a form or a connection string to the next `&name=` or `;name=`.
fn line_value(text: &[u8], start: usize, form: bool) -> usize {
    let mut i = start;
    let mut end = start;
    while i < text.len() {
        match at(text, i) {
            b'\n' | b'\r' => break,
            b'\\' if matches!(at(text, i + 1), b'n' | b'r') => break,
            b'&' | b';' if form && names_next(text, i + 1) => break,
            b' ' | b'\t' => {}
            _ => end = i + 1,
        }
        i += 1;
    }
    end
}

fn names_next(text: &[u8], from: usize) -> bool {
    let start = run(text, from, is_blank);
    let end = run(part(text, 0, start + NAME), start, |byte| {
        is_word(byte) || b"_-.[]%".contains(&byte)
    });
    end > start && at(text, end) == b'='
}

/// To where a word ends: blanks, quotes, and separators that something else follows.
fn word_end(text: &[u8], start: usize, encoded: bool) -> usize {
    let mut i = start;
    while i < text.len() {
        let next = at(text, i + 1);
        let ends_here =
            || next == 0 || next.is_ascii_whitespace() || b"\"'`<>,;)}]".contains(&next);
        let stop = match at(text, i) {
            byte if byte.is_ascii_whitespace() => true,
            b'"' | b'\'' | b'`' | b'<' | b'>' | b'&' => true,
            b'\\' => matches!(next, b'n' | b'r' | b't' | b'"' | b'\'' | b'\\'),
            b',' | b';' => ends_here() || names_next(text, i + 1),
            b')' | b'}' | b']' => ends_here(),
            b'%' if encoded => part(text, i, i + 3) == b"%26" || part(text, i, i + 3) == b"%23",
            _ => false,
        };
        if stop {
            break;
        }
        i += 1;
    }
    i
}
