//! JSON, read once from left to right with its stack on the heap, and the spans to replace in it.
//!
//! Grammar and limits of this reader: RFC 8259, lone surrogates allowed (they are in real traffic), [`DEEPEST`] levels.
//! It changes nothing and keeps nothing of what it reads; what it cannot read it reports, and the caller replaces it.

use std::borrow::Cow;

use super::Redactor;
use super::bytes::{at, part, rest, run};
use super::content::{About, STOP, TRIGGER};
use super::edit::{self, Edit, Spelling};
use super::keys::KeyFacts;
use super::placeholder::{self, Kind};
use super::pointer::{Active, Place};

/// Containers in containers.
const DEEPEST: usize = 65_536;

/// Members of this object are the protocol's own, and some are correlation.
pub(super) const PROTOCOL: u8 = 1;
/// Inside a JSON Schema.
const SCHEMA: u8 = 2;
/// Members are properties that a schema defines: their names are no keys.
const PROPERTIES: u8 = 4;
/// The top level of messages.
pub(super) const TOP: u8 = 8;

/// How a document is to be read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root {
    pub(super) names: bool,
    pub(super) flags: u8,
    pub(super) level: u8,
    pub(super) cut: bool,
}

/// What is known about the value to come.
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    hide: Option<Kind>,
    /// It defines a property of that name: an object or a literal is no secret.
    defines: bool,
    /// Correlation: content rules do not apply.
    exempt: bool,
    facts: KeyFacts,
    flags: u8,
    /// Where its pointers start on the stack of active ones.
    active: usize,
}

struct Frame {
    object: bool,
    index: u32,
    ahead: Ahead,
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

/// The text cannot be read from here on.
struct Fault(usize);

struct Literal {
    /// Of the closing quote, or of the text.
    end: usize,
    closed: bool,
    escaped: bool,
    marks: u8,
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
            frames: Vec::new(),
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
                    index: 0,
                    ahead,
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
                self.active.truncate(ahead.active);
                Ok((end, Expect::More))
            }
            b'-' | b'0'..=b'9' => {
                let end = number(self.text, i, self.root.cut).ok_or(Fault(i))?;
                if self.hidden.is_none() {
                    self.number(i, end, ahead);
                }
                self.active.truncate(ahead.active);
                Ok((end, Expect::More))
            }
            b't' => self.word(i, b"true", ahead),
            b'f' => self.word(i, b"false", ahead),
            b'n' => self.word(i, b"null", ahead),
            _ => Err(Fault(i)),
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
        let depth = self.frames.len();
        if let Some(hidden) = self.hidden.take_if(|hidden| hidden.depth == depth) {
            self.push_whole(hidden.start, i + 1, hidden.kind);
        }
        Ok(i + 1)
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
        let name: Cow<'_, [u8]> = if literal.escaped {
            Cow::Owned(edit::decode(raw, Spelling::Json))
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
        let parent = self.frames.last().map(|frame| frame.ahead);
        let parent = parent.unwrap_or_default();
        let (active, pointed) = self.descend(parent.active, Place::Member(&name));
        let mut ahead = self.member(&name, parent);
        ahead.active = active;
        ahead.hide = pointed.or(ahead.hide);
        ahead.defines &= pointed.is_none();
        Ok((after, ahead))
    }

    /// What a name tells about its value.
    fn member(&self, name: &[u8], parent: Ahead) -> Ahead {
        let mut facts = self.redactor.keys.facts(name);
        facts.secret &= self.root.names;
        let mut ahead = Ahead {
            hide: facts.secret.then_some(Kind::Key),
            facts,
            ..Ahead::default()
        };
        if parent.flags & PROTOCOL != 0 {
            match name {
                b"requestState" => ahead.hide = Some(Kind::State),
                b"params"
                | b"result"
                | b"error"
                | b"_meta"
                | b"task"
                | b"tasks"
                | b"io.modelcontextprotocol/related-task" => ahead.flags |= PROTOCOL,
                _ => {}
            }
            ahead.exempt = is_correlation(name) || name == b"id" && parent.flags & TOP != 0;
        }
        if parent.flags & SCHEMA != 0 {
            ahead.flags |= SCHEMA;
            if parent.flags & PROPERTIES != 0 {
                ahead.defines = true;
            } else if holds_properties(name) {
                ahead.flags |= PROPERTIES;
            }
        } else if matches!(name, b"inputSchema" | b"outputSchema" | b"requestedSchema") {
            ahead.flags |= SCHEMA;
        }
        ahead
    }

    /// A string's content, from `start` on.
    fn string(&mut self, start: usize, literal: &Literal, ahead: Ahead) {
        let raw = part(self.text, start, literal.end);
        let led = self.active.len() > ahead.active;
        let marked = literal.marks & TRIGGER != 0 || led || !literal.closed;
        if !marked && ahead.hide.is_none() || ahead.exempt && ahead.hide.is_none() && literal.closed
        {
            return;
        }
        let decoded: Cow<'_, [u8]> = if literal.escaped {
            Cow::Owned(edit::decode(raw, Spelling::Json))
        } else {
            Cow::Borrowed(raw)
        };
        if let Some(kind) = ahead.hide {
            if !decoded.is_empty() && !placeholder::is_whole(&decoded) {
                let with = self.redactor.mint.placeholder(kind, &decoded);
                self.edits.push(Edit {
                    start,
                    end: literal.end,
                    with,
                });
            }
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

    /// The string whose opening quote is at `i`.
    fn literal(&self, i: usize) -> Result<Literal, Fault> {
        let mut literal = Literal {
            end: i + 1,
            closed: false,
            escaped: false,
            marks: 0,
        };
        loop {
            let from = literal.end;
            let classes = &self.redactor.classes;
            let mut marks = 0;
            let plain = rest(self.text, from).iter().position(|&byte| {
                let class = classes.get(usize::from(byte)).copied().unwrap_or_default();
                marks |= class;
                class & STOP != 0
            });
            literal.marks |= marks;
            literal.end = plain.map_or(self.text.len(), |length| from + length);
            match at(self.text, literal.end) {
                _ if literal.end >= self.text.len() => break,
                b'"' => {
                    literal.closed = true;
                    break;
                }
                b'\\' => {
                    literal.escaped = true;
                    if at(self.text, literal.end + 1) == b'u' {
                        // It may stand for a byte that would have been a mark.
                        literal.marks |= TRIGGER;
                    }
                    match escape(rest(self.text, literal.end)) {
                        Escape::Whole(length) => literal.end += length,
                        Escape::Cut => {
                            literal.end = self.text.len();
                            break;
                        }
                        Escape::None => return Err(Fault(i)),
                    }
                }
                _ => return Err(Fault(i)),
            }
        }
        if !literal.closed && !self.root.cut {
            return Err(Fault(i));
        }
        Ok(literal)
    }
}

enum Escape {
    Whole(usize),
    Cut,
    None,
}

fn escape(text: &[u8]) -> Escape {
    match text.get(1) {
        None => Escape::Cut,
        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => Escape::Whole(2),
        Some(b'u') => {
            let digits = part(text, 2, 6);
            match (digits.iter().all(u8::is_ascii_hexdigit), digits.len()) {
                (true, 4) => Escape::Whole(6),
                (true, _) => Escape::Cut,
                (false, _) => Escape::None,
            }
        }
        Some(_) => Escape::None,
    }
}

fn blanks(text: &[u8]) -> usize {
    text.iter()
        .position(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r'))
        .unwrap_or(text.len())
}

/// The end of the number that starts at `i`. `cut`: it may end with the text where a digit should be.
fn number(text: &[u8], i: usize, cut: bool) -> Option<usize> {
    let digits = |from: usize| {
        let end = run(text, from, |byte| byte.is_ascii_digit());
        let some = end > from || cut && end >= text.len();
        some.then_some(end.min(text.len()))
    };
    let start = i + usize::from(at(text, i) == b'-');
    let mut end = digits(start)?;
    if end > start + 1 && at(text, start) == b'0' {
        return None;
    }
    if at(text, end) == b'.' {
        end = digits(end + 1)?;
    }
    if matches!(at(text, end), b'e' | b'E') {
        let sign = usize::from(matches!(at(text, end + 1), b'+' | b'-'));
        end = digits(end + 1 + sign)?;
    }
    Some(end)
}

/// Members of the protocol that tie messages together.
fn is_correlation(name: &[u8]) -> bool {
    matches!(
        name,
        b"progressToken"
            | b"requestId"
            | b"taskId"
            | b"elicitationId"
            | b"traceparent"
            | b"tracestate"
            | b"cursor"
            | b"nextCursor"
            | b"protocolVersion"
            | b"io.modelcontextprotocol/protocolVersion"
            | b"io.modelcontextprotocol/subscriptionId"
    )
}

/// Keywords of JSON Schema whose members are named after properties.
fn holds_properties(name: &[u8]) -> bool {
    matches!(
        name,
        b"properties"
            | b"patternProperties"
            | b"dependentSchemas"
            | b"dependentRequired"
            | b"dependencies"
            | b"definitions"
            | b"$defs"
    )
}
