//! What came back from a tool, in words: one line for lists, and the exact text the model read for `show`. Understands
//! the content blocks of MCP results and falls back to the recorded JSON where a result is of another shape.

use callbox_store::{Call, RawJson};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Members, assignments, compact, is_json};
use crate::text::{count, visible};

/// The parts of a tool's result that are shown apart.
#[derive(Deserialize)]
struct ToolResult<'a> {
    #[serde(borrow, default)]
    content: Vec<&'a RawValue>,
    #[serde(borrow, default, rename = "structuredContent")]
    structured: Option<&'a RawValue>,
    #[serde(default, rename = "resultType")]
    result_type: Option<String>,
    #[serde(borrow, default, rename = "inputRequests")]
    input_requests: Option<&'a RawValue>,
    #[serde(borrow, default)]
    task: Option<&'a RawValue>,
}

/// A content block; members that a kind does not have are missing.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    #[serde(rename = "mimeType")]
    mime_type: Option<String>,
    uri: Option<String>,
    resource: Option<Box<Block>>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
}

/// One line about what came back, about `room` bytes at most. Empty when nothing did.
pub(crate) fn summary(call: &Call, room: usize) -> String {
    match (&call.error, &call.result) {
        (Some(error), _) => error_line(error, room),
        (None, Some(result)) => result_line(result, room),
        (None, None) => String::new(),
    }
}

/// The exact text of an error: a JSON-RPC error's code and message, or what an HTTP answer without one said.
pub(crate) fn error_text(error: &RawJson) -> String {
    match serde_json::from_str(error.get()) {
        Ok(RpcError { code, message }) => format!("{code} {message}"),
        Err(_) => serde_json::from_str(error.get()).unwrap_or_else(|_| error.get().to_owned()),
    }
}

/// A part of a result that is shown apart.
pub(crate) enum Part<'a> {
    /// A text block: what the model read.
    Text(String),
    /// Anything else, under its name.
    Json { title: String, json: &'a str },
}

/// A result in parts: its content blocks, then its other members. One part when it is of another shape.
pub(crate) fn parts(result: &RawJson) -> Vec<Part<'_>> {
    let whole = || {
        vec![Part::Json {
            title: "result".to_owned(),
            json: result.get(),
        }]
    };
    let Ok(Members(members)) = serde_json::from_str::<Members<'_>>(result.get()) else {
        return whole();
    };
    let mut blocks = Vec::new();
    let mut others = Vec::new();
    for (name, value) in members {
        match name.as_str() {
            "content" => {
                let Ok(content) = serde_json::from_str::<Vec<&RawValue>>(value.get()) else {
                    return whole();
                };
                blocks.extend(content.into_iter().map(|block| {
                    let Block { kind, text, .. } = parse(block);
                    match text {
                        Some(text) if kind == "text" => Part::Text(text),
                        _ => Part::Json {
                            title: format!("result {}", visible(&kind)).trim_end().to_owned(),
                            json: block.get(),
                        },
                    }
                }));
            }
            // The outcome says it.
            "isError" => {}
            _ => others.push(Part::Json {
                title: format!("result {}", visible(&name)),
                json: value.get(),
            }),
        }
    }
    blocks.append(&mut others);
    if blocks.is_empty() { whole() } else { blocks }
}

fn error_line(error: &RawJson, room: usize) -> String {
    if let Ok(RpcError { code, message }) = serde_json::from_str(error.get()) {
        return format!("{code} {}", one_line(&message, room));
    }
    match serde_json::from_str::<String>(error.get()) {
        Ok(text) => one_line(&text, room),
        Err(_) => compact(error.get(), room),
    }
}

fn result_line(result: &RawJson, room: usize) -> String {
    let Ok(parsed) = serde_json::from_str::<ToolResult<'_>>(result.get()) else {
        return compact(result.get(), room);
    };
    if parsed.result_type.as_deref() == Some("input_required") {
        let asked = parsed
            .input_requests
            .map(|asked| compact(asked.get(), room))
            .unwrap_or_default();
        return format!("input required {asked}").trim_end().to_owned();
    }
    let mut blocks = parsed
        .content
        .iter()
        .map(|block| parse(block))
        .map(|block| block_line(&block, room));
    let mut line = match (blocks.next(), parsed.structured, parsed.task) {
        (Some(first), _, _) => first,
        (None, Some(structured), _) => assignments(structured.get(), room),
        (None, None, Some(task)) => format!("task {}", assignments(task.get(), room)),
        (None, None, None) => return compact(result.get(), room),
    };
    let more = blocks.count();
    if more > 0 {
        line += " (+";
        line += &count(more as u64);
        line.push(')');
    }
    line
}

fn parse(block: &RawValue) -> Block {
    // A block of another shape is shown by its absence of text, not by an error.
    serde_json::from_str(block.get()).unwrap_or_default()
}

fn block_line(block: &Block, room: usize) -> String {
    if let Some(text) = &block.text {
        return if is_json(text) {
            compact(text, room)
        } else {
            one_line(text, room)
        };
    }
    let about = block.resource.as_deref().unwrap_or(block);
    let name = about
        .uri
        .as_deref()
        .or(about.mime_type.as_deref())
        .unwrap_or("");
    format!(
        "[{}]",
        one_line(&format!("{} {name}", block.kind), room).trim_end()
    )
}

/// Any text on one line: runs of white space become one space.
pub(crate) fn one_line(text: &str, room: usize) -> String {
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        for c in word.chars() {
            line.push(c);
            if line.len() > room {
                line.push('…');
                return visible(&line).into_owned();
            }
        }
    }
    visible(&line).into_owned()
}
