//! The scanner behind [`Outline`]: JSON read once, in pieces, with a few hundred bytes of state.
//!
//! It follows two levels, the message and its `params` or `result`, and skips everything below by counting brackets. It
//! does not validate what it skips: the text was cut, so nobody can rely on more than its outline.

use memchr::memchr2;

use crate::json::string_text;
use crate::rpc::{IdField, RequestId};

/// What identifies a JSON-RPC message, read from a text that was never held as a whole.
///
/// Names and ids spelled with more than [`Outline::MAX_VALUE_BYTES`] count as absent (an id: as invalid). Of text that is
/// no JSON it holds what could be read up to the first fault at the two levels that are followed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "five independent facts about one text"
)]
pub struct Outline {
    /// The `id` member; its spelling is left out when it is invalid.
    pub id: IdField,
    /// The `method` member, if a string.
    pub method: Option<String>,
    /// Whether there is a `result`.
    pub has_result: bool,
    /// Whether there is an `error` (`"error": null` next to a result is none).
    pub has_error: bool,
    /// Whether `result.isError` is `true`.
    pub is_error: bool,
    /// `result.resultType`, if a string.
    pub result_type: Option<String>,
    /// `params.name`, if a string.
    pub tool: Option<String>,
    /// The message is an array: a batch, whose members are not outlined.
    pub is_array: bool,
    /// The outermost value was closed and nothing but blanks came after it.
    pub complete: bool,
}

impl Outline {
    /// Longest spelling of an id or a name that is kept.
    pub const MAX_VALUE_BYTES: usize = 4096;
}

/// Longest spelling of a member name that matters: `"resultType"`, each letter as `\u….`.
const MAX_NAME_BYTES: usize = 2 + 10 * 6;

/// Reads a message in pieces.
#[derive(Debug, Default)]
pub(super) struct Scanner {
    outline: Outline,
    error_is_null: bool,
    /// Followed containers around this place.
    level: Level,
    expect: Expect,
    token: Token,
    /// Which member the value at hand belongs to.
    member: Member,
    /// Spelling of the name or value at hand.
    spelling: Spelling,
}

/// Where the scanner is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Level {
    /// Before or after the outermost value.
    #[default]
    Outside,
    /// In the message.
    Message,
    /// In the message's `params`.
    Params,
    /// In the message's `result`.
    Result,
}

/// What the grammar allows next, between tokens of a followed container.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Expect {
    #[default]
    Value,
    NameOrEnd,
    Name,
    Colon,
    CommaOrEnd,
    /// Blanks only.
    End,
    /// Nothing: there was a fault.
    Fault,
}

/// What the last byte left open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Token {
    #[default]
    None,
    /// A string; a name when `name`, else a value.
    String { name: bool, escaped: bool },
    /// A number or a literal.
    Scalar,
    /// A container that is skipped, and `depth` more in it.
    Skipped {
        depth: u64,
        string: bool,
        escaped: bool,
    },
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Member {
    #[default]
    Other,
    Id,
    Method,
    Params,
    Result,
    Error,
    Tool,
    IsError,
    ResultType,
}

/// A token's bytes as far as they may matter.
#[derive(Debug, Default)]
struct Spelling {
    bytes: Vec<u8>,
    limit: usize,
    cut: bool,
}

impl Spelling {
    fn start(&mut self, limit: usize) {
        self.bytes.clear();
        self.limit = limit;
        self.cut = false;
    }

    fn push(&mut self, bytes: &[u8]) {
        if self.cut || self.bytes.len() + bytes.len() > self.limit {
            self.cut = true;
        } else {
            self.bytes.extend_from_slice(bytes);
        }
    }

    fn get(&self) -> Option<&str> {
        std::str::from_utf8(&self.bytes).ok().filter(|_| !self.cut)
    }

    fn text(&self) -> Option<String> {
        self.get()
            .and_then(string_text)
            .map(std::borrow::Cow::into_owned)
    }
}

impl Scanner {
    /// Reads on.
    pub(super) fn push(&mut self, mut bytes: &[u8]) {
        while let [first, rest @ ..] = bytes {
            if self.expect == Expect::Fault {
                return;
            }
            bytes = match self.token {
                Token::None => self.between(*first, bytes, rest),
                Token::String { name, escaped } => self.in_string(name, escaped, bytes),
                Token::Scalar => self.in_scalar(bytes),
                Token::Skipped {
                    depth,
                    string,
                    escaped,
                } => self.in_skipped(depth, string, escaped, bytes),
            };
        }
    }

    /// Ends the message and starts over.
    pub(super) fn finish(&mut self) -> Outline {
        let mut outline = std::mem::take(&mut self.outline);
        outline.complete = self.expect == Expect::End;
        outline.has_error &= !(self.error_is_null && outline.has_result);
        let spelling = std::mem::take(&mut self.spelling);
        *self = Self {
            spelling,
            ..Self::default()
        };
        outline
    }

    /// One byte between tokens; returns what is left to read.
    fn between<'b>(&mut self, byte: u8, bytes: &'b [u8], rest: &'b [u8]) -> &'b [u8] {
        match (self.expect, byte) {
            (_, b' ' | b'\t' | b'\n' | b'\r') => {}
            // A byte order mark.
            (Expect::Value, 0xEF | 0xBB | 0xBF) if self.level == Level::Outside => {}
            (Expect::NameOrEnd | Expect::Name, b'"') => {
                self.spelling.start(MAX_NAME_BYTES);
                self.spelling.push(b"\"");
                self.token = Token::String {
                    name: true,
                    escaped: false,
                };
            }
            (Expect::Colon, b':') => self.expect = Expect::Value,
            (Expect::CommaOrEnd, b',') => self.expect = Expect::Name,
            (Expect::NameOrEnd | Expect::CommaOrEnd, b'}') => {
                (self.level, self.expect) = match self.level {
                    Level::Params | Level::Result => (Level::Message, Expect::CommaOrEnd),
                    Level::Message | Level::Outside => (Level::Outside, Expect::End),
                };
            }
            (Expect::Value, b'{' | b'[') => self.open(byte),
            (Expect::Value, b'"') if self.level != Level::Outside => {
                self.spelling.start(self.wanted());
                self.spelling.push(b"\"");
                self.token = Token::String {
                    name: false,
                    escaped: false,
                };
            }
            (Expect::Value, b'-' | b'0'..=b'9' | b't' | b'f' | b'n')
                if self.level != Level::Outside =>
            {
                self.spelling.start(self.wanted());
                self.token = Token::Scalar;
                return bytes;
            }
            _ => self.expect = Expect::Fault,
        }
        rest
    }

    fn open(&mut self, byte: u8) {
        let level = match (self.level, self.member) {
            (Level::Outside, _) => Level::Message,
            (Level::Message, Member::Params) => Level::Params,
            (Level::Message, Member::Result) => Level::Result,
            _ => Level::Outside,
        };
        if byte == b'{' && level != Level::Outside {
            (self.level, self.expect) = (level, Expect::NameOrEnd);
            return;
        }
        if self.level == Level::Outside {
            self.outline.is_array = true;
        }
        self.token = Token::Skipped {
            depth: 0,
            string: false,
            escaped: false,
        };
    }

    fn in_string<'b>(&mut self, name: bool, escaped: bool, bytes: &'b [u8]) -> &'b [u8] {
        // After a backslash one byte is taken whatever it is; `\u` needs no more care, hex digits end nothing.
        let from = usize::from(escaped);
        let Some((kept, found)) = bytes
            .get(from..)
            .and_then(|rest| Some((from, memchr2(b'"', b'\\', rest)?)))
        else {
            self.spelling.push(bytes);
            self.token = Token::String {
                name,
                escaped: false,
            };
            return &[];
        };
        let (token, rest) = bytes.split_at(kept + found + 1);
        self.spelling.push(token);
        if token.ends_with(b"\\") {
            self.token = Token::String {
                name,
                escaped: true,
            };
        } else {
            self.token = Token::None;
            if name {
                self.name_done();
            } else {
                self.value_done();
            }
        }
        rest
    }

    fn in_scalar<'b>(&mut self, bytes: &'b [u8]) -> &'b [u8] {
        let ends = |byte: &u8| {
            matches!(
                byte,
                b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r' | b'"' | b':' | b'{' | b'['
            )
        };
        let (token, rest) = bytes.split_at(bytes.iter().position(ends).unwrap_or(bytes.len()));
        self.spelling.push(token);
        if !rest.is_empty() {
            self.token = Token::None;
            self.value_done();
        }
        rest
    }

    fn in_skipped<'b>(
        &mut self,
        mut depth: u64,
        mut string: bool,
        mut escaped: bool,
        mut bytes: &'b [u8],
    ) -> &'b [u8] {
        loop {
            if string {
                let from = usize::from(escaped);
                let Some(found) = bytes
                    .get(from..)
                    .and_then(|rest| memchr2(b'"', b'\\', rest))
                else {
                    escaped &= bytes.is_empty();
                    break;
                };
                escaped = bytes.get(from + found) == Some(&b'\\');
                string = escaped;
                bytes = bytes.get(from + found + 1..).unwrap_or_default();
                continue;
            }
            let structural = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
            let Some(found) = bytes.iter().position(structural) else {
                break;
            };
            let (token, rest) = bytes.split_at(found + 1);
            bytes = rest;
            match token.last() {
                Some(b'"') => string = true,
                Some(b'{' | b'[') => depth += 1,
                _ if depth > 0 => depth -= 1,
                _ => {
                    self.token = Token::None;
                    self.spelling.start(0);
                    self.spelling.push(b"{");
                    self.value_done();
                    return bytes;
                }
            }
        }
        self.token = Token::Skipped {
            depth,
            string,
            escaped,
        };
        &[]
    }

    /// How much of the value at hand matters.
    fn wanted(&self) -> usize {
        match self.member {
            Member::Other | Member::Params | Member::Result => 0,
            Member::IsError | Member::Error => 5,
            Member::Id | Member::Method | Member::Tool | Member::ResultType => {
                Outline::MAX_VALUE_BYTES
            }
        }
    }

    fn name_done(&mut self) {
        self.expect = Expect::Colon;
        let name = self.spelling.get().and_then(string_text);
        self.member = match (self.level, name.as_deref()) {
            (Level::Message, Some("id")) => Member::Id,
            (Level::Message, Some("method")) => Member::Method,
            (Level::Message, Some("params")) => Member::Params,
            (Level::Message, Some("result")) => Member::Result,
            (Level::Message, Some("error")) => Member::Error,
            (Level::Params, Some("name")) => Member::Tool,
            (Level::Result, Some("isError")) => Member::IsError,
            (Level::Result, Some("resultType")) => Member::ResultType,
            _ => Member::Other,
        };
        // Of a repeated member the last one counts, with all that is in it.
        match self.member {
            Member::Params => self.outline.tool = None,
            Member::Result => {
                self.outline.has_result = true;
                (self.outline.is_error, self.outline.result_type) = (false, None);
            }
            Member::Error => self.outline.has_error = true,
            _ => {}
        }
    }

    /// A value that was not followed has ended; its spelling is at hand unless it was a container.
    fn value_done(&mut self) {
        self.expect = if self.level == Level::Outside {
            Expect::End
        } else {
            Expect::CommaOrEnd
        };
        let spelling = &self.spelling;
        match self.member {
            Member::Id => {
                self.outline.id = match spelling.get() {
                    Some("null") => IdField::Null,
                    raw => raw
                        .and_then(RequestId::from_raw_json)
                        .map_or(IdField::Invalid("".into()), IdField::Id),
                };
            }
            Member::Method => self.outline.method = spelling.text(),
            Member::Tool => self.outline.tool = spelling.text(),
            Member::ResultType => self.outline.result_type = spelling.text(),
            Member::IsError => self.outline.is_error = spelling.get() == Some("true"),
            Member::Error => self.error_is_null = spelling.get() == Some("null"),
            Member::Other | Member::Params | Member::Result => {}
        }
    }
}
