//! Text of any kind: JSON is walked, all else is scanned once for what gives a secret away.
//!
//! The scan stops only at bytes that some detector needs (`@`, digits, `:`, the `J` of `eyJ` …); what stands around such a
//! byte is then looked at exactly. Nothing found is looked into again, and no look back goes behind the last finding.

use super::assign::{self, Names, Separator};
use super::bytes::{
    at, before, begins_word, is_blank, is_uuid, is_word, part, run, run_back, trimmed,
};
use super::edit::Edit;
use super::keys::{Hint, KeyFacts};
use super::placeholder::{self, Kind};
use super::pointer::Active;
use super::target::Target;
use super::walk::Root;
use super::{Detector, Redactor, digits, email, iban, pem, tokens, url};

/// JSON in strings in JSON is walked down to here; what is deeper is scanned as text.
const DEEPEST: u8 = 8;

/// Marks in [`Redactor::classes`]: a detector looks at this byte.
pub(super) const TRIGGER: u8 = 1;
/// A JSON string is not plain here: its end, an escape or a fault.
pub(super) const STOP: u8 = 2;

/// What is known about a text before it is read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct About {
    /// Names in front of values mark secrets.
    pub(super) names: bool,
    /// What its own name says.
    pub(super) facts: KeyFacts,
    /// It ends in the middle.
    pub(super) cut: bool,
    /// Strings around it.
    pub(super) level: u8,
}

struct Scan<'a> {
    redactor: &'a Redactor,
    text: &'a [u8],
    about: About,
    /// End of the last finding.
    floor: usize,
    no_pem_end: bool,
    no_jwt_before: usize,
    no_key_before: usize,
    url_end: usize,
}

enum Step {
    Found(usize, usize, Kind),
    Next(usize),
}

impl Redactor {
    /// Which bytes the scan and the reader of strings stop at.
    pub(super) fn mark_classes(&mut self) {
        let any = |wanted: &[Detector]| wanted.iter().any(|&one| self.on(one));
        let names = self.keys.has_secrets();
        let digits = any(&[
            Detector::Card,
            Detector::Phone,
            Detector::Ssn,
            Detector::Iban,
            Detector::CloudKey,
        ]);
        let url = self.on(Detector::UrlCredential);
        let cloud = self.on(Detector::CloudKey);
        let triggers: [(&[u8], bool); 10] = [
            (b"[", true),
            (b"0123456789", digits),
            (b"@", self.on(Detector::Email)),
            (b"%", self.on(Detector::Email) || names || url),
            (b":", names || url || cloud),
            (b"=", names || url),
            (b"-", cloud || names || self.on(Detector::Pem)),
            (b"_./~AB", cloud),
            (b"<", names),
            (b"J", self.on(Detector::Jwt)),
        ];
        let mut classes = [0_u8; 256];
        for (byte, class) in (0_u8..=255).zip(&mut classes) {
            if triggers.iter().any(|(set, on)| *on && set.contains(&byte)) {
                *class |= TRIGGER;
            }
            if byte < 0x20 || byte == b'"' || byte == b'\\' {
                *class |= STOP;
            }
        }
        self.classes = classes;
    }

    /// Redacts decoded text; pointers may lead on into JSON inside.
    pub(super) fn content(
        &self,
        text: &[u8],
        about: About,
        active: &[Active],
        edits: &mut Vec<Edit>,
    ) {
        if is_uuid(text) {
            return;
        }
        if about.level < DEEPEST && looks_like_json(text, about.cut) {
            let known = edits.len();
            let root = Root {
                names: about.names,
                flags: 0,
                level: about.level + 1,
                cut: about.cut,
            };
            if self.walk(text, root, active, edits).is_ok() {
                return;
            }
            edits.truncate(known);
        }
        self.scan(text, about, edits);
    }

    /// Redacts text that is no JSON.
    fn scan(&self, text: &[u8], about: About, edits: &mut Vec<Edit>) {
        if let Some(hint) = about.facts.hint
            && self.is_bare(text, Some(hint))
        {
            self.replace(text, 0, text.len(), hint.into(), edits);
            return;
        }
        let mut scan = Scan {
            redactor: self,
            text,
            about,
            floor: 0,
            no_pem_end: false,
            no_jwt_before: 0,
            no_key_before: 0,
            url_end: 0,
        };
        let known = edits.len();
        scan.all(edits);
        if about.cut {
            // What was found inside the doubtful end is part of it; what reaches into it stays.
            let start = cut_start(text);
            let found = edits.split_off(known);
            edits.extend(found.into_iter().filter(|edit| edit.start < start));
            let done = edits.iter().skip(known).map(|edit| edit.end).max();
            let start = done.map_or(start, |end| end.max(start));
            if start < text.len() {
                self.replace(text, start, text.len(), Kind::Cut, edits);
            }
        }
    }

    /// Whether `text` is nothing but the digits that its name announces.
    pub(super) fn is_bare(&self, text: &[u8], hint: Option<Hint>) -> bool {
        let Some(hint) = hint else { return false };
        let Some(count) = digits::bare(text) else {
            return false;
        };
        match hint {
            Hint::Card => self.on(Detector::Card) && digits::is_card(text),
            Hint::Phone => self.on(Detector::Phone) && (7..=15).contains(&count),
            Hint::Ssn => self.on(Detector::Ssn) && digits::is_ssn(text),
        }
    }

    pub(super) fn replace(
        &self,
        text: &[u8],
        start: usize,
        end: usize,
        kind: Kind,
        edits: &mut Vec<Edit>,
    ) {
        let with = self.mint.placeholder(kind, part(text, start, end));
        edits.push(Edit { start, end, with });
    }

    fn next_trigger(&self, text: &[u8], from: usize) -> usize {
        run(text, from, |byte| {
            self.classes.get(usize::from(byte)).unwrap_or(&0) & TRIGGER == 0
        })
    }
}

impl Scan<'_> {
    fn all(&mut self, edits: &mut Vec<Edit>) {
        let mut i = 0;
        loop {
            i = self.redactor.next_trigger(self.text, i);
            if i >= self.text.len() {
                return;
            }
            match self.step(i, edits) {
                Step::Found(start, end, kind) => {
                    self.redactor.replace(self.text, start, end, kind, edits);
                    self.floor = end;
                    i = end.max(i + 1);
                }
                Step::Next(next) => i = next.max(i + 1),
            }
        }
    }

    fn step(&mut self, i: usize, edits: &mut Vec<Edit>) -> Step {
        let (text, floor) = (self.text, self.floor);
        let on = |detector| self.redactor.on(detector);
        let found = match at(text, i) {
            b'0'..=b'9' => return self.digits(i),
            b':' => return self.colon(i, edits),
            b'-' => return self.dash(i),
            b'=' => self.assignment(i, 1),
            b'%' => self.percent(i),
            b'@' if on(Detector::Email) => {
                email::find(text, i, 1, floor).map(|(start, end)| (start, end, Kind::Email))
            }
            b'J' => tokens::jwt(text, i, floor, &mut self.no_jwt_before)
                .map(|(start, end)| (start, end, Kind::Jwt)),
            b'<' if self.about.names => assign::element(text, i, &self.redactor.keys)
                .map(|(start, end)| (start, end, Kind::Key)),
            b'B' if on(Detector::CloudKey) => tokens::after_scheme(text, i, floor)
                .map(|(start, end)| (start, end, Kind::CloudKey)),
            b'[' => {
                let Some(length) = placeholder::length_at(text, i) else {
                    return Step::Next(i + 1);
                };
                // What stands left and right of a placeholder does not belong together.
                self.floor = i + length;
                return Step::Next(i + length);
            }
            _ => self.cloud_key(i),
        };
        found.map_or(Step::Next(i + 1), |(start, end, kind)| {
            Step::Found(start, end, kind)
        })
    }

    fn cloud_key(&mut self, i: usize) -> Option<(usize, usize, Kind)> {
        let (start, end) = self
            .redactor
            .on(Detector::CloudKey)
            .then(|| {
                self.redactor
                    .cloud
                    .find(self.text, i, self.floor, &mut self.no_key_before)
            })
            .flatten()?;
        Some((start, end, Kind::CloudKey))
    }

    fn digits(&self, i: usize) -> Step {
        let (text, floor) = (self.text, self.floor);
        let on = |detector| self.redactor.on(detector);
        let end = run(text, i, |byte| byte.is_ascii_digit());
        let previous = before(text, i, floor);
        if is_word(previous) && !begins_word(text, i, floor) {
            // Inside a word: an IBAN after two letters, a key after its prefix; no number.
            let two = i >= floor + 2
                && previous.is_ascii_alphabetic()
                && at(text, i - 2).is_ascii_alphabetic();
            if two
                && on(Detector::Iban)
                && let Some(end) = iban::find(text, i - 2, floor)
            {
                return Step::Found(i - 2, end, Kind::Iban);
            }
            if on(Detector::CloudKey)
                && let Some((start, end)) = tokens::databricks(text, i, floor)
            {
                return Step::Found(start, end, Kind::CloudKey);
            }
            // Nothing else begins inside a word, except after the digits of an escape.
            let escape = previous == b'u' && before(text, i - 1, floor) == b'\\';
            return Step::Next(if escape {
                i + 4
            } else {
                run(text, end, |byte| byte.is_ascii_alphanumeric())
            });
        }
        let wanted = digits::Wanted {
            card: on(Detector::Card),
            bare_card: !self.about.facts.id,
            phone: on(Detector::Phone),
            ssn: on(Detector::Ssn),
        };
        match digits::find(text, i, floor, wanted) {
            Some((start, end, kind)) => Step::Found(start, end, kind),
            None => Step::Next(end),
        }
    }

    fn colon(&mut self, i: usize, edits: &mut Vec<Edit>) -> Step {
        let (text, floor) = (self.text, self.floor);
        if let Some(url) = url::find(text, i, floor, self.url_end) {
            return self.url(i, &url, edits);
        }
        if self.redactor.on(Detector::CloudKey)
            && let Some((start, end)) = tokens::telegram(text, i, floor)
        {
            return Step::Found(start, end, Kind::CloudKey);
        }
        match self.assignment(i, 1) {
            Some((start, end, kind)) => Step::Found(start, end, kind),
            None => Step::Next(i + 1),
        }
    }

    fn url(&mut self, i: usize, url: &url::Url, edits: &mut Vec<Edit>) -> Step {
        let known = self.url_end;
        self.url_end = url.end;
        let credential = url
            .userinfo
            .filter(|_| self.redactor.on(Detector::UrlCredential));
        if let Some((start, end)) = credential {
            self.redactor
                .replace(self.text, start, end, Kind::Url, edits);
            self.floor = end;
        }
        // What is percent-encoded is read decoded, the whole URL at once.
        let tail = part(self.text, url.path, url.end);
        if url.end > known && memchr::memchr(b'%', tail).is_some() && self.about.level < DEEPEST {
            let target = Target {
                base: url.path,
                about: About {
                    level: self.about.level + 1,
                    facts: KeyFacts::default(),
                    cut: false,
                    ..self.about
                },
                sessions: false,
            };
            // The scan goes through it as well: what both find is replaced once.
            self.redactor.target_edits(tail, target, edits);
        }
        if self.floor > i {
            return Step::Next(self.floor);
        }
        Step::Next(i + 3)
    }

    fn dash(&mut self, i: usize) -> Step {
        let dashes = run(self.text, i, |byte| byte == b'-') - i;
        if dashes == 2
            && self.about.names
            && let Some((start, end)) = assign::flag(self.text, i, self.floor, &self.redactor.keys)
        {
            return Step::Found(start, end, Kind::Key);
        }
        if dashes > 3 && self.redactor.on(Detector::Pem) {
            return match pem::find(self.text, i, self.no_pem_end) {
                pem::Block::Found { start, end } => Step::Found(start, end, Kind::Pem),
                pem::Block::None { next, no_end } => {
                    self.no_pem_end = no_end;
                    Step::Next(next)
                }
            };
        }
        if dashes > 1 {
            return Step::Next(i + dashes);
        }
        match self.cloud_key(i) {
            Some((start, end, kind)) => Step::Found(start, end, kind),
            None => Step::Next(i + 1),
        }
    }

    fn percent(&self, i: usize) -> Option<(usize, usize, Kind)> {
        match part(self.text, i + 1, i + 3) {
            b"40" if self.redactor.on(Detector::Email) => email::find(self.text, i, 3, self.floor)
                .map(|(start, end)| (start, end, Kind::Email)),
            b"3D" | b"3d" => self.assignment(i, 3),
            _ => None,
        }
    }

    fn assignment(&self, i: usize, width: usize) -> Option<(usize, usize, Kind)> {
        let url = self.redactor.on(Detector::UrlCredential);
        let names = Names {
            keys: &self.redactor.keys,
            parameters: url.then_some(&self.redactor.parameters),
        };
        let wanted = self.about.names && (url || names.keys.has_secrets());
        let separator = Separator { at: i, width };
        wanted
            .then(|| assign::find(self.text, separator, self.floor, names))
            .flatten()
    }
}

impl From<Hint> for Kind {
    fn from(hint: Hint) -> Self {
        match hint {
            Hint::Card => Self::Card,
            Hint::Phone => Self::Phone,
            Hint::Ssn => Self::Ssn,
        }
    }
}

/// An object, an array or a string with more text around than inside: by its first and last byte.
fn looks_like_json(text: &[u8], cut: bool) -> bool {
    let (start, end) = trimmed(text);
    let last = before(text, end, start + 1);
    match at(text, start) {
        b'{' => cut || last == b'}',
        b'[' => cut || last == b']',
        b'"' => cut || last == b'"',
        _ => false,
    }
}

/// Where what may be the beginning of a secret starts, when the text ends in the middle: its last word, and the groups of
/// digits and capitals in front of it, which may be a number.
fn cut_start(text: &[u8]) -> usize {
    let filled = |byte: u8| !byte.is_ascii_whitespace();
    let mut start = run_back(text, text.len(), 0, usize::MAX, filled);
    for _ in 0..12 {
        let gap = run_back(text, start, 0, 2, is_blank);
        let word = run_back(text, gap, 0, 24, filled);
        let group = part(text, word, gap);
        let is_number = group.iter().any(u8::is_ascii_digit)
            && group.iter().all(|byte| {
                byte.is_ascii_digit() || byte.is_ascii_uppercase() || b"+-.()".contains(byte)
            });
        if gap == start && start < text.len() || word == gap || !is_number {
            break;
        }
        start = word;
    }
    start
}
