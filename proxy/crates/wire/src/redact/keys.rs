//! Which key names mark a secret, and what else a name tells about its value.
//!
//! A name is read as words: `accessToken`, `access-token`, `ACCESS_TOKEN` and `access token` are the same two. A rule
//! matches when its words stand next to each other in the name, whole, also run together (`apikey` for `api_key`) or in
//! the plural. So `password` matches `user_password` and `passwordHash`, but not `passwordless`. Two exceptions, since
//! they name other things: a last word that says something *about* the secret (`token_count`, `password_policy`,
//! `authorization_endpoint`), and for the rule `token` alone a first word of another trade (`nextPageToken`,
//! `progressToken`, `eos_token`) and the plural (`max_tokens`). A rule that spells the whole name always matches.

use super::RuleError;
use super::bytes::{at, before, is_word, part};
use super::placeholder;
use super::words::Words;

/// What a name tells about the value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyFacts {
    /// Its value is a secret.
    pub(super) secret: bool,
    /// Bare digits under it are what the name says.
    pub(super) hint: Option<Hint>,
    /// It names an identifier: bare digits under it are no card.
    pub(super) id: bool,
}

/// Names under which bare digits have a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    Card,
    Phone,
    Ssn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Secret,
    Hint(Hint),
}

#[derive(Debug)]
struct Entry {
    letters: Box<[u8]>,
    what: What,
    words: usize,
}

impl Entry {
    /// `token` is also a unit of text and a bookmark.
    fn is_token(&self) -> bool {
        *self.letters == *b"token"
    }
}

/// The names of the configuration, indexed by first letter.
#[derive(Debug)]
pub(super) struct KeyTable {
    entries: Vec<Entry>,
    by_first: Vec<Vec<u16>>,
    /// One bit for each three letters that an entry begins with (see [`trigram`]): most names have none of them.
    beginnings: Vec<u64>,
    has_secrets: bool,
}

const HINTS: [(&str, Hint); 13] = [
    ("card", Hint::Card),
    ("credit_card", Hint::Card),
    ("pan", Hint::Card),
    ("cc", Hint::Card),
    ("ccn", Hint::Card),
    ("phone", Hint::Phone),
    ("telephone", Hint::Phone),
    ("tel", Hint::Phone),
    ("mobile", Hint::Phone),
    ("fax", Hint::Phone),
    ("msisdn", Hint::Phone),
    ("ssn", Hint::Ssn),
    ("social_security", Hint::Ssn),
];

/// Last words that make a name one about the secret, not of it.
const ABOUT: &str = "\
    age alg algorithm arn at budget config consent cost count counter counts created description dir \
    disabled domain duration enabled endpoint endpoints error errors expiration expired expires expiry \
    field file format header host in invalid kind label len length lifetime limit limits manager max \
    method methods min name names on options path policy present protection provider rate required role \
    scanning scope scopes server servers settings size status store strength supported title ttl type \
    types updated uri url usage used valid verified version";
/// The same for `token` alone: a coin, or a unit of text.
const ABOUT_TOKEN: &str = "\
    address amount balance contract decimals details id ids index pair position price standard supply \
    symbol";
/// Words before `token` that make it a bookmark or a unit of text.
const BEFORE_TOKEN: &str = "\
    bos cancel cancellation cls continuation continue cursor eos input mask max min next output pad page \
    pagination per prev previous progress resume sep special starting stop sync";

impl KeyTable {
    pub(super) fn new(keys: &[String]) -> Result<Self, RuleError> {
        let mut table = Self {
            entries: Vec::new(),
            by_first: vec![Vec::new(); 256],
            beginnings: vec![0; 512],
            has_secrets: !keys.is_empty(),
        };
        for key in keys {
            table
                .add(key, What::Secret)
                .ok_or_else(|| RuleError::Key { found: key.clone() })?;
        }
        for (name, hint) in HINTS {
            table.add(name, What::Hint(hint));
        }
        Ok(table)
    }

    fn add(&mut self, name: &str, what: What) -> Option<()> {
        let words = Words::split(name.as_bytes())?;
        let first = *words.letters().first()?;
        let index = u16::try_from(self.entries.len()).ok()?;
        self.note_beginning(&words);
        self.by_first.get_mut(usize::from(first))?.push(index);
        self.entries.push(Entry {
            letters: words.letters().into(),
            what,
            words: words.count(),
        });
        Some(())
    }

    /// Whether any name marks a secret at all.
    pub(super) fn has_secrets(&self) -> bool {
        self.has_secrets
    }

    /// Sets the bits under which a name with this entry will be found: for letters beyond the entry's first word, all.
    fn note_beginning(&mut self, words: &Words) {
        let letters = words.letters();
        let fixed = (1..3).find(|&n| words.is_boundary(n)).unwrap_or(3);
        let range = |n: usize| match letters.get(n) {
            Some(byte) if n < fixed => byte & 31..=byte & 31,
            _ => 0..=31,
        };
        for (a, b) in range(0).flat_map(|a| range(1).map(move |b| (a, b))) {
            for bits in range(2).map(|c| trigram(a, b, c)) {
                if let Some(word) = self.beginnings.get_mut(bits / 64) {
                    *word |= 1 << (bits % 64);
                }
            }
        }
    }

    /// Whether some word of the name begins as an entry does. A wrong yes costs time, a wrong no would be a leak.
    fn may_match(&self, key: &[u8]) -> bool {
        let mut previous = 0_u8;
        !key.is_ascii()
            || key.iter().enumerate().any(|(i, &byte)| {
                // In ASCII a word starts after no letter, at a capital, or (`DBpassword`) after one.
                let starts = !byte.is_ascii_lowercase() || !previous.is_ascii_lowercase();
                previous = byte;
                let bits = trigram(byte, at(key, i + 1), at(key, i + 2));
                starts && self.beginnings.get(bits / 64).unwrap_or(&0) >> (bits % 64) & 1 == 1
            })
    }

    /// What the name `key`, escapes decoded, tells.
    pub(super) fn facts(&self, key: &[u8]) -> KeyFacts {
        let key = if key.contains(&b'[') {
            &*placeholder::without(key)
        } else {
            key
        };
        let mut facts = KeyFacts {
            id: is_id(key),
            ..KeyFacts::default()
        };
        if !self.may_match(key) {
            return facts;
        }
        let Some(words) = Words::split(key) else {
            facts.secret = self.somewhere_in(key);
            return facts;
        };
        let last = words.last();
        // Looked up on a match only: nearly every name has none.
        let about = || is_one(ABOUT, last);
        self.each_match(&words, |entry, start, end| match entry.what {
            What::Secret => {
                let whole = start == 0 && end == words.len();
                let trails = end < words.len() && words.last_start() >= end;
                let other = trails && (about() || entry.is_token() && is_one(ABOUT_TOKEN, last))
                    || entry.is_token() && is_one(BEFORE_TOKEN, words.before(start));
                facts.secret |= whole || !other;
            }
            What::Hint(hint) if !about() && !facts.id => facts.hint = Some(hint),
            What::Hint(_) => {}
        });
        facts
    }

    /// Whether a phrase of plain text ends with a rule of several words (`your API key`).
    pub(super) fn ends_phrase(&self, phrase: &[u8]) -> bool {
        if !self.may_match(phrase) {
            return false;
        }
        let Some(words) = Words::split(phrase) else {
            return false;
        };
        let mut found = false;
        self.each_match(&words, |entry, _, end| {
            found |= entry.what == What::Secret && entry.words > 1 && end == words.len();
        });
        found
    }

    fn each_match(&self, words: &Words, mut sink: impl FnMut(&Entry, usize, usize)) {
        for start in words.starts() {
            let tail = words.letters().get(start..).unwrap_or_default();
            let first = tail.first().copied().unwrap_or_default();
            let Some(bucket) = self.by_first.get(usize::from(first)) else {
                continue;
            };
            for entry in bucket
                .iter()
                .filter_map(|&i| self.entries.get(usize::from(i)))
            {
                let Some(after) = tail.strip_prefix(&*entry.letters) else {
                    continue;
                };
                let end = start + entry.letters.len();
                if words.is_boundary(end) {
                    sink(entry, start, end);
                } else if after.first() == Some(&b's')
                    && words.is_boundary(end + 1)
                    && !entry.is_token()
                {
                    sink(entry, start, end + 1);
                }
            }
        }
    }

    fn somewhere_in(&self, key: &[u8]) -> bool {
        let letters: Vec<u8> = key
            .iter()
            .filter(|&&byte| is_word(byte))
            .map(u8::to_ascii_lowercase)
            .collect();
        self.entries.iter().any(|entry| {
            entry.what == What::Secret && memchr::memmem::find(&letters, &entry.letters).is_some()
        })
    }
}

fn is_one(words: &str, word: &[u8]) -> bool {
    words.split(' ').any(|one| one.as_bytes() == word)
}

/// Three letters of any case as 15 bits; other bytes share the bits of some letter.
fn trigram(a: u8, b: u8, c: u8) -> usize {
    usize::from(a & 31) << 10 | usize::from(b & 31) << 5 | usize::from(c & 31)
}

/// Whether the last word is one for identifiers.
fn is_id(key: &[u8]) -> bool {
    let digits = key
        .iter()
        .rev()
        .take_while(|byte| byte.is_ascii_digit())
        .count();
    let key = part(key, 0, key.len() - digits);
    let words: &[&[u8]] = match key.last().map(u8::to_ascii_lowercase) {
        Some(b'd') => &[b"id", b"uuid", b"guid"],
        Some(b's') => &[b"ids"],
        Some(b'r') => &[b"cursor"],
        Some(b't') => &[b"digest"],
        Some(b'g') => &[b"etag"],
        Some(b'h') => &[b"hash"],
        Some(b'a') => &[b"sha"],
        _ => return false,
    };
    words.iter().any(|word| {
        let start = key.len().saturating_sub(word.len());
        let previous = before(key, start, 0);
        let starts = !previous.is_ascii_alphabetic()
            || previous.is_ascii_lowercase() && at(key, start).is_ascii_uppercase();
        starts && part(key, start, key.len()).eq_ignore_ascii_case(word)
    })
}
