//! What the name of a member tells about its value: secret, correlation, schema, or one half of a name and value pair.

use super::keys::{KeyFacts, KeyTable};
use super::placeholder::Kind;

/// Members of this object are the protocol's own, and some are correlation.
pub(super) const PROTOCOL: u8 = 1;
/// The top level of messages.
pub(super) const TOP: u8 = 2;
/// Inside a JSON Schema.
const SCHEMA: u8 = 4;
/// Members are properties that a schema defines: their names are no keys.
pub(super) const PROPERTIES: u8 = 8;

/// What is known about the value to come.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ahead {
    pub(super) hide: Option<Kind>,
    /// It defines a property of that name: an object or a literal is no secret.
    pub(super) defines: bool,
    /// Correlation: content rules do not apply.
    pub(super) exempt: bool,
    pub(super) facts: KeyFacts,
    pub(super) flags: u8,
    pub(super) pair: Pair,
    /// Where its pointers start on the stack of active ones.
    pub(super) active: usize,
}

/// The halves of `{"name": "Authorization", "value": "…"}`, as headers, variables and form fields are often listed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pair {
    #[default]
    None,
    Label,
    Value,
}

impl Ahead {
    /// What `name` tells, in an object that `parent` was known about. `names`: whether key rules apply.
    pub(super) fn of_member(name: &[u8], parent: Self, keys: &KeyTable, names: bool) -> Self {
        let mut facts = keys.facts(name);
        facts.secret &= names;
        let mut ahead = Self {
            hide: facts.secret.then_some(Kind::Key),
            facts,
            ..Self::default()
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
        } else if names {
            ahead.pair = pair(name);
        }
        ahead
    }
}

fn pair(name: &[u8]) -> Pair {
    let is = |word: &&[u8]| name.eq_ignore_ascii_case(word);
    if !(3..=9).contains(&name.len()) {
        Pair::None
    } else if [
        &b"name"[..],
        b"key",
        b"header",
        b"field",
        b"parameter",
        b"variable",
    ]
    .iter()
    .any(is)
    {
        Pair::Label
    } else if [&b"value"[..], b"values", b"val"].iter().any(is) {
        Pair::Value
    } else {
        Pair::None
    }
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
