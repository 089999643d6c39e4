//! JSON-RPC 2.0 messages: which kind, which id, and where their parts are.
//!
//! Parts are slices of the text that was read, so numbers, strings and unknown members keep their own spelling. Nothing is
//! judged by MCP's rules here, and nothing is rejected that a lenient peer would still understand.

mod id;
mod parse;

use std::borrow::Cow;

use serde_json::value::RawValue;

pub use self::id::{IdField, RequestId, StringId};
pub use self::parse::parse;
use crate::json::{each_member, string_text};

/// What one body or one event holds.
#[derive(Clone, Debug)]
pub enum Body<'a> {
    /// One message.
    One(Message<'a>),
    /// A batch (2025-03-26), also of one or none. An element that is no object is a [`Kind::Invalid`] message.
    Batch(Vec<Message<'a>>),
}

impl<'a> Body<'a> {
    /// The messages in their order.
    pub fn messages(&self) -> &[Message<'a>] {
        match self {
            Self::One(message) => std::slice::from_ref(message),
            Self::Batch(messages) => messages,
        }
    }
}

/// What a message is, by the members it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A method and an id; `null` is an id that MCP forbids, but JSON-RPC counts it.
    Request,
    /// A method and no id member.
    Notification,
    /// A result or an error; its id may be missing or `null` where the peer could not read the request's.
    Response,
    /// None of these: method next to result or error, a method that is no string, an id that is none, no member at all.
    Invalid,
}

/// One JSON-RPC message.
#[derive(Clone, Debug)]
pub struct Message<'a> {
    /// What it is.
    pub kind: Kind,
    /// The id as spelled.
    pub id: IdField,
    /// The method, if it is a string.
    pub method: Option<Cow<'a, str>>,
    /// `params` as spelled.
    pub params: Option<&'a RawValue>,
    /// `result` as spelled; `"result": null` is there.
    pub result: Option<&'a RawValue>,
    /// `error` as spelled; a `null` error next to a result is left out, as JSON-RPC 1.0 peers write it on success.
    pub error: Option<&'a RawValue>,
    /// A member named above came more than once; the last one counts, as for nearly all parsers.
    pub duplicate_members: bool,
    /// `jsonrpc` is missing or not `"2.0"`.
    pub not_v2: bool,
    /// The message's whole text.
    pub text: &'a str,
}

/// Why a text is no JSON-RPC body.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Not UTF-8 from here on.
    #[error("not UTF-8 at byte {offset}")]
    NotUtf8 {
        /// First byte that is not.
        offset: usize,
    },
    /// Not JSON.
    #[error("not JSON at byte {offset}: {what}")]
    Syntax {
        /// Byte where the parser stopped.
        offset: usize,
        /// What it found.
        what: String,
    },
    /// JSON, but neither an object nor an array.
    #[error("neither an object nor an array")]
    NotAnObject,
}

/// What can be told of an `error` member, whatever else is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorFacts {
    /// `code`, if an integer.
    pub code: Option<i64>,
    /// `message`, if a string.
    pub message: Option<String>,
}

impl ErrorFacts {
    /// Reads the facts; what is missing or of another type is left out.
    pub fn of(error: &RawValue) -> Self {
        let mut facts = Self::default();
        let not_an_object = each_member(error.get(), &mut |name, value| match name {
            "code" => facts.code = serde_json::from_str(value.get()).ok(),
            "message" => facts.message = string_text(value.get()).map(Cow::into_owned),
            _ => {}
        })
        .is_err();
        if not_an_object {
            Self::default()
        } else {
            facts
        }
    }
}
