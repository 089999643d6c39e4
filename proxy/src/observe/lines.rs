//! Header lines on their way into the log: most come with every request, and are not looked at twice.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};

use callbox_store::Headers;
use memchr::memchr;

use super::bounded::DigestMap;
use super::head::{lines, readable};
use super::rules::Rules;
use crate::tap::HeaderText;

/// Lines that are recorded as they are; a power of two.
const CLEAN: usize = 1024;
/// Lines with something replaced that are known; when they are more, knowing begins anew.
const MAX_REPLACED: usize = 4096;
/// Longest line that is known.
const MAX_LINE: usize = 256;
/// What differs in every request is not worth knowing.
const FLEETING: [&str; 4] = ["content-length", "date", "traceparent", "x-request-id"];

/// What header lines become in the log.
#[derive(Debug)]
pub(super) struct Lines {
    /// Lines that hold nothing to redact, each where its hash puts it. Compared as a whole: the hash need not be good.
    clean: Box<[Box<str>]>,
    /// What others become, by a fingerprint, so that no credential stays in memory.
    replaced: DigestMap<[u64; 2], Box<str>>,
    fingers: [RandomState; 2],
}

impl Default for Lines {
    fn default() -> Self {
        Self {
            clean: vec![Box::default(); CLEAN].into(),
            replaced: DigestMap::default(),
            fingers: [RandomState::new(), RandomState::new()],
        }
    }
}

impl Lines {
    /// Header lines for the log; none when payloads are not kept.
    pub(super) fn record(&mut self, rules: &Rules, text: &HeaderText) -> Headers {
        if !rules.keep_payloads {
            return Headers::default();
        }
        let mut headers = Headers::with_capacity(text.0.len() + 64, 16);
        let Ok(mut rest) = std::str::from_utf8(&text.0) else {
            for (name, value) in lines(text) {
                let (name, value) = (readable(name), readable(value));
                headers.push(&name, &rules.redactor.header(&name, &value));
            }
            return headers;
        };
        while !rest.is_empty() {
            let end = memchr(b'\n', rest.as_bytes()).unwrap_or(rest.len());
            let line = rest.get(..end).unwrap_or_default();
            rest = rest.get(end + 1..).unwrap_or_default();
            if let Some((name, value)) = line.split_once(':') {
                self.line(rules, &mut headers, (line, name, value.trim_ascii()));
            }
        }
        headers
    }

    fn line(
        &mut self,
        rules: &Rules,
        headers: &mut Headers,
        (line, name, value): (&str, &str, &str),
    ) {
        let known = &mut self.clean[slot(line)];
        if **known == *line {
            return headers.push(name, value);
        }
        if line.len() > MAX_LINE || FLEETING.contains(&name) {
            return headers.push(name, &rules.redactor.header(name, value));
        }
        let fingerprint = [
            self.fingers[0].hash_one(line),
            self.fingers[1].hash_one(line),
        ];
        if let Some(replaced) = self.replaced.get(&fingerprint) {
            return headers.push(name, replaced);
        }
        match rules.redactor.header(name, value) {
            Cow::Borrowed(_) => *known = line.into(),
            Cow::Owned(replaced) => {
                headers.push(name, &replaced);
                if self.replaced.len() >= MAX_REPLACED {
                    self.replaced.clear();
                }
                self.replaced.insert(fingerprint, replaced.into());
                return;
            }
        }
        headers.push(name, value);
    }
}

/// Where a line is kept when it is clean.
fn slot(line: &str) -> usize {
    let mut hash = line.len() as u64;
    for chunk in line.as_bytes().chunks(8) {
        let mut word = [0; 8];
        word.iter_mut()
            .zip(chunk)
            .for_each(|(to, from)| *to = *from);
        hash = (hash.rotate_left(5) ^ u64::from_le_bytes(word)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
    // The upper bits are the mixed ones.
    usize::try_from(hash >> 54).unwrap_or_default() % CLEAN
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;
    use crate::observe::tests::settings;

    #[test]
    fn known_lines_become_what_unknown_ones_do() {
        let rules = Rules::with_key(&settings(), &[1; 32]).unwrap();
        let text = HeaderText(
            b"host: h\nauthorization: Bearer secret-1\ncookie: a=secret-2\nx: \xc3\xa9\ndate: now\nbroken\n".to_vec(),
        );
        let mut lines = Lines::default();
        let first = lines.record(&rules, &text);
        for _ in 0..3 {
            assert_eq!(lines.record(&rules, &text), first);
        }
        let other = HeaderText(b"authorization: Bearer secret-3\nhost: h\n".to_vec());
        assert_ne!(
            lines.record(&rules, &other).get("authorization"),
            first.get("authorization")
        );
        let shown = format!("{first:?} {lines:?}");
        assert!(!shown.contains("secret"), "{shown}");
        assert_eq!((first.len(), first.get("x")), (5, Some("é")));
    }

    #[test]
    fn bytes_that_are_no_text_are_recorded_readably() {
        let rules = Rules::with_key(&settings(), &[1; 32]).unwrap();
        let text = HeaderText(b"x: \xe9\n".to_vec());
        assert_eq!(Lines::default().record(&rules, &text).get("x"), Some("é"));
    }
}
