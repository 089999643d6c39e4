//! JSON, read once from left to right with its stack on the heap, and the spans to replace in it.
//!
//! Grammar and limits of this reader: RFC 8259, lone surrogates allowed (they are in real traffic), [`DEEPEST`] levels.
//! It changes nothing and keeps nothing of what it reads; what it cannot read it reports, and the caller replaces it.

use std::borrow::Cow;

use super::Redactor;
use super::bytes::{at, part, rest};
use super::content::{About, TRIGGER};
use super::edit::{self, Edit, Spelling};
use super::literal::{Fault, Literal, blanks, number};
use super::member::{Ahead, PROPERTIES, Pair};
use super::placeholder::{self, Kind};
use super::pointer::{Active, Place};

/// Containers in containers.
const DEEPEST: usize = 65_536;

/// How a document is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) names: bool,
    pub(super) flags: u8,
    pub(super) level: u8,
    pub(super) cut: bool,
}

struct Frame {
    object: bool,
    start: usize,
    index: u32,
    ahead: Ahead,
    /// A member says that its sibling `value` is a secret.
    labelled: bool,
    /// That sibling, when it came first.
    value: Option<(usize, usize)>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Value,
    /// Or the end of the array.
    FirstValue,
    Name,
    /// Or the end of the object.
    FirstName,
    /// A comma or the end of the container.
    More,
}

/// A container that is replaced whole, and is read only for its end.
struct Hidden {
    depth: usize,
    start: usize,
    kind: Kind,
}

struct Walk<'a> {
    redactor: &'a Redactor,
    text: &'a [u8],
    root: Root,
    frames: Vec<Frame>,
    active: Vec<Active>,
    hidden: Option<Hidden>,
    edits: &'a mut Vec<Edit>,
}

impl Redactor {
    /// Pushes what is to be replaced in a JSON document.
    ///
    /// # Errors
    ///
    /// With the offset from which on the text is no JSON or too deep; what was pushed before holds up to there.
    pub(super) fn walk(
        &self,
        text: &[u8],
        root: Root,
        active: &[Active],
        edits: &mut Vec<Edit>,
    ) -> Result<(), usize> {
        let mut walk = Walk {
            redactor: self,
            text,
            root,
            frames: Vec::with_capacity(16),
            active: active.to_vec(),
            hidden: None,
            edits,
        };
        let read = walk.document();
        let hidden = walk.hidden.map(|hidden| hidden.start);
        read.map_err(|Fault(at)| hidden.map_or(at, |start| start.min(at)))
    }
}

impl Walk<'_> {
    fn document(&mut self) -> Result<(), Fault> {
        let mut ahead = Ahead {
            flags: self.root.flags,
            ..Ahead::default()
        };
        if self.redactor.pointers.arrived(&self.active) {
            ahead.hide = Some(Kind::Pointer);
        }
        let mut expect = Expect::Value;
        let mut i = 0;
        loop {
            i += blanks(rest(self.text, i));
            if i >= self.text.len() {
                return self.ends_here();
            }
            let byte = at(self.text, i);
            match (expect, byte) {
                (Expect::FirstValue, b']') | (Expect::FirstName, b'}') => {
                    i = self.close(i)?;
                    expect = Expect::More;
                }
                (Expect::Value | Expect::FirstValue, _) => {
                    if self.frames.last().is_some_and(|frame| !frame.object) {
                        ahead = self.element();
                    }
                    (i, expect) = self.value(i, byte, ahead)?;
                }
                (Expect::Name | Expect::FirstName, b'"') => {
                    (i, ahead) = self.name(i)?;
                    expect = Expect::Value;
                }
                (Expect::More, b',') => {
                    let frame = self.frames.last_mut().ok_or(Fault(i))?;
                    frame.index += 1;
                    expect = if frame.object {
                        Expect::Name
                    } else {
                        Expect::Value
                    };
                    i += 1;
                }
                (Expect::More, b'}' | b']') => i = self.close(i)?,
                _ => return Err(Fault(i)),
            }
            if expect == Expect::More && self.frames.is_empty() {
                i += blanks(rest(self.text, i));
                return if i >= self.text.len() {
                    Ok(())
                } else {
                    Err(Fault(i))
                };
            }
        }
    }

    /// The text is over and the document is not.
    fn ends_here(&mut self) -> Result<(), Fault> {
        if !self.root.cut {
            return Err(Fault(self.text.len()));
        }
        if let Some(hidden) = self.hidden.take() {
            self.push_whole(hidden.start, self.text.len(), hidden.kind);
        }
        Ok(())
    }

    fn value(&mut self, i: usize, byte: u8, ahead: Ahead) -> Result<(usize, Expect), Fault> {
        match byte {
            b'{' | b'[' => {
                if self.frames.len() >= DEEPEST {
                    return Err(Fault(i));
                }
                if let (None, Some(kind), false) = (&self.hidden, ahead.hide, ahead.defines) {
                    self.hidden = Some(Hidden {
                        depth: self.frames.len(),
                        start: i,
                        kind,
                    });
                }
                let object = byte == b'{';
                self.frames.push(Frame {
                    object,
                    start: i,
                    index: 0,
                    ahead,
                    labelled: false,
                    value: None,
                });
                let expect = if object {
                    Expect::FirstName
                } else {
                    Expect::FirstValue
                };
                Ok((i + 1, expect))
            }
            b'"' => {
                let literal = self.literal(i)?;
                let end = literal.end + usize::from(literal.closed);
                if self.hidden.is_none() {
                    self.string(i + 1, &literal, ahead);
                }
                Ok(self.scalar(i, end, ahead))
            }
            b'-' | b'0'..=b'9' => {
                let end = number(self.text, i, self.root.cut).ok_or(Fault(i))?;
                if self.hidden.is_none() {
                    self.number(i, end, ahead);
                }
                Ok(self.scalar(i, end, ahead))
            }
            b't' => self.word(i, b"true", ahead),
            b'f' => self.word(i, b"false", ahead),
            b'n' => self.word(i, b"null", ahead),
            _ => Err(Fault(i)),
        }
    }

    /// A value that is no container is over.
    fn scalar(&mut self, start: usize, end: usize, ahead: Ahead) -> (usize, Expect) {
        self.active.truncate(ahead.active);
        self.note_value(start, end, ahead);
        (end, Expect::More)
    }

    /// Keeps in mind where the value of a pair stands, in case that its name comes later.
    fn note_value(&mut self, start: usize, end: usize, ahead: Ahead) {
        if ahead.pair == Pair::Value
            && ahead.hide.is_none()
            && let Some(frame) = self.frames.last_mut()
        {
            frame.value = Some((start, end));
        }
    }

    /// A number is a secret by its place or name only.
    fn number(&mut self, start: usize, end: usize, ahead: Ahead) {
        let digits = part(self.text, start, end);
        let cut = self.root.cut && end >= self.text.len();
        if let Some(kind) = ahead.hide {
            self.push_whole(start, end, kind);
        } else if let Some(hint) = ahead.facts.hint
            && (cut || self.redactor.is_bare(digits, Some(hint)))
        {
            self.push_whole(start, end, if cut { Kind::Cut } else { hint.into() });
        }
    }

    /// `true`, `false` and `null` hide nothing, whatever their name.
    fn word(&mut self, i: usize, word: &[u8], ahead: Ahead) -> Result<(usize, Expect), Fault> {
        self.active.truncate(ahead.active);
        let tail = rest(self.text, i);
        if tail.starts_with(word) {
            return Ok((i + word.len(), Expect::More));
        }
        if self.root.cut && word.starts_with(tail) {
            return Ok((self.text.len(), Expect::More));
        }
        Err(Fault(i))
    }

    fn close(&mut self, i: usize) -> Result<usize, Fault> {
        let frame = self.frames.pop().ok_or(Fault(i))?;
        if frame.object != (at(self.text, i) == b'}') {
            return Err(Fault(i));
        }
        self.active.truncate(frame.ahead.active);
        if self.hidden.is_none()
            && frame.labelled
            && let Some((start, end)) = frame.value
        {
            self.hide_value(start, end);
        }
        self.note_value(frame.start, i + 1, frame.ahead);
        let depth = self.frames.len();
        if let Some(hidden) = self.hidden.take_if(|hidden| hidden.depth == depth) {
            self.push_whole(hidden.start, i + 1, hidden.kind);
        }
        Ok(i + 1)
    }

    /// Replaces a value that was read before it was known to be a secret.
    fn hide_value(&mut self, start: usize, end: usize) {
        match at(self.text, start) {
            b't' | b'f' | b'n' => {}
            b'"' => {
                let raw = part(self.text, start + 1, end - 1);
                let decoded = edit::decode(raw, Spelling::Json);
                self.hide_string(start + 1, end - 1, &decoded, Kind::Key);
            }
            _ => self.push_whole(start, end, Kind::Key),
        }
    }

    fn hide_string(&mut self, start: usize, end: usize, decoded: &[u8], kind: Kind) {
        if !decoded.is_empty() && !placeholder::is_whole(decoded) {
            let with = self.redactor.mint.placeholder(kind, decoded);
            self.edits.push(Edit { start, end, with });
        }
    }

    /// Replaces a value that is no string by a string.
    fn push_whole(&mut self, start: usize, end: usize, kind: Kind) {
        let value = part(self.text, start, end);
        let with = format!("\"{}\"", self.redactor.mint.placeholder(kind, value));
        self.edits.push(Edit { start, end, with });
    }

    /// What is known about the next element of the array at hand.
    fn element(&mut self) -> Ahead {
        let Some(frame) = self.frames.last() else {
            return Ahead::default();
        };
        let parent = frame.ahead;
        let place = Place::Element(frame.index);
        let (active, hide) = self.descend(parent.active, place);
        Ahead {
            hide,
            defines: false,
            exempt: parent.exempt,
            facts: parent.facts,
            flags: parent.flags & !PROPERTIES,
            pair: Pair::None,
            active,
        }
    }

    fn descend(&mut self, from: usize, place: Place<'_>) -> (usize, Option<Kind>) {
        let active = self.active.len();
        if active == 0 || self.hidden.is_some() {
            return (active, None);
        }
        let pointers = &self.redactor.pointers;
        pointers.descend(&mut self.active, from, place);
        let arrived = pointers.arrived(self.active.get(active..).unwrap_or_default());
        (active, arrived.then_some(Kind::Pointer))
    }

    /// Reads a member's name and its colon.
    fn name(&mut self, i: usize) -> Result<(usize, Ahead), Fault> {
        let literal = self.literal(i)?;
        let start = i + 1;
        if !literal.closed {
            if self.hidden.is_none() {
                self.string(start, &literal, Ahead::default());
            }
            return Ok((literal.end, Ahead::default()));
        }
        let colon = literal.end + 1;
        let colon = colon + blanks(rest(self.text, colon));
        match at(self.text, colon) {
            b':' => {}
            _ if self.root.cut && colon >= self.text.len() => {}
            _ => return Err(Fault(colon)),
        }
        let after = (colon + 1).min(self.text.len());
        if self.hidden.is_some() {
            let active = self.active.len();
            return Ok((
                after,
                Ahead {
                    active,
                    ..Ahead::default()
                },
            ));
        }
        let raw = part(self.text, start, literal.end);
        let name = if literal.escaped {
            edit::decode(raw, Spelling::Json)
        } else {
            Cow::Borrowed(raw)
        };
        if literal.marks & TRIGGER != 0 {
            let mut found = Vec::new();
            let about = About {
                names: self.root.names,
                level: self.root.level,
                ..About::default()
            };
            self.redactor.content(&name, about, &[], &mut found);
            edit::carry(raw, Spelling::Json, start, found, self.edits);
        }
        let frame = self.frames.last();
        let labelled = frame.is_some_and(|frame| frame.labelled);
        let parent = frame.map(|frame| frame.ahead).unwrap_or_default();
        let (active, pointed) = self.descend(parent.active, Place::Member(&name));
        let keys = &self.redactor.keys;
        let mut ahead = Ahead::of_member(&name, parent, keys, self.root.names);
        ahead.active = active;
        let paired = (labelled && ahead.pair == Pair::Value).then_some(Kind::Key);
        ahead.hide = pointed.or(ahead.hide).or(paired);
        ahead.defines &= pointed.is_none();
        Ok((after, ahead))
    }

    /// A string's content, from `start` on.
    fn string(&mut self, start: usize, literal: &Literal, ahead: Ahead) {
        let raw = part(self.text, start, literal.end);
        if ahead.pair == Pair::Label && raw.len() <= 256 {
            let label = edit::decode(raw, Spelling::Json);
            let labelled = self.redactor.keys.facts(&label).secret;
            if let Some(frame) = self.frames.last_mut() {
                frame.labelled |= labelled;
            }
        }
        let led = self.active.len() > ahead.active;
        let marked = literal.marks & TRIGGER != 0 || led || !literal.closed;
        if !marked && ahead.hide.is_none() || ahead.exempt && ahead.hide.is_none() && literal.closed
        {
            return;
        }
        let decoded = if literal.escaped {
            edit::decode(raw, Spelling::Json)
        } else {
            Cow::Borrowed(raw)
        };
        if let Some(kind) = ahead.hide {
            self.hide_string(start, literal.end, &decoded, kind);
            return;
        }
        let about = About {
            names: self.root.names,
            facts: ahead.facts,
            cut: !literal.closed,
            level: self.root.level,
        };
        let led = self.active.get(ahead.active..).unwrap_or_default();
        let mut found = Vec::new();
        self.redactor.content(&decoded, about, led, &mut found);
        if !found.is_empty() {
            edit::carry(raw, Spelling::Json, start, found, self.edits);
        }
    }

    fn literal(&self, i: usize) -> Result<Literal, Fault> {
        Literal::read(self.text, i, self.root.cut, &self.redactor.classes)
    }
}
