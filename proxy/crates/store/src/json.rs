//! The JSON that users see: `callbox.call/1`, `callbox.session/1`, `callbox.message/1`, one object on one line.
//!
//! Built by hand because recorded text goes in as it was spelled; serialising through a value would change numbers.

use std::fmt::Write;

use jiff::Timestamp;
use serde::Serialize;
use serde_json::value::RawValue;

use crate::record::{Call, Client, Message, Micros, Session};
use crate::summary::SessionSummary;

impl Call {
    /// The call as `callbox.call/1`.
    pub fn to_json(&self) -> String {
        let session = &*self.session;
        let mut out = Object::begin("callbox.call/1");
        out.value("id", &self.id);
        out.value("exchange_id", &self.exchange_id);
        out.value("request_id", &self.request_id);
        out.value("session", &session.id);
        out.value("session_source", &session.source);
        out.value("seq", &self.seq);
        out.value("upstream", &session.upstream);
        out.value("protocol_version", &self.protocol_version);
        out.identity(session);
        out.client(session.client.as_ref());
        out.value("trace_id", &self.trace_id);
        out.raw("jsonrpc_id", Some(&self.jsonrpc_id));
        out.value("tool", &self.tool);
        out.raw("arguments", self.arguments.as_deref());
        out.value("outcome", &self.outcome);
        out.raw("result", self.result.as_deref());
        out.raw("error", self.error.as_deref());
        out.value("end", &self.end);
        out.value("http_status", &self.http_status);
        out.moment("started_at", self.started_at);
        out.value("first_byte_ms", &self.first_byte_us.map(millis));
        out.value("duration_ms", &self.duration_us.map(millis));
        out.value("request_bytes", &self.request_bytes);
        out.value("response_bytes", &self.response_bytes);
        out.value("legs", &self.legs);
        out.value("confirmation", &self.confirmation);
        out.value("catalogue", &self.catalogue);
        out.value("capture", &self.capture);
        out.name("events");
        out.text.push('[');
        for (at, event) in self.events.iter().enumerate() {
            if at > 0 {
                out.text.push(',');
            }
            let mut inner = Object::nested();
            inner.value("offset_ms", &((event.offset_ms * 1000.0).round() / 1000.0));
            inner.value("kind", &event.kind);
            out.text.push_str(&inner.end());
        }
        out.text.push(']');
        out.value("flags", &self.flags);
        out.value("sample", &self.sample);
        out.raw_text("verdicts", "[]");
        out.end()
    }
}

impl SessionSummary {
    /// The session as `callbox.session/1`.
    pub fn to_json(&self) -> String {
        let session = &self.session;
        let mut out = Object::begin("callbox.session/1");
        out.value("id", &session.id);
        out.value("source", &session.source);
        out.value("upstream", &session.upstream);
        out.identity(session);
        out.client(session.client.as_ref());
        out.value("protocol_version", &session.protocol_version);
        out.moment("started_at", session.started_at);
        out.moment("last_at", self.last_at);
        out.value("calls", &self.calls);
        out.value("failed", &self.failed);
        out.end()
    }
}

impl Message {
    /// The message as `callbox.message/1`.
    pub fn to_json(&self) -> String {
        let mut out = Object::begin("callbox.message/1");
        out.value("id", &self.id);
        out.value("exchange_id", &self.exchange_id);
        out.value("session", &self.session.id);
        out.value("direction", &self.direction);
        out.value("kind", &self.kind);
        out.value("method", &self.method);
        out.raw("jsonrpc_id", self.jsonrpc_id.as_deref());
        out.value("call", &self.call);
        out.moment("at", self.at);
        out.value("http_status", &self.http_status);
        out.raw("body", self.body.as_deref());
        out.value("flags", &self.flags);
        out.end()
    }
}

/// An object under construction.
struct Object {
    text: String,
}

impl Object {
    fn begin(schema: &str) -> Self {
        let mut object = Self {
            text: String::with_capacity(1024),
        };
        object.text.push('{');
        object.value("schema", schema);
        object
    }

    fn nested() -> Self {
        Self {
            text: String::from("{"),
        }
    }

    fn end(mut self) -> String {
        self.text.push('}');
        self.text
    }

    fn name(&mut self, name: &str) {
        if self.text.len() > 1 {
            self.text.push(',');
        }
        self.text.push('"');
        self.text.push_str(name);
        self.text.push_str("\":");
    }

    fn value<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) {
        let text = serde_json::to_string(value)
            .expect("strings, numbers and lists of them always serialise");
        self.raw_text(name, &text);
    }

    /// Recorded text. A line break in it can only be white space between tokens: it becomes a space, since one object is one line.
    fn raw(&mut self, name: &str, value: Option<&RawValue>) {
        let text = value.map_or("null", RawValue::get);
        if text.contains(['\n', '\r']) {
            self.raw_text(name, &text.replace(['\n', '\r'], " "));
        } else {
            self.raw_text(name, text);
        }
    }

    fn raw_text(&mut self, name: &str, text: &str) {
        self.name(name);
        self.text.push_str(text);
    }

    fn moment(&mut self, name: &str, at: Micros) {
        self.name(name);
        match Timestamp::from_microsecond(at) {
            Ok(at) => write!(self.text, "\"{at:.6}\"").expect("a String takes all text"),
            Err(_) => self.text.push_str("null"),
        }
    }

    fn identity(&mut self, session: &Session) {
        self.value("principal", &session.principal);
        self.value("tenant", &session.tenant);
        if session.asserted {
            self.value("asserted", &true);
        }
    }

    fn client(&mut self, client: Option<&Client>) {
        self.value("client", &client);
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 285 years of microseconds"
)]
fn millis(micros: u64) -> f64 {
    micros as f64 / 1000.0
}

#[cfg(test)]
mod tests;
