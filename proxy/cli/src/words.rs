//! The log's closed sets in words and colours. A colour never says anything that the word does not.

use anstyle::{AnsiColor, Style};
use callbox_store::{Client, Outcome};
use serde::Serialize;

use crate::text::visible;

pub(crate) const PLAIN: Style = Style::new();
pub(crate) const BOLD: Style = Style::new().bold();
pub(crate) const DIM: Style = Style::new().dimmed();
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
pub(crate) const ID: Style = AnsiColor::Cyan.on_default();

/// Every outcome, in the order of the documentation.
pub(crate) const OUTCOMES: [Outcome; 11] = [
    Outcome::Ok,
    Outcome::ToolError,
    Outcome::RpcError,
    Outcome::HttpError,
    Outcome::Timeout,
    Outcome::Cancelled,
    Outcome::Aborted,
    Outcome::Lost,
    Outcome::Unreadable,
    Outcome::Pending,
    Outcome::Abandoned,
];

/// As the JSON form spells it.
pub(crate) fn outcome(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Ok => "ok",
        Outcome::ToolError => "tool_error",
        Outcome::RpcError => "rpc_error",
        Outcome::HttpError => "http_error",
        Outcome::Timeout => "timeout",
        Outcome::Cancelled => "cancelled",
        Outcome::Aborted => "aborted",
        Outcome::Lost => "lost",
        Outcome::Unreadable => "unreadable",
        Outcome::Pending => "pending",
        Outcome::Abandoned => "abandoned",
    }
}

pub(crate) fn outcome_style(outcome: Outcome) -> Style {
    match outcome {
        Outcome::Ok => GOOD,
        Outcome::Pending => PLAIN,
        Outcome::Cancelled | Outcome::Aborted | Outcome::Abandoned => ODD,
        Outcome::ToolError
        | Outcome::RpcError
        | Outcome::HttpError
        | Outcome::Timeout
        | Outcome::Lost
        | Outcome::Unreadable => BAD,
    }
}

/// Whether a call counts as failed: it concluded, and not well.
pub(crate) fn failed(outcome: Outcome) -> bool {
    !matches!(outcome, Outcome::Ok | Outcome::Pending)
}

/// Any other closed set, as the JSON form spells it.
pub(crate) fn name<T: Serialize>(value: T) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => name,
        _ => "?".to_owned(),
    }
}

/// `claude-desktop 2.1`
pub(crate) fn client(client: &Client) -> String {
    let version = client
        .version
        .as_deref()
        .map(|version| format!(" {}", visible(version)))
        .unwrap_or_default();
    format!("{}{version}", visible(&client.name))
}
