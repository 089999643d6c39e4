//! Request targets and the part of a URL after its authority: path and query, read percent-decoded, kept as written.

use super::bytes::{part, run};
use super::content::About;
use super::edit::{self, Edit, Spelling};
use super::placeholder::{self, Kind};
use super::{Detector, Redactor};

/// A path and query inside a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct Target {
    /// Where it starts in the text that is edited.
    pub(super) base: usize,
    pub(super) about: About,
    /// Session ids work as credentials here: they are replaced.
    pub(super) sessions: bool,
}

impl Redactor {
    /// Pushes what is to be replaced in a path and query.
    pub(super) fn target_edits(&self, text: &[u8], target: Target, edits: &mut Vec<Edit>) {
        let separates = |byte: u8| b"?&#".contains(&byte);
        let mut start = run(text, 0, |byte| !separates(byte));
        self.coded(text, (0, start), Spelling::Percent, target, edits);
        while start < text.len() {
            let name = start + 1;
            start = run(text, name, |byte| !separates(byte));
            self.parameter(text, (name, start), target, edits);
        }
    }

    fn parameter(
        &self,
        text: &[u8],
        (start, end): (usize, usize),
        target: Target,
        edits: &mut Vec<Edit>,
    ) {
        let equals = run(part(text, 0, end), start, |byte| byte != b'=');
        let name = edit::decode(part(text, start, equals), Spelling::Form);
        let value = (equals + 1, end);
        self.coded(text, (start, equals), Spelling::Form, target, edits);
        if value.0 >= end {
            return;
        }
        let facts = self.keys.facts(&name);
        let kind = if target.about.names && facts.secret {
            Kind::Key
        } else if self.on(Detector::UrlCredential) && self.parameters.facts(&name).secret {
            Kind::Url
        } else if target.sessions && is_session(&name) {
            Kind::Session
        } else {
            let about = About {
                facts,
                ..target.about
            };
            let target = Target { about, ..target };
            self.coded(text, value, Spelling::Form, target, edits);
            return;
        };
        let written = part(text, value.0, value.1);
        if !placeholder::is_whole(written) {
            let decoded = edit::decode(written, Spelling::Form);
            edits.push(Edit {
                start: target.base + value.0,
                end: target.base + value.1,
                with: self.mint.placeholder(kind, &decoded),
            });
        }
    }

    fn coded(
        &self,
        text: &[u8],
        (start, end): (usize, usize),
        spelling: Spelling,
        target: Target,
        edits: &mut Vec<Edit>,
    ) {
        let written = part(text, start, end);
        let decoded = edit::decode(written, spelling);
        let mut found = Vec::new();
        self.content(&decoded, target.about, &[], &mut found);
        if !found.is_empty() {
            edit::carry(written, spelling, target.base + start, found, edits);
        }
    }
}

/// Names under which servers hand out session ids in URLs: the endpoint URI of the 2024-11-05 transport and its kin.
fn is_session(name: &[u8]) -> bool {
    let plain: Vec<u8> = name
        .iter()
        .filter(|byte| byte.is_ascii_alphanumeric())
        .map(u8::to_ascii_lowercase)
        .collect();
    matches!(
        &*plain,
        b"sessionid" | b"session" | b"mcpsessionid" | b"sid" | b"jsessionid" | b"phpsessid"
    )
}
