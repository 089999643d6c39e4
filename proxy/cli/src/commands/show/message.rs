//! The other messages of a session in a few words each: what a reader of a timeline wants to know about what happened
//! between the calls.

use callbox_store::{Direction, Message};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::answer::one_line;
use crate::json::{Members, assignments, compact};
use crate::text::visible;
use crate::words;

/// One or more messages that belong together: a request and its answer, or the same notification again and again.
pub(super) struct Note<'a> {
    pub(super) first: &'a Message,
    pub(super) answer: Option<&'a Message>,
    pub(super) times: usize,
}

/// Pairs requests with answers, and counts what repeats.
pub(super) fn notes<'a>(messages: impl IntoIterator<Item = &'a Message>) -> Vec<Note<'a>> {
    let mut notes: Vec<Note<'a>> = Vec::new();
    for message in messages {
        if message.kind == "response"
            && let Some(note) = notes.iter_mut().rev().find(|note| note.asks(message))
        {
            note.answer = Some(message);
            continue;
        }
        match notes.last_mut() {
            Some(last) if last.repeats(message) => last.times += 1,
            _ => notes.push(Note {
                first: message,
                answer: None,
                times: 1,
            }),
        }
    }
    notes
}

impl Note<'_> {
    /// Whether `answer` answers this.
    fn asks(&self, answer: &Message) -> bool {
        let spelled = |message: &Message| message.jsonrpc_id.as_ref().map(|id| id.get().to_owned());
        self.first.kind == "request"
            && self.answer.is_none()
            && self.first.direction != answer.direction
            && spelled(self.first) == spelled(answer)
            && (answer.method.is_none() || answer.method == self.first.method)
    }

    /// Whether `message` is one more of the same. Log lines and the like have their own words and stay apart.
    fn repeats(&self, message: &Message) -> bool {
        let counted =
            |method: &str| matches!(method, "ping" | "notifications/progress" | "tasks/get");
        self.first.method == message.method
            && self.first.kind == message.kind
            && self.first.direction == message.direction
            && message.method.as_deref().is_some_and(counted)
    }

    /// Whether nobody misses it: a step of every session that went as it always does.
    pub(super) fn is_routine(&self) -> bool {
        self.first.method.as_deref() == Some("notifications/initialized") && self.flags().is_empty()
    }

    /// Whether a person was asked.
    pub(super) fn is_elicitation(&self) -> bool {
        self.first.method.as_deref() == Some("elicitation/create")
    }

    /// What it was: the method, or the kind where there is none.
    pub(super) fn name(&self) -> String {
        let method = self.first.method.as_deref().unwrap_or(&self.first.kind);
        let name = method.strip_prefix("notifications/").unwrap_or(method);
        let times = if self.times > 1 {
            format!(" ×{}", self.times)
        } else {
            String::new()
        };
        format!("{}{times}", visible(name))
    }

    /// Who sent it.
    pub(super) fn arrow(&self) -> &'static str {
        match self.first.direction {
            Direction::ClientToServer => "->",
            Direction::ServerToClient => "<-",
        }
    }

    /// The words beside the name, about `room` bytes at most.
    pub(super) fn detail(&self, room: usize) -> String {
        let body = self.first.body.as_deref();
        let answer = self.answer.and_then(|answer| answer.body.as_deref());
        let asked = match (self.first.method.as_deref(), self.first.kind.as_str()) {
            (Some("initialize"), "request") => {
                return joined(&[hello(body), hello(answer)], " -> ");
            }
            (Some("elicitation/create"), "request") => member(body, "message", room),
            (Some("notifications/cancelled"), _) => joined(
                &[
                    member(body, "requestId", room),
                    member(body, "reason", room),
                ],
                ": ",
            ),
            (Some("notifications/message"), _) => joined(
                &[member(body, "level", room), member(body, "data", room)],
                ": ",
            ),
            (Some("notifications/progress"), _) if self.times > 1 => String::new(),
            (_, "http") => self
                .first
                .http_status
                .map(|status| status.to_string())
                .unwrap_or_default(),
            _ => body
                .map(|body| assignments(body.get(), room))
                .unwrap_or_default(),
        };
        joined(&[asked, self.told(answer, room)], " -> ")
    }

    /// The facts worth a flag, of question and answer.
    pub(super) fn flags(&self) -> Vec<&str> {
        let answer = self
            .answer
            .map(|answer| answer.flags.as_slice())
            .unwrap_or_default();
        self.first
            .flags
            .iter()
            .chain(answer)
            .map(String::as_str)
            .collect()
    }

    fn told(&self, answer: Option<&RawValue>, room: usize) -> String {
        let Some(answer) = answer else {
            return String::new();
        };
        if let Some(error) = error(answer, room) {
            return error;
        }
        match self.first.method.as_deref() {
            Some("elicitation/create") => joined(
                &[
                    member(Some(answer), "action", room),
                    member(Some(answer), "content", room),
                ],
                " ",
            ),
            Some(method) => match counted(answer, method) {
                Some(list) => list,
                None => assignments(answer.get(), room),
            },
            None => assignments(answer.get(), room),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Hello {
    protocol_version: Option<String>,
    client_info: Option<Implementation>,
    server_info: Option<Implementation>,
}

#[derive(Deserialize)]
struct Implementation {
    name: String,
    version: Option<String>,
}

/// `claude-desktop 2.1, 2025-11-25`
fn hello(body: Option<&RawValue>) -> String {
    let hello: Hello = body
        .and_then(|body| serde_json::from_str(body.get()).ok())
        .unwrap_or_default();
    let who = hello
        .client_info
        .or(hello.server_info)
        .map(|Implementation { name, version }| {
            words::client(&callbox_store::Client { name, version })
        });
    let revision = hello
        .protocol_version
        .map(|revision| visible(&revision).into_owned());
    joined(
        &[who.unwrap_or_default(), revision.unwrap_or_default()],
        ", ",
    )
}

/// `12 tools`, for the lists of MCP.
fn counted(answer: &RawValue, method: &str) -> Option<String> {
    let list = method.strip_suffix("/list")?.rsplit('/').next()?;
    let Members(members) = serde_json::from_str(answer.get()).ok()?;
    let (_, items) = members
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(list))?;
    let items: Vec<&RawValue> = serde_json::from_str(items.get()).ok()?;
    Some(format!("{} {}", items.len(), visible(list)))
}

/// A JSON-RPC error in an answer.
fn error(answer: &RawValue, room: usize) -> Option<String> {
    #[derive(Deserialize)]
    struct Error {
        code: i64,
        message: String,
    }
    let Error { code, message } = serde_json::from_str(answer.get()).ok()?;
    Some(format!("error {code} {}", one_line(&message, room)))
}

/// A member of an object: a text without its quotes, anything else as it is spelled.
fn member(body: Option<&RawValue>, name: &str, room: usize) -> String {
    let Some(Ok(Members(members))) = body.map(|body| serde_json::from_str(body.get())) else {
        return String::new();
    };
    let Some((_, value)) = members.into_iter().find(|(found, _)| found == name) else {
        return String::new();
    };
    match serde_json::from_str::<String>(value.get()) {
        Ok(text) => one_line(&text, room),
        Err(_) => compact(value.get(), room),
    }
}

fn joined(parts: &[String], between: &str) -> String {
    let parts: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    parts.join(between)
}
