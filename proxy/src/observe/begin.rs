//! A `tools/call` begins, or goes on with a further leg.

use std::hash::BuildHasher as _;
use std::sync::Arc;

use callbox_store::{Call, Capture, Captured, End, Http, Outcome, RawJson};
use callbox_wire::mcp::header::{decode, same_value};
use callbox_wire::mcp::{Method, Params, catalogue};
use callbox_wire::redact::Place;
use callbox_wire::rpc::RequestId;
use http::{Method as Verb, Version};
use serde_json::value::RawValue;

use super::calls::{OpenCall, Request, RequestNo, Wait, What, set_flag};
use super::client::is_mcp;
use super::core::Core;
use super::exchange::{Exchange, Kind};
use super::head::{lines, readable};
use super::incoming::Incoming;
use super::link::Linked;
use super::messages::spelled;
use super::rules::{MAX_NAME, clipped, over_cap, quoted};
use super::seat::{Reading, trace};
use super::sessions::Seat;

/// The request of one leg, ready for the record.
struct Leg<'a> {
    tool: &'a str,
    id: Option<RequestId>,
    spelled: RawJson,
    arguments: Option<RawJson>,
    capture: Capture,
    reason: Option<String>,
    bytes: u64,
}

impl Core {
    pub(super) fn begin_call(
        &mut self,
        exchange: &mut Exchange,
        reading: &Reading<'_>,
        message: &Incoming<'_>,
        params: &Params<'_>,
        whole: bool,
    ) {
        let Some(seat) = exchange.seat.clone() else {
            return;
        };
        let outlined = message
            .cut
            .and_then(|overflow| overflow.outline.tool.as_deref());
        let tool = params.name.as_deref().or(outlined).unwrap_or_default();
        let place = Place::Arguments { tool };
        let bytes = if exchange.batch {
            message.bytes
        } else {
            exchange.up.bytes
        };
        let (arguments, capture, reason) = match message.cut {
            None => (
                params
                    .arguments
                    .and_then(|arguments| self.rules.json(arguments, place)),
                Capture::Full,
                None,
            ),
            Some(overflow) => {
                let reason = if whole {
                    over_cap(message.text.len(), message.bytes, overflow)
                } else {
                    format!("ended after {} bytes", message.bytes)
                };
                (
                    self.rules.prefix(message.text, place),
                    Capture::Truncated,
                    Some(reason),
                )
            }
        };
        let leg = Leg {
            tool,
            id: message.id.id().cloned(),
            spelled: spelled(&message.id).unwrap_or_else(null),
            arguments,
            capture,
            reason,
            bytes,
        };
        let mut flags = self.request_flags(reading, message, params, tool, &seat);
        if !whole {
            flags.push("incomplete_request".to_owned());
        }
        match self.linked(reading, params, tool) {
            Linked::One { no, weak } => {
                if weak {
                    set_flag(&mut flags, "weak_link");
                }
                self.join(exchange, reading, no, params, leg, &flags);
            }
            Linked::Several(candidates) => {
                flags.push("ambiguous_link".to_owned());
                for no in candidates {
                    if let Some(call) = self.requests.call(no) {
                        call.flag("ambiguous_link");
                    }
                    self.show(no);
                }
                self.add_call(exchange, reading, params, &seat, leg, flags);
            }
            Linked::No => self.add_call(exchange, reading, params, &seat, leg, flags),
        }
    }

    fn linked(&mut self, reading: &Reading<'_>, params: &Params<'_>, tool: &str) -> Linked {
        if params.input_responses.is_none() && params.request_state.is_none() {
            return Linked::No;
        }
        let state = params.request_state.as_deref();
        let arguments = self.hash(params.arguments);
        let leg = reading.scope().asks(
            &self.rules.redactor,
            state,
            tool,
            arguments,
            params.input_responses,
        );
        let requests = &mut self.requests;
        let asked = std::cell::RefCell::new(requests);
        self.links.find(&leg, |no, question| {
            match asked.borrow_mut().call(no).map(|call| &call.wait) {
                Some(Wait::Input(asks)) => asks.is(question),
                _ => false,
            }
        })
    }

    fn add_call(
        &mut self,
        exchange: &mut Exchange,
        reading: &Reading<'_>,
        params: &Params<'_>,
        seat: &Seat,
        leg: Leg<'_>,
        flags: Vec<String>,
    ) {
        let head = reading.head;
        let seq = self.sessions.next_seq(seat, self.secs);
        let listed = self
            .sessions
            .peek(&seat.key)
            .and_then(|active| active.catalogue.clone());
        let catalogue =
            listed.or_else(|| self.lists.in_force(&self.rules, reading.scope(), self.secs));
        let parent = trace(params, &reading.facts);
        let record = Call {
            id: self.ids.next(head.at_wall),
            exchange_id: exchange.id,
            request_id: head.request_id.as_deref().map(|id| clipped(id, MAX_NAME)),
            session: self.session_now(seat),
            seq,
            protocol_version: reading.version.map(|version| clipped(version, MAX_NAME)),
            trace_id: parent.map(|parent| parent.trace.to_owned()),
            span_id: parent.map(|parent| parent.span.to_owned()),
            jsonrpc_id: leg.spelled,
            tool: clipped(leg.tool, MAX_NAME),
            arguments: leg.arguments,
            outcome: Outcome::Pending,
            result: None,
            error: None,
            end: End::Open,
            http_status: None,
            started_at: head.at_wall,
            first_byte_us: None,
            duration_us: None,
            request_bytes: leg.bytes,
            response_bytes: 0,
            legs: 1,
            confirmation: None,
            catalogue: catalogue.as_deref().map(str::to_owned),
            capture: Captured {
                request: leg.capture,
                response: Capture::Full,
                reason: leg.reason,
            },
            events: Vec::new(),
            flags,
            sample: None,
            http: self.http(reading),
        };
        let mut call = OpenCall {
            principal: reading.identity.principal,
            modern: reading.modern,
            started: head.at,
            progress: params.meta.progress_token.clone(),
            arguments: self.hash(params.arguments),
            decided: false,
            wait: Wait::Answer,
            shown: false,
            changed: true,
            counted: false,
            lingers: None,
            touched: head.at,
            last_event: None,
            task: None,
            weight: 0,
            record,
        };
        self.make_room(&mut call);
        call.weight = call.payload();
        exchange.produced = true;
        let request = Request {
            id: leg.id,
            seat: Some(seat.clone()),
            exchange: exchange.id,
            live: true,
            answered: false,
            since: head.at,
            place: 0,
            what: What::Call(Box::new(call)),
        };
        self.open(exchange, request);
    }

    /// A further leg of a call that waits for it.
    fn join(
        &mut self,
        exchange: &mut Exchange,
        reading: &Reading<'_>,
        no: RequestNo,
        params: &Params<'_>,
        leg: Leg<'_>,
        flags: &[String],
    ) {
        if let Some(responses) = params.input_responses {
            self.confirm(no, responses);
        }
        let http = self.http(reading);
        let Some(request) = self.requests.get(no) else {
            return;
        };
        let seat = request.seat.clone();
        request.id = leg.id;
        request.exchange = exchange.id;
        (request.live, request.answered) = (true, false);
        let Some(call) = request.call() else { return };
        let wait = std::mem::take(&mut call.wait);
        call.progress = params.meta.progress_token.clone();
        call.touched = reading.head.at;
        call.changed = true;
        for flag in flags {
            call.flag(flag);
        }
        let record = &mut call.record;
        record.exchange_id = exchange.id;
        record.request_id = reading
            .head
            .request_id
            .as_deref()
            .map(|id| clipped(id, MAX_NAME));
        record.jsonrpc_id = leg.spelled;
        record.legs += 1;
        record.request_bytes += leg.bytes;
        record.result = None;
        record.end = End::Open;
        record.http_status = None;
        record.http = http;
        if leg.capture != Capture::Full {
            record.capture.request = leg.capture;
            record.capture.reason = leg.reason;
        }
        if let Wait::Input(asks) = wait {
            self.links.stop(&asks, no);
        }
        self.requests.weigh(no);
        exchange.seat = seat;
        exchange.requests.push(no);
        exchange.produced = true;
    }

    /// Memory for a new call: the oldest that only wait for something unlikely make room; if none does, the new call
    /// goes without its payload.
    fn make_room(&mut self, call: &mut OpenCall) {
        let limit = self.rules.buffer_bytes;
        if self.requests.bytes + call.payload() > limit {
            self.evict();
        }
        if self.requests.bytes + call.payload() > limit {
            call.record.arguments = None;
            call.record.capture.request = Capture::Dropped;
            call.record.capture.reason = Some(format!(
                "open calls hold {limit} bytes (record.queue_bytes)"
            ));
        }
    }

    /// Arguments as sent, to know them again without keeping them.
    fn hash(&self, arguments: Option<&RawValue>) -> u64 {
        arguments.map_or(0, |arguments| self.hasher.hash_one(arguments.get()))
    }

    fn http(&self, reading: &Reading<'_>) -> Http {
        let head = reading.head;
        Http {
            method: head.method.as_str().to_owned(),
            target: self.rules.redactor.target(&head.target).into_owned(),
            version: version(head.version).to_owned(),
            request_headers: self.rules.headers(&head.headers),
            response_headers: Vec::new(),
        }
    }

    /// Facts about the request that the record flags.
    fn request_flags(
        &mut self,
        reading: &Reading<'_>,
        message: &Incoming<'_>,
        params: &Params<'_>,
        tool: &str,
        seat: &Seat,
    ) -> Vec<String> {
        let mut flags = Vec::new();
        let mut flag = |is: bool, name: &str| {
            if is {
                flags.push(name.to_owned());
            }
        };
        flag(seat.foreign, "session_other_principal");
        flag(reading.assumed, "version_assumed");
        flag(message.duplicate_members, "duplicate_members");
        flag(message.not_v2, "not_jsonrpc_2");
        flag(
            self.headers_differ(reading, params, tool, seat),
            "header_mismatch",
        );
        if self.links.any_failed() {
            let arguments = self.hash(params.arguments);
            let key = reading
                .scope()
                .retry(&self.rules.redactor, seat, tool, arguments);
            flag(self.links.is_retry(&key, self.secs), "retry_of");
        }
        flags
    }

    /// Whether a header that mirrors the body says something else, or nothing that can be read.
    fn headers_differ(
        &mut self,
        reading: &Reading<'_>,
        params: &Params<'_>,
        tool: &str,
        seat: &Seat,
    ) -> bool {
        let facts = &reading.facts;
        let versions = facts.version.zip(params.meta.protocol_version.as_deref());
        let differs = |value: Option<&[u8]>, body: &str| {
            value.is_some_and(|value| decode(value).map_or(true, |value| value != body))
        };
        versions.is_some_and(|(header, body)| header != body)
            || facts.method.is_some_and(|value| value != b"tools/call")
            || differs(facts.name, tool)
            || (facts.params && self.params_differ(reading, params, tool, seat))
    }

    fn params_differ(
        &mut self,
        reading: &Reading<'_>,
        params: &Params<'_>,
        tool: &str,
        seat: &Seat,
    ) -> bool {
        let listed = self
            .sessions
            .peek(&seat.key)
            .and_then(|active| active.catalogue.clone());
        let Some(list) =
            listed.or_else(|| self.lists.in_force(&self.rules, reading.scope(), self.secs))
        else {
            return false;
        };
        let Some(mirrors) = self.lists.mirrors(&self.rules, &list, self.secs) else {
            return false;
        };
        let Some(mirrored) = mirrors.get(tool) else {
            return false;
        };
        mirrored.iter().any(|param: &catalogue::MirroredParam| {
            let Some(value) = params
                .arguments
                .and_then(|arguments| param.value(arguments))
            else {
                return false;
            };
            let header = lines(&reading.head.headers).find(|(name, _)| {
                name.get(..10)
                    .is_some_and(|prefix| prefix.eq_ignore_ascii_case("mcp-param-"))
                    && name
                        .get(10..)
                        .is_some_and(|name| name.eq_ignore_ascii_case(&param.header))
            });
            match header.map(|(_, header)| decode(header)) {
                // A header that is missing is the server's to refuse.
                None => false,
                Some(Err(_)) => true,
                Some(Ok(header)) => same_value(&header, value) == Some(false),
            }
        })
    }

    /// A POST whose body could not be read. What its head says of a call is recorded all the same.
    pub(super) fn unread_request(&mut self, exchange: &mut Exchange, reading: &Reading<'_>) {
        let reading = &Reading {
            modern: reading.facts.method.is_some(),
            ..*reading
        };
        if reading.head.method != Verb::POST || !is_mcp(reading) {
            return;
        }
        exchange.kind = Kind::Messages;
        exchange.modern = reading.modern;
        let seat = self.seat_of(reading, &Params::default());
        exchange.seat = Some(seat.clone());
        let named = reading.facts.method.map(readable);
        if named.as_deref().map(Method::of) != Some(Method::ToolsCall) {
            return;
        }
        let tool = reading
            .facts
            .name
            .map(|name| decode(name).unwrap_or_default())
            .unwrap_or_default();
        let (capture, reason) = match &exchange.up.undecoded {
            Some(why) if !exchange.up.lost => (Capture::Undecoded, why.clone()),
            _ => (
                Capture::Dropped,
                "frames of the request were dropped".to_owned(),
            ),
        };
        let flags = if capture == Capture::Undecoded {
            vec!["undecoded".to_owned()]
        } else {
            Vec::new()
        };
        let leg = Leg {
            tool: &tool,
            id: None,
            spelled: null(),
            arguments: None,
            capture,
            reason: Some(reason),
            bytes: exchange.up.bytes,
        };
        self.add_call(exchange, reading, &Params::default(), &seat, leg, flags);
    }

    /// Response headers and status for the calls of an exchange.
    pub(super) fn note_response(&mut self, exchange: &Exchange) {
        let Some(down) = &exchange.down else { return };
        let status = down.head.status.as_u16();
        let mut headers = None;
        for (at, no) in exchange.requests.iter().enumerate() {
            let Some(call) = self.requests.call(*no) else {
                continue;
            };
            let lines = headers.get_or_insert_with(|| self.rules.headers(&down.head.headers));
            call.record.http_status = Some(status);
            call.record.http.response_headers = if at + 1 == exchange.requests.len() {
                std::mem::take(lines)
            } else {
                lines.clone()
            };
            call.changed = true;
        }
    }

    /// What has a session's list is in force in it.
    pub(super) fn enforce(&mut self, seat: &Seat, list: &Arc<str>) {
        if let Some(active) = self.sessions.peek(&seat.key) {
            active.catalogue = Some(Arc::clone(list));
        }
    }
}

fn null() -> RawJson {
    RawValue::from_string("null".to_owned()).unwrap_or_else(|_| quoted("null"))
}

fn version(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 => "HTTP/0.9",
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}
