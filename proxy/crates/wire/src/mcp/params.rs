//! A peek into `params` of requests and notifications.

use std::borrow::Cow;

use serde_json::value::RawValue;

use super::members::{each_member, id, present, text};
use super::meta::Meta;
use crate::rpc::RequestId;

/// The members of `params` that correlation reads, whatever the method.
#[derive(Clone, Debug, Default)]
pub struct Params<'a> {
    /// `name`: tool or prompt.
    pub name: Option<Cow<'a, str>>,
    /// `uri`
    pub uri: Option<Cow<'a, str>>,
    /// `arguments`, as spelled.
    pub arguments: Option<&'a RawValue>,
    /// `cursor`; an empty one is a cursor.
    pub cursor: Option<Cow<'a, str>>,
    /// `taskId`
    pub task_id: Option<Cow<'a, str>>,
    /// A `task` object: the client asks for a task (2025-11-25).
    pub wants_task: bool,
    /// `inputResponses` of a further leg.
    pub input_responses: Option<&'a RawValue>,
    /// `requestState` of a further leg.
    pub request_state: Option<Cow<'a, str>>,
    /// `requestId` of a cancellation.
    pub request_id: Option<RequestId>,
    /// `reason` of a cancellation.
    pub reason: Option<Cow<'a, str>>,
    /// `progressToken` of a progress notification.
    pub progress_token: Option<RequestId>,
    /// `protocolVersion` of `initialize`.
    pub protocol_version: Option<Cow<'a, str>>,
    /// `clientInfo` of `initialize`.
    pub client_info: Option<&'a RawValue>,
    /// `_meta`
    pub meta: Meta<'a>,
}

impl<'a> Params<'a> {
    /// Reads a `params` member; without one all is absent.
    pub fn of(raw: Option<&'a RawValue>) -> Self {
        let mut params = Self::default();
        let Some(raw) = raw else {
            return params;
        };
        each_member(raw.get(), |name, value| match name {
            "name" => params.name = text(value),
            "uri" => params.uri = text(value),
            "arguments" => params.arguments = Some(value),
            "cursor" => params.cursor = text(value),
            "taskId" => params.task_id = text(value),
            "task" => params.wants_task = value.get().starts_with('{'),
            "inputResponses" => params.input_responses = present(value),
            "requestState" => params.request_state = text(value),
            "requestId" => params.request_id = id(value),
            "reason" => params.reason = text(value),
            "progressToken" => params.progress_token = id(value),
            "protocolVersion" => params.protocol_version = text(value),
            "clientInfo" => params.client_info = Some(value),
            "_meta" => params.meta = Meta::of(value),
            _ => {}
        });
        params
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails loudly")]

    use super::*;

    #[test]
    fn spelling_of_arguments_is_kept() {
        let raw: &RawValue = serde_json::from_str(
            r#"{"name":"t","arguments":{"n":1.0,"m":1e400, "big":9007199254740993},"_meta":{"progressToken":"p"}}"#,
        )
        .unwrap();
        let params = Params::of(Some(raw));
        assert_eq!(params.name.as_deref(), Some("t"));
        assert_eq!(
            params.arguments.unwrap().get(),
            r#"{"n":1.0,"m":1e400, "big":9007199254740993}"#
        );
        assert_eq!(params.meta.progress_token.unwrap().as_raw_json(), r#""p""#);
    }

    #[test]
    fn an_empty_cursor_is_one() {
        let raw: &RawValue = serde_json::from_str(r#"{"cursor":""}"#).unwrap();
        assert_eq!(Params::of(Some(raw)).cursor.as_deref(), Some(""));
        assert_eq!(Params::of(None).cursor, None);
    }
}
