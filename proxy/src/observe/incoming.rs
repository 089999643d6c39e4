//! One JSON-RPC message as the observer reads it: whole, or cut with what is known of it.

use std::borrow::Cow;

use callbox_wire::collect::Overflow;
use callbox_wire::rpc::{self, Body, DecodeError, IdField, Kind};
use serde_json::value::RawValue;

use super::body::Text;

/// A message in one direction.
#[derive(Debug)]
pub(super) struct Incoming<'a> {
    pub(super) kind: Kind,
    pub(super) id: IdField,
    pub(super) method: Option<Cow<'a, str>>,
    pub(super) params: Option<&'a RawValue>,
    pub(super) result: Option<&'a RawValue>,
    pub(super) error: Option<&'a RawValue>,
    /// Whole text, or what there is of it.
    pub(super) text: &'a [u8],
    /// Length of the whole text.
    pub(super) bytes: u64,
    /// Set when it was cut.
    pub(super) cut: Option<&'a Overflow>,
    pub(super) duplicate_members: bool,
    pub(super) not_v2: bool,
}

impl<'a> Incoming<'a> {
    fn whole(message: rpc::Message<'a>) -> Self {
        Self {
            kind: message.kind,
            id: message.id,
            method: message.method,
            params: message.params,
            result: message.result,
            error: message.error,
            text: message.text.as_bytes(),
            bytes: message.text.len() as u64,
            cut: None,
            duplicate_members: message.duplicate_members,
            not_v2: message.not_v2,
        }
    }

    fn cut(text: &'a Text, overflow: &'a Overflow) -> Self {
        let outline = &overflow.outline;
        let answers = outline.has_result || outline.has_error;
        let kind = match (&outline.id, &outline.method, answers) {
            (_, None, true) => Kind::Response,
            (IdField::Missing, Some(_), false) => Kind::Notification,
            (IdField::Id(_) | IdField::Null, Some(_), false) => Kind::Request,
            _ => Kind::Invalid,
        };
        Self {
            kind,
            id: outline.id.clone(),
            method: outline.method.as_deref().map(Cow::Borrowed),
            params: None,
            result: None,
            error: None,
            text: text.bytes(),
            bytes: text.len(),
            cut: Some(overflow),
            duplicate_members: false,
            not_v2: false,
        }
    }

    /// An answer that is an error.
    pub(super) fn is_error(&self) -> bool {
        match self.cut {
            Some(overflow) => overflow.outline.has_error,
            None => self.error.is_some(),
        }
    }

    /// Whether its text ends where a message ends.
    pub(super) fn is_complete(&self) -> bool {
        self.cut.is_none_or(|overflow| overflow.outline.complete)
    }
}

/// The messages of one body or event, and whether they are a batch.
///
/// # Errors
///
/// When it is no JSON object or array.
pub(super) fn read(text: &Text) -> Result<(Vec<Incoming<'_>>, bool), DecodeError> {
    if let Some(overflow) = text.overflow() {
        return Ok((
            vec![Incoming::cut(text, overflow)],
            overflow.outline.is_array,
        ));
    }
    Ok(match rpc::parse(text.bytes())? {
        Body::One(message) => (vec![Incoming::whole(message)], false),
        Body::Batch(messages) => (messages.into_iter().map(Incoming::whole).collect(), true),
    })
}
