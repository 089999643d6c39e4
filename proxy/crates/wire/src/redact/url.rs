//! The user and password of a URL.

use super::bytes::{at, before, part, run, run_back};
use super::placeholder;

/// How far a password with a `/` or `#` of its own is looked for.
const REACH: usize = 256;

/// A URL whose `://` is known.
pub(super) struct Url {
    /// User and password, when they are there to be replaced.
    pub(super) userinfo: Option<(usize, usize)>,
    /// Where the path, query or fragment begins.
    pub(super) path: usize,
    /// Its end.
    pub(super) end: usize,
}

fn is_inside(byte: u8) -> bool {
    !matches!(byte, 0..=b' ' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'\\')
}

/// The URL whose scheme ends with the `:` at `colon`, when `//` follows. `known_end`: where a URL it stands in ends.
pub(super) fn find(text: &[u8], colon: usize, floor: usize, known_end: usize) -> Option<Url> {
    // `:\/\/` where someone wrote JSON into text.
    let slash = |from: usize| {
        let slash = run(part(text, 0, from + 4), from, |byte| byte == b'\\');
        (at(text, slash) == b'/').then_some(slash + 1)
    };
    let start = slash(slash(colon + 1)?)?;
    let scheme = run_back(text, colon, floor, 32, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
    });
    if !before(text, colon, floor).is_ascii_alphanumeric() {
        return None;
    }
    let end = if start < known_end {
        known_end
    } else {
        // A placeholder ends it: what stands left and right of one does not belong together.
        let end = run(text, start, is_inside);
        placeholder::find(part(text, start, end)).map_or(end, |offset| start + offset)
    };
    let path = run(part(text, 0, end), start, |byte| {
        !matches!(byte, b'/' | b'?' | b'#')
    });
    let authority = part(text, start, path);
    let mut userinfo = authority.iter().rposition(|&byte| byte == b'@');
    if userinfo.is_none() && has_strange_port(authority) {
        // No port but the beginning of a password with a `/` in it.
        userinfo = part(text, start, end.min(start + REACH))
            .iter()
            .rposition(|&byte| byte == b'@');
    }
    let userinfo = userinfo
        .map(|length| (start, start + length))
        .filter(|&(start, end)| {
            let found = part(text, start, end);
            let remote = matches!(
                part(text, scheme, colon),
                b"ssh" | b"git" | b"sftp" | b"git+ssh" | b"svn+ssh"
            );
            // A user's name alone is how one reaches a repository; elsewhere it can be a token.
            let named_only = remote && !found.contains(&b':');
            !found.is_empty() && !named_only && !placeholder::is_whole(found)
        });
    Some(Url {
        userinfo,
        path: path.max(userinfo.map_or(0, |(_, end)| end)),
        end,
    })
}

fn has_strange_port(authority: &[u8]) -> bool {
    !authority.starts_with(b"[")
        && authority
            .iter()
            .position(|&byte| byte == b':')
            .is_some_and(|colon| {
                let port = part(authority, colon + 1, authority.len());
                port.iter().any(|byte| !byte.is_ascii_digit())
            })
}
