//! A peek into `result`, and into what speaks of a task.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::members::{each_member, present, text};
use super::meta::Meta;

/// The members of a result that correlation reads, whatever was asked.
#[derive(Clone, Debug, Default)]
pub struct ResultFacts<'a> {
    /// `isError` is `true`.
    pub is_error: bool,
    /// There is a `content` or `structuredContent`: what a tool returned.
    pub has_content: bool,
    /// `resultType`: `complete`, `input_required`, `task` or another (modern).
    pub result_type: Option<Cow<'a, str>>,
    /// `requestState` of an interim result.
    pub request_state: Option<Cow<'a, str>>,
    /// `inputRequests` of an interim result, or of a task that waits.
    pub input_requests: Option<&'a RawValue>,
    /// The task it speaks of: its own members, or those of a `task` member.
    pub task: Option<TaskFacts<'a>>,
    /// `tools` of a list.
    pub tools: Option<&'a RawValue>,
    /// `nextCursor`; an empty one is a cursor.
    pub next_cursor: Option<Cow<'a, str>>,
    /// `protocolVersion` of an initialize result.
    pub protocol_version: Option<Cow<'a, str>>,
    /// `action` of an elicitation's answer.
    pub action: Option<Cow<'a, str>>,
    /// Task id in `_meta`.
    pub related_task: Option<Cow<'a, str>>,
}

/// A task's state as told by a result or a notification.
#[derive(Clone, Debug, Default)]
pub struct TaskFacts<'a> {
    /// `taskId`
    pub id: Cow<'a, str>,
    /// `status`
    pub status: Option<TaskStatus>,
    /// `result` once completed (modern).
    pub result: Option<&'a RawValue>,
    /// `error` once failed (modern).
    pub error: Option<&'a RawValue>,
}

/// `status` of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// `working`, or one not known yet.
    Working,
    /// `input_required`
    InputRequired,
    /// `completed`
    Completed,
    /// `failed`
    Failed,
    /// `cancelled`
    Cancelled,
}

impl TaskStatus {
    fn of(status: &str) -> Self {
        match status {
            "input_required" => Self::InputRequired,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            "cancelled" => Self::Cancelled,
            _ => Self::Working,
        }
    }
}

impl<'a> TaskFacts<'a> {
    /// Reads an object that may have `taskId`; none without one.
    pub fn of(raw: &'a RawValue) -> Option<Self> {
        let (mut task, mut id) = (Self::default(), None);
        each_member(raw.get(), |name, value| {
            if name == "taskId" {
                id = text(value);
            } else {
                task.member(name, value);
            }
        });
        id.map(|id| Self { id, ..task })
    }

    fn member(&mut self, name: &str, value: &'a RawValue) {
        match name {
            "status" => self.status = text(value).map(|status| TaskStatus::of(&status)),
            "result" => self.result = Some(value),
            "error" => self.error = present(value),
            _ => {}
        }
    }
}

impl<'a> ResultFacts<'a> {
    /// Reads a `result` member.
    pub fn of(raw: &'a RawValue) -> Self {
        let mut facts = Self::default();
        let (mut flat, mut flat_id, mut nested) = (TaskFacts::default(), None, None);
        each_member(raw.get(), |name, value| match name {
            "isError" => facts.is_error = value.get() == "true",
            "content" | "structuredContent" => facts.has_content = true,
            "resultType" => facts.result_type = text(value),
            "requestState" => facts.request_state = text(value),
            "inputRequests" => facts.input_requests = present(value),
            "task" => nested = TaskFacts::of(value),
            "taskId" => flat_id = text(value),
            "tools" => facts.tools = Some(value),
            "nextCursor" => facts.next_cursor = text(value),
            "protocolVersion" => facts.protocol_version = text(value),
            "action" => facts.action = text(value),
            "_meta" => facts.related_task = Meta::of(value).related_task,
            _ => flat.member(name, value),
        });
        facts.task = nested.or_else(|| flat_id.map(|id| TaskFacts { id, ..flat }));
        facts
    }

    /// The result asks for input before the call can go on.
    pub fn is_interim(&self) -> bool {
        self.result_type.as_deref() == Some("input_required")
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    fn raw(text: &str) -> &RawValue {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_tool_may_return_members_that_look_like_a_tasks() {
        let facts = ResultFacts::of(raw(r#"{"content":[],"status":"failed","result":1}"#));
        assert!(facts.task.is_none(), "no task without an id");
        assert!(!facts.is_error);
    }

    #[test]
    fn both_forms_of_a_task_are_read() {
        let core = ResultFacts::of(raw(r#"{"task":{"taskId":"t","status":"working"}}"#));
        assert_eq!(core.task.unwrap().id, "t");
        let flat = ResultFacts::of(raw(
            r#"{"resultType":"complete","taskId":"t","status":"completed","result":{"isError":true}}"#,
        ));
        let task = flat.task.unwrap();
        assert_eq!(task.status, Some(TaskStatus::Completed));
        assert!(ResultFacts::of(task.result.unwrap()).is_error);
    }

    #[test]
    fn is_error_is_a_boolean() {
        assert!(ResultFacts::of(raw(r#"{"isError":true}"#)).is_error);
        assert!(!ResultFacts::of(raw(r#"{"isError":"true"}"#)).is_error);
        assert!(!ResultFacts::of(raw("null")).is_error);
    }
}
