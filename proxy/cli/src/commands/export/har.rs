//! HTTP Archive 1.2: one entry a call. Heads are as recorded; bodies are made from the record, since the log keeps the
//! tool call and not the octets around it, and each says so. Members that HAR asks for and nobody recorded have the
//! values the format gives to "unknown".

use std::io::Write;

use callbox_store::{Call, End, HeaderLine};
use serde::Serialize;
use serde_json::value::RawValue;

use crate::json::quoted;
use crate::text::plural;
use crate::{clock, words};

const MADE: &str = "made from the record of the call, after redaction";

/// An archive being written.
pub(super) struct Archive {
    entries: u64,
}

impl Archive {
    pub(super) fn begin(out: &mut dyn Write) -> anyhow::Result<Self> {
        let creator = Creator {
            name: "callbox",
            version: env!("CARGO_PKG_VERSION"),
        };
        write!(
            out,
            "{{\"log\":{{\"version\":\"1.2\",\"creator\":{},\"entries\":[",
            serde_json::to_string(&creator)?
        )?;
        Ok(Self { entries: 0 })
    }

    pub(super) fn entry(&mut self, out: &mut dyn Write, call: &Call) -> anyhow::Result<()> {
        out.write_all(if self.entries == 0 { b"\n" } else { b",\n" })?;
        self.entries += 1;
        Ok(serde_json::to_writer(out, &Entry::of(call))?)
    }

    pub(super) fn end(&self, out: &mut dyn Write) -> anyhow::Result<()> {
        let entries = plural(self.entries, "call");
        Ok(writeln!(
            out,
            "\n],\"comment\":\"{entries}, bodies {MADE}\"}}}}"
        )?)
    }
}

#[derive(Serialize)]
struct Creator {
    name: &'static str,
    version: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Entry<'a> {
    started_date_time: String,
    time: f64,
    request: Request<'a>,
    response: Response<'a>,
    cache: Empty,
    timings: Timings,
    comment: String,
    /// Members of ours begin with an underscore, as HAR wants it.
    #[serde(rename = "_call")]
    call: String,
    #[serde(rename = "_session")]
    session: String,
    #[serde(rename = "_tool")]
    tool: &'a str,
    #[serde(rename = "_outcome")]
    outcome: &'static str,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    method: &'a str,
    url: String,
    http_version: &'a str,
    cookies: [Empty; 0],
    headers: Vec<Pair<'a>>,
    query_string: Vec<Pair<'a>>,
    post_data: PostData<'a>,
    headers_size: i64,
    body_size: u64,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Response<'a> {
    status: u16,
    status_text: &'static str,
    http_version: &'a str,
    cookies: [Empty; 0],
    headers: Vec<Pair<'a>>,
    content: Content<'a>,
    #[serde(rename = "redirectURL")]
    redirect_url: &'a str,
    headers_size: i64,
    body_size: u64,
    /// As browsers write it for exchanges that broke.
    #[serde(rename = "_error", skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Serialize)]
struct Pair<'a> {
    name: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PostData<'a> {
    mime_type: &'a str,
    text: String,
    params: [Empty; 0],
    comment: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Content<'a> {
    size: usize,
    mime_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    comment: &'static str,
}

#[derive(Serialize)]
struct Timings {
    send: f64,
    wait: f64,
    receive: f64,
}

impl<'a> Entry<'a> {
    fn of(call: &'a Call) -> Self {
        let timings = Timings::of(call);
        Self {
            started_date_time: clock::rfc3339(call.started_at),
            time: timings.wait + timings.receive,
            request: Request::of(call),
            response: Response::of(call),
            cache: Empty {},
            timings,
            comment: format!("call {}", call.id),
            call: call.id.to_string(),
            session: call.session.id.to_string(),
            tool: &call.tool,
            outcome: words::outcome(call.outcome),
        }
    }
}

impl<'a> Request<'a> {
    fn of(call: &'a Call) -> Self {
        let headers = &call.http.request_headers;
        let target = call.http.target.as_str();
        let query = target.split_once('?').map_or("", |(_, query)| query);
        Self {
            method: &call.http.method,
            url: url(call),
            http_version: &call.http.version,
            cookies: [],
            headers: pairs(headers),
            query_string: query
                .split('&')
                .filter(|part| !part.is_empty())
                .map(|part| part.split_once('=').unwrap_or((part, "")))
                .map(|(name, value)| Pair { name, value })
                .collect(),
            post_data: PostData {
                mime_type: header(headers, "content-type").unwrap_or("application/json"),
                text: request_text(call),
                params: [],
                comment: MADE,
            },
            headers_size: -1,
            body_size: call.request_bytes,
        }
    }
}

impl<'a> Response<'a> {
    fn of(call: &'a Call) -> Self {
        let headers = &call.http.response_headers;
        let text = response_text(call);
        Self {
            status: call.http_status.unwrap_or(0),
            status_text: call.http_status.map_or("", reason),
            http_version: &call.http.version,
            cookies: [],
            headers: pairs(headers),
            content: Content {
                size: text.as_ref().map_or(0, |(text, _)| text.len()),
                mime_type: match &text {
                    Some((_, mime_type)) => mime_type,
                    None => header(headers, "content-type").unwrap_or("x-unknown"),
                },
                text: text.map(|(text, _)| text),
                comment: MADE,
            },
            redirect_url: header(headers, "location").unwrap_or(""),
            headers_size: -1,
            body_size: call.response_bytes,
            error: (call.end != End::Complete).then(|| words::name(call.end)),
        }
    }
}

impl Timings {
    fn of(call: &Call) -> Self {
        let whole = call.duration_us.or(call.first_byte_us).unwrap_or(0);
        let wait = call.first_byte_us.unwrap_or(whole).min(whole);
        Self {
            send: 0.0,
            wait: millis(wait),
            receive: millis(whole - wait),
        }
    }
}

/// Absolute, as HAR wants it. The log does not say whether the client spoke TLS; the name of the upstream stands in where
/// no `Host` was recorded.
fn url(call: &Call) -> String {
    let headers = &call.http.request_headers;
    let host = header(headers, "host")
        .or_else(|| header(headers, ":authority"))
        .unwrap_or(&call.session.upstream);
    format!("http://{host}{}", call.http.target)
}

fn request_text(call: &Call) -> String {
    let id = call.jsonrpc_id.get();
    let tool = quoted(&call.tool);
    let arguments = call
        .arguments
        .as_ref()
        .map(|json| format!(",\"arguments\":{}", json.get()))
        .unwrap_or_default();
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"tools/call\",\"params\":{{\"name\":{tool}{arguments}}}}}"
    )
}

/// The answer and its media type; none when nothing came.
fn response_text(call: &Call) -> Option<(String, &str)> {
    let json = |member: &str, value: &RawValue| {
        let text = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{},\"{member}\":{}}}",
            call.jsonrpc_id.get(),
            value.get()
        );
        Some((text, "application/json"))
    };
    match (&call.result, &call.error) {
        (Some(result), _) => json("result", result),
        (None, Some(error)) => match serde_json::from_str::<String>(error.get()) {
            // Not JSON-RPC: what the client read.
            Ok(text) => Some((
                text,
                header(&call.http.response_headers, "content-type").unwrap_or("text/plain"),
            )),
            Err(_) => json("error", error),
        },
        (None, None) => None,
    }
}

fn header<'a>(headers: &'a [HeaderLine], name: &str) -> Option<&'a str> {
    headers
        .iter()
        .find(|(found, _)| found.eq_ignore_ascii_case(name))
        .map(|(_, value)| value.as_str())
}

fn pairs(headers: &[HeaderLine]) -> Vec<Pair<'_>> {
    headers
        .iter()
        .map(|(name, value)| Pair { name, value })
        .collect()
}

/// The usual phrase; HTTP/2 has none and most viewers show it.
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        202 => "Accepted",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        406 => "Not Acceptable",
        413 => "Content Too Large",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        _ => "",
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 285 years of microseconds"
)]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}
