//! Which key names mark a secret, and what else a name tells about its value.
//!
//! A name is read as words: `accessToken`, `access-token`, `ACCESS_TOKEN` and `access token` are the same two. A rule
//! matches when its words stand next to each other in the name, whole, also run together (`apikey` for `api_key`) or in
//! the plural. So `password` matches `user_password` and `passwordHash`, but not `passwordless`. Two exceptions, since
//! they name other things: a last word that says something *about* the secret (`token_count`, `password_policy`,
//! `authorization_endpoint`), and for the rule `token` alone a first word of another trade (`nextPageToken`,
//! `progressToken`, `eos_token`) and the plural (`max_tokens`). A rule that spells the whole name always matches.

use super::RuleError;
use super::bytes::{at, is_word};

/// Longer names (without separators) are not split into words: they match wherever a rule's letters stand.
const LONGEST: usize = 96;

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
        if !may_be_id(key) && !self.may_match(key) {
            return KeyFacts::default();
        }
        let Some(words) = Words::split(key) else {
            return KeyFacts {
                secret: self.somewhere_in(key),
                ..KeyFacts::default()
            };
        };
        let last = words.last();
        // Looked up on a match only: nearly every name has none.
        let about = || is_one(ABOUT, last);
        let id = matches!(
            last,
            b"id" | b"ids" | b"uuid" | b"guid" | b"cursor" | b"digest" | b"etag" | b"hash" | b"sha"
        );
        let mut facts = KeyFacts {
            id,
            ..KeyFacts::default()
        };
        self.each_match(&words, |entry, start, end| match entry.what {
            What::Secret => {
                let whole = start == 0 && end == words.len;
                let trails = end < words.len && words.last_start() >= end;
                let other = trails && (about() || entry.is_token() && is_one(ABOUT_TOKEN, last))
                    || entry.is_token() && is_one(BEFORE_TOKEN, words.before(start));
                facts.secret |= whole || !other;
            }
            What::Hint(hint) if !about() && !id => facts.hint = Some(hint),
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
            found |= entry.what == What::Secret && entry.words > 1 && end == words.len;
        });
        found
    }

    fn each_match(&self, words: &Words, mut sink: impl FnMut(&Entry, usize, usize)) {
        let mut starts = words.starts & !(1 << words.len);
        while starts != 0 {
            let start = starts.trailing_zeros() as usize;
            starts &= starts - 1;
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

/// Whether the last word may be one of those for identifiers.
fn may_be_id(key: &[u8]) -> bool {
    let [.., a, b] = key else { return false };
    matches!(
        (a.to_ascii_lowercase(), b.to_ascii_lowercase()),
        (b'i', b'd')
            | (b'd', b's')
            | (b'o', b'r')
            | (b's', b't' | b'h')
            | (b'a', b'g')
            | (b'h', b'a')
    ) || b.is_ascii_digit()
}

/// A name's letters and digits in lower case, and where its words start.
struct Words {
    buffer: [u8; LONGEST],
    len: usize,
    /// Bit `n`: a word starts at `n`; the bit at the end is always set.
    starts: u128,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    None,
    Lower,
    Upper,
    Digit,
}

impl Words {
    fn split(name: &[u8]) -> Option<Self> {
        let mut words = Self {
            buffer: [0; LONGEST],
            len: 0,
            starts: 0,
        };
        let mut splitter = Splitter {
            previous: Class::None,
            uppers: 0,
        };
        if name.is_ascii() {
            for &byte in name {
                let class = match byte {
                    b'a'..=b'z' => Class::Lower,
                    b'A'..=b'Z' => Class::Upper,
                    b'0'..=b'9' => Class::Digit,
                    _ => Class::None,
                };
                if splitter.starts(&mut words, class) {
                    *words.buffer.get_mut(words.len)? = byte.to_ascii_lowercase();
                    words.len += 1;
                }
            }
        } else {
            for c in String::from_utf8_lossy(name).chars() {
                let class = match c {
                    _ if c.is_uppercase() => Class::Upper,
                    _ if c.is_alphabetic() => Class::Lower,
                    _ if c.is_numeric() => Class::Digit,
                    _ => Class::None,
                };
                if splitter.starts(&mut words, class) {
                    for lower in c.to_lowercase() {
                        let mut bytes = [0; 4];
                        let bytes = lower.encode_utf8(&mut bytes).as_bytes();
                        let end = words.len + bytes.len();
                        words.buffer.get_mut(words.len..end)?.copy_from_slice(bytes);
                        words.len = end;
                    }
                }
            }
        }
        words.starts |= 1 << words.len;
        Some(words)
    }

    fn letters(&self) -> &[u8] {
        self.buffer.get(..self.len).unwrap_or_default()
    }

    fn is_boundary(&self, at: usize) -> bool {
        at <= self.len && self.starts >> at & 1 == 1
    }

    fn count(&self) -> usize {
        (self.starts & !(1 << self.len)).count_ones() as usize
    }

    /// Where the last word that is no number starts.
    fn last_start(&self) -> usize {
        self.last_span().0
    }

    fn last(&self) -> &[u8] {
        let (start, end) = self.last_span();
        self.letters().get(start..end).unwrap_or_default()
    }

    fn last_span(&self) -> (usize, usize) {
        let mut end = self.len;
        while end > 0 {
            let start = self.start_before(end);
            if !self.buffer.get(start).is_some_and(u8::is_ascii_digit) {
                return (start, end);
            }
            end = start;
        }
        (0, self.len)
    }

    /// The word that ends at `end`.
    fn before(&self, end: usize) -> &[u8] {
        if end == 0 {
            return &[];
        }
        self.letters()
            .get(self.start_before(end)..end)
            .unwrap_or_default()
    }

    fn start_before(&self, end: usize) -> usize {
        let earlier = self.starts & ((1 << end) - 1);
        127_usize.saturating_sub(earlier.leading_zeros() as usize)
    }
}

/// Where one word ends and the next begins.
struct Splitter {
    previous: Class,
    uppers: usize,
}

impl Splitter {
    /// Whether the next character belongs to a word; marks where one starts.
    #[inline]
    fn starts(&mut self, words: &mut Words, class: Class) -> bool {
        let starts = match (self.previous, class) {
            (_, Class::None) => false,
            (Class::None, _) | (Class::Lower, Class::Upper) => true,
            (Class::Digit, _) | (_, Class::Digit) => self.previous != class,
            // `APIKey` is API and Key, `DBpassword` is DB and password: both readings count.
            (Class::Upper, Class::Lower) if self.uppers > 1 => {
                words.starts |= 1 << words.len.saturating_sub(1);
                true
            }
            _ => false,
        };
        // At the end of the buffer the split is given up anyway.
        if starts && words.len < LONGEST {
            words.starts |= 1 << words.len;
        }
        self.uppers = if class == Class::Upper {
            self.uppers + 1
        } else {
            0
        };
        self.previous = class;
        class != Class::None
    }
}
