//! MCP on HTTP/1.1 as real clients and servers write it, byte for byte.

/// Head of an SSE answer; its body comes in chunks.
pub(crate) const STREAM: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache, no-transform\r\n\
     connection: keep-alive\r\ntransfer-encoding: chunked\r\n\r\n";

/// The answer to a notification.
pub(crate) const ACCEPTED: &str = "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n";

/// A POST to `/mcp`.
pub(crate) fn post(body: &str) -> String {
    post_with("", body)
}

/// A POST to `/mcp` with further header lines, each ended by CRLF.
pub(crate) fn post_with(fields: &str, body: &str) -> String {
    post_to("/mcp", fields, body)
}

/// A POST anywhere.
pub(crate) fn post_to(target: &str, fields: &str, body: &str) -> String {
    format!(
        "POST {target} HTTP/1.1\r\nHost: mcp.example.test\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A GET for an event stream, with further header lines.
pub(crate) fn get_with(fields: &str) -> String {
    format!(
        "GET /mcp HTTP/1.1\r\nHost: mcp.example.test\r\nAccept: text/event-stream\r\n{fields}\r\n"
    )
}

/// A GET for an event stream.
pub(crate) fn get() -> String {
    get_with("")
}

/// A `tools/call`; `id` and `arguments` are JSON text.
pub(crate) fn call(id: &str, tool: &str, arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#
    )
}

/// A tool's result with one text.
pub(crate) fn result(id: &str, text: &str) -> String {
    format!(
        r#"{{"result":{{"content":[{{"type":"text","text":"{text}"}}]}},"jsonrpc":"2.0","id":{id}}}"#
    )
}

/// A notification from either side.
pub(crate) fn notification(method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)
}

/// A request from either side.
pub(crate) fn request(id: &str, method: &str, params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#)
}

/// A whole JSON answer.
pub(crate) fn json(body: &str) -> String {
    status("200 OK", "", body)
}

/// A whole JSON answer with a status and further header lines.
pub(crate) fn status(line: &str, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {line}\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// An SSE event as the TypeScript SDK writes it.
pub(crate) fn event(data: &str) -> String {
    format!("event: message\ndata: {data}\n\n")
}

/// A session of a revision with `Mcp-Session-Id`.
#[derive(Clone, Debug)]
pub(crate) struct Session {
    pub(crate) version: String,
    pub(crate) id: String,
}

impl Session {
    /// Opens it: `initialize`, then `notifications/initialized`.
    pub(crate) fn open(
        stand: &super::stand::Stand,
        client: &mut callbox_testkit::blocking::Client,
        version: &str,
        id: &str,
    ) -> anyhow::Result<Self> {
        let session = Self {
            version: version.to_owned(),
            id: id.to_owned(),
        };
        let answer = status(
            "200 OK",
            &format!("Mcp-Session-Id: {id}\r\n"),
            &initialized("0", version),
        );
        stand.trade(client, post(&initialize("0", version)), answer)?;
        let ready = notification("notifications/initialized", "{}");
        stand.trade(client, session.post(&ready), ACCEPTED)?;
        Ok(session)
    }

    fn fields(&self) -> String {
        format!(
            "Mcp-Session-Id: {}\r\nMCP-Protocol-Version: {}\r\n",
            self.id, self.version
        )
    }

    /// A POST in it.
    pub(crate) fn post(&self, body: &str) -> String {
        post_with(&self.fields(), body)
    }

    /// A GET in it, with further header lines.
    pub(crate) fn get(&self, fields: &str) -> String {
        get_with(&format!("{}{fields}", self.fields()))
    }
}

/// An `initialize` request.
pub(crate) fn initialize(id: &str, version: &str) -> String {
    request(
        id,
        "initialize",
        &format!(
            r#"{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"desk","version":"2.1"}}}}"#
        ),
    )
}

/// Its answer.
pub(crate) fn initialized(id: &str, version: &str) -> String {
    format!(
        r#"{{"result":{{"protocolVersion":"{version}","capabilities":{{"tools":{{}}}},"serverInfo":{{"name":"crm","version":"1.0"}}}},"jsonrpc":"2.0","id":{id}}}"#
    )
}

/// A request of 2026-07-28: the headers that mirror the body, and `_meta`. `params` are the members without braces.
pub(crate) fn modern(id: &str, method: &str, name: Option<&str>, params: &str) -> String {
    let name = name.map_or_else(String::new, |name| format!("Mcp-Name: {name}\r\n"));
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"desk","version":"3.0"}}"#;
    let comma = if params.is_empty() { "" } else { "," };
    post_with(
        &format!("MCP-Protocol-Version: 2026-07-28\r\nMcp-Method: {method}\r\n{name}"),
        &request(id, method, &format!("{{{params}{comma}{meta}}}")),
    )
}
