//! Documents: everything of a call or message that no query selects by, as tagged fields.
//!
//! What the row holds (ids, session, tool, outcome, times) is not repeated here. Tags are the format: never reuse one.

use serde_json::value::RawValue;
use uuid::Uuid;

use crate::codes::Coded;
use crate::record::{Call, CallEvent, Capture, HeaderLine, Message, RawJson, Sample};

pub(crate) mod fields;

use fields::{Fields, Input, Value, unzigzag};

/// What is wrong with stored bytes.
type Fault = &'static str;

mod tag {
    pub(super) const EXCHANGE: u8 = 1;
    pub(super) const REQUEST_ID: u8 = 2;
    /// The request id is the exchange id in text.
    pub(super) const REQUEST_ID_IS_EXCHANGE: u8 = 3;
    pub(super) const SEQ: u8 = 4;
    pub(super) const PROTOCOL_VERSION: u8 = 5;
    pub(super) const TRACE_ID: u8 = 6;
    pub(super) const SPAN_ID: u8 = 7;
    pub(super) const JSONRPC_ID: u8 = 8;
    pub(super) const ARGUMENTS: u8 = 9;
    pub(super) const RESULT: u8 = 10;
    pub(super) const ERROR: u8 = 11;
    pub(super) const HTTP_STATUS: u8 = 12;
    pub(super) const FIRST_BYTE: u8 = 13;
    pub(super) const REQUEST_BYTES: u8 = 14;
    pub(super) const RESPONSE_BYTES: u8 = 15;
    pub(super) const LEGS: u8 = 16;
    pub(super) const CONFIRMATION: u8 = 17;
    pub(super) const CAPTURE_REQUEST: u8 = 18;
    pub(super) const CAPTURE_RESPONSE: u8 = 19;
    pub(super) const CAPTURE_REASON: u8 = 20;
    pub(super) const EVENT_OFFSET: u8 = 21;
    pub(super) const EVENT_KIND: u8 = 22;
    pub(super) const FLAG: u8 = 23;
    pub(super) const SAMPLE_PROBABILITY: u8 = 24;
    pub(super) const SAMPLE_SELECTED: u8 = 25;
    pub(super) const HTTP_METHOD: u8 = 26;
    pub(super) const HTTP_TARGET: u8 = 27;
    pub(super) const HTTP_VERSION: u8 = 28;
    pub(super) const REQUEST_HEADER: u8 = 29;
    pub(super) const RESPONSE_HEADER: u8 = 30;
    /// Value of the header line just named.
    pub(super) const HEADER_VALUE: u8 = 31;
    /// The value of the header line just named is the request id.
    pub(super) const HEADER_IS_REQUEST_ID: u8 = 32;
    pub(super) const DIRECTION: u8 = 33;
    pub(super) const KIND: u8 = 34;
    pub(super) const METHOD: u8 = 35;
    pub(super) const CALL: u8 = 36;
    pub(super) const AT: u8 = 37;
    pub(super) const BODY: u8 = 38;
}

/// Writes what the row of a call does not hold.
pub(crate) fn put_call(out: &mut Vec<u8>, call: &Call) {
    let mut fields = Fields(out);
    fields.bytes(tag::EXCHANGE, call.exchange_id.as_bytes());
    match call.request_id.as_deref() {
        Some(id) if is_text_of(id, call.exchange_id) => {
            fields.number(tag::REQUEST_ID_IS_EXCHANGE, 1);
        }
        id => fields.optional(tag::REQUEST_ID, id),
    }
    fields.number(tag::SEQ, call.seq.into());
    fields.optional(tag::PROTOCOL_VERSION, call.protocol_version.as_deref());
    fields.optional(tag::TRACE_ID, call.trace_id.as_deref());
    fields.optional(tag::SPAN_ID, call.span_id.as_deref());
    fields.bytes(tag::JSONRPC_ID, call.jsonrpc_id.get().as_bytes());
    fields.optional(tag::ARGUMENTS, call.arguments.as_deref().map(RawValue::get));
    fields.optional(tag::RESULT, call.result.as_deref().map(RawValue::get));
    fields.optional(tag::ERROR, call.error.as_deref().map(RawValue::get));
    if let Some(status) = call.http_status {
        fields.number(tag::HTTP_STATUS, status.into());
    }
    if let Some(micros) = call.first_byte_us {
        fields.number(tag::FIRST_BYTE, micros);
    }
    fields.number(tag::REQUEST_BYTES, call.request_bytes);
    fields.number(tag::RESPONSE_BYTES, call.response_bytes);
    if call.legs != 1 {
        fields.number(tag::LEGS, call.legs.into());
    }
    fields.optional(tag::CONFIRMATION, call.confirmation.as_deref());
    if call.capture.request != Capture::Full {
        fields.number(tag::CAPTURE_REQUEST, call.capture.request.code().into());
    }
    if call.capture.response != Capture::Full {
        fields.number(tag::CAPTURE_RESPONSE, call.capture.response.code().into());
    }
    fields.optional(tag::CAPTURE_REASON, call.capture.reason.as_deref());
    for event in &call.events {
        fields.signed(tag::EVENT_OFFSET, micros(event.offset_ms));
        fields.bytes(tag::EVENT_KIND, event.kind.as_bytes());
    }
    for flag in &call.flags {
        fields.bytes(tag::FLAG, flag.as_bytes());
    }
    if let Some(sample) = &call.sample {
        fields.bytes(tag::SAMPLE_PROBABILITY, &sample.probability.to_le_bytes());
        fields.number(tag::SAMPLE_SELECTED, sample.selected.into());
    }
    let http = &call.http;
    let request_id = call.request_id.as_deref();
    fields.bytes(tag::HTTP_METHOD, http.method.as_bytes());
    fields.bytes(tag::HTTP_TARGET, http.target.as_bytes());
    fields.bytes(tag::HTTP_VERSION, http.version.as_bytes());
    put_headers(
        &mut fields,
        tag::REQUEST_HEADER,
        &http.request_headers,
        request_id,
    );
    put_headers(
        &mut fields,
        tag::RESPONSE_HEADER,
        &http.response_headers,
        request_id,
    );
}

fn put_headers(fields: &mut Fields<'_>, tag: u8, headers: &[HeaderLine], request_id: Option<&str>) {
    for (name, value) in headers {
        fields.bytes(tag, name.as_bytes());
        if Some(value.as_str()) == request_id {
            fields.number(tag::HEADER_IS_REQUEST_ID, 1);
        } else {
            fields.bytes(tag::HEADER_VALUE, value.as_bytes());
        }
    }
}

/// Fills in a call that so far has what its row holds.
pub(crate) fn get_call(doc: &[u8], call: &mut Call) -> Result<(), Fault> {
    let mut input = Input(doc);
    let mut last_header: Option<(u8, usize)> = None;
    while let Some((tag, value)) = input.field()? {
        match (tag, value) {
            (tag::EXCHANGE, Value::Bytes(bytes)) => call.exchange_id = uuid(bytes)?,
            (tag::REQUEST_ID, Value::Bytes(bytes)) => call.request_id = Some(text(bytes)?),
            (tag::REQUEST_ID_IS_EXCHANGE, Value::Number(_)) => {
                call.request_id = Some(call.exchange_id.to_string());
            }
            (tag::SEQ, Value::Number(seq)) => call.seq = small(seq)?,
            (tag::PROTOCOL_VERSION, Value::Bytes(bytes)) => {
                call.protocol_version = Some(text(bytes)?);
            }
            (tag::TRACE_ID, Value::Bytes(bytes)) => call.trace_id = Some(text(bytes)?),
            (tag::SPAN_ID, Value::Bytes(bytes)) => call.span_id = Some(text(bytes)?),
            (tag::JSONRPC_ID, Value::Bytes(bytes)) => call.jsonrpc_id = json(bytes)?,
            (tag::ARGUMENTS, Value::Bytes(bytes)) => call.arguments = Some(json(bytes)?),
            (tag::RESULT, Value::Bytes(bytes)) => call.result = Some(json(bytes)?),
            (tag::ERROR, Value::Bytes(bytes)) => call.error = Some(json(bytes)?),
            (tag::HTTP_STATUS, Value::Number(status)) => call.http_status = Some(small(status)?),
            (tag::FIRST_BYTE, Value::Number(micros)) => call.first_byte_us = Some(micros),
            (tag::REQUEST_BYTES, Value::Number(count)) => call.request_bytes = count,
            (tag::RESPONSE_BYTES, Value::Number(count)) => call.response_bytes = count,
            (tag::LEGS, Value::Number(legs)) => call.legs = small(legs)?,
            (tag::CONFIRMATION, Value::Bytes(bytes)) => call.confirmation = Some(text(bytes)?),
            (tag::CAPTURE_REQUEST, Value::Number(code)) => call.capture.request = coded(code)?,
            (tag::CAPTURE_RESPONSE, Value::Number(code)) => call.capture.response = coded(code)?,
            (tag::CAPTURE_REASON, Value::Bytes(bytes)) => call.capture.reason = Some(text(bytes)?),
            (tag::EVENT_OFFSET, Value::Number(offset)) => {
                call.events.push(CallEvent {
                    offset_ms: millis(unzigzag(offset)),
                    kind: String::new(),
                });
            }
            (tag::EVENT_KIND, Value::Bytes(bytes)) => {
                call.events.last_mut().ok_or("an event has no offset")?.kind = text(bytes)?;
            }
            (tag::FLAG, Value::Bytes(bytes)) => call.flags.push(text(bytes)?),
            (tag::SAMPLE_PROBABILITY, Value::Bytes(bytes)) => {
                let bytes = bytes
                    .try_into()
                    .map_err(|_| "a probability is not eight bytes")?;
                call.sample = Some(Sample {
                    probability: f64::from_le_bytes(bytes),
                    selected: false,
                });
            }
            (tag::SAMPLE_SELECTED, Value::Number(selected)) => {
                call.sample
                    .as_mut()
                    .ok_or("a decision has no probability")?
                    .selected = selected != 0;
            }
            (tag::HTTP_METHOD, Value::Bytes(bytes)) => call.http.method = text(bytes)?,
            (tag::HTTP_TARGET, Value::Bytes(bytes)) => call.http.target = text(bytes)?,
            (tag::HTTP_VERSION, Value::Bytes(bytes)) => call.http.version = text(bytes)?,
            (tag::REQUEST_HEADER | tag::RESPONSE_HEADER, Value::Bytes(bytes)) => {
                let lines = headers(call, tag);
                lines.push((text(bytes)?, String::new()));
                last_header = Some((tag, lines.len() - 1));
            }
            (tag::HEADER_VALUE, Value::Bytes(bytes)) => {
                let (tag, at) = last_header.ok_or("a header value has no name")?;
                headers(call, tag)[at].1 = text(bytes)?;
            }
            (tag::HEADER_IS_REQUEST_ID, Value::Number(_)) => {
                let (tag, at) = last_header.ok_or("a header value has no name")?;
                headers(call, tag)[at].1 =
                    call.request_id.clone().ok_or("there is no request id")?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn headers(call: &mut Call, tag: u8) -> &mut Vec<HeaderLine> {
    if tag == tag::REQUEST_HEADER {
        &mut call.http.request_headers
    } else {
        &mut call.http.response_headers
    }
}

/// Writes what the row of a message does not hold.
pub(crate) fn put_message(out: &mut Vec<u8>, message: &Message) {
    let mut fields = Fields(out);
    fields.bytes(tag::EXCHANGE, message.exchange_id.as_bytes());
    fields.number(tag::DIRECTION, message.direction.code().into());
    fields.bytes(tag::KIND, message.kind.as_bytes());
    fields.optional(tag::METHOD, message.method.as_deref());
    fields.optional(
        tag::JSONRPC_ID,
        message.jsonrpc_id.as_deref().map(RawValue::get),
    );
    if let Some(call) = message.call {
        fields.bytes(tag::CALL, call.as_bytes());
    }
    fields.signed(tag::AT, message.at);
    if let Some(status) = message.http_status {
        fields.number(tag::HTTP_STATUS, status.into());
    }
    fields.optional(tag::BODY, message.body.as_deref().map(RawValue::get));
    for flag in &message.flags {
        fields.bytes(tag::FLAG, flag.as_bytes());
    }
}

/// Fills in a message that so far has what its row holds.
pub(crate) fn get_message(doc: &[u8], message: &mut Message) -> Result<(), Fault> {
    let mut input = Input(doc);
    while let Some((tag, value)) = input.field()? {
        match (tag, value) {
            (tag::EXCHANGE, Value::Bytes(bytes)) => message.exchange_id = uuid(bytes)?,
            (tag::DIRECTION, Value::Number(code)) => message.direction = coded(code)?,
            (tag::KIND, Value::Bytes(bytes)) => message.kind = text(bytes)?,
            (tag::METHOD, Value::Bytes(bytes)) => message.method = Some(text(bytes)?),
            (tag::JSONRPC_ID, Value::Bytes(bytes)) => message.jsonrpc_id = Some(json(bytes)?),
            (tag::CALL, Value::Bytes(bytes)) => message.call = Some(uuid(bytes)?),
            (tag::AT, Value::Number(at)) => message.at = unzigzag(at),
            (tag::HTTP_STATUS, Value::Number(status)) => message.http_status = Some(small(status)?),
            (tag::BODY, Value::Bytes(bytes)) => message.body = Some(json(bytes)?),
            (tag::FLAG, Value::Bytes(bytes)) => message.flags.push(text(bytes)?),
            _ => {}
        }
    }
    Ok(())
}

fn is_text_of(text: &str, id: Uuid) -> bool {
    text.len() == 36 && text == id.hyphenated().encode_lower(&mut Uuid::encode_buffer())
}

fn text(bytes: &[u8]) -> Result<String, Fault> {
    std::str::from_utf8(bytes)
        .map(str::to_owned)
        .map_err(|_| "text is not UTF-8")
}

fn json(bytes: &[u8]) -> Result<RawJson, Fault> {
    RawValue::from_string(text(bytes)?).map_err(|_| "recorded JSON is not JSON")
}

fn uuid(bytes: &[u8]) -> Result<Uuid, Fault> {
    Uuid::from_slice(bytes).map_err(|_| "an id is not sixteen bytes")
}

fn small<T: TryFrom<u64>>(number: u64) -> Result<T, Fault> {
    T::try_from(number).map_err(|_| "a number is out of range")
}

fn coded<T: Coded>(code: u64) -> Result<T, Fault> {
    i64::try_from(code)
        .ok()
        .and_then(T::from_code)
        .ok_or("a number stands for nothing known here")
}

/// Offsets are kept to the microsecond, as they are shown.
#[expect(
    clippy::cast_possible_truncation,
    reason = "saturates, which is right for an offset beyond 292,000 years"
)]
fn micros(millis: f64) -> i64 {
    (millis * 1000.0).round() as i64
}

#[expect(
    clippy::cast_precision_loss,
    reason = "exact up to 285 years of microseconds"
)]
fn millis(micros: i64) -> f64 {
    micros as f64 / 1000.0
}

#[cfg(test)]
mod tests;
