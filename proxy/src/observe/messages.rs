//! Records of messages that are no calls.

use std::time::Instant;

use callbox_store::{Direction, Message, RawJson, Record};
use callbox_wire::redact::Place;
use callbox_wire::rpc::{IdField, Kind};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::core::{Core, wall};
use super::exchange::Exchange;
use super::incoming::Incoming;
use super::rules::{MAX_NAME, clipped, over_cap, quoted};
use super::sessions::Seat;

/// Longest spelling of an id that is kept.
const MAX_ID: usize = 4096;

/// What a message's record says, its session and id aside.
#[derive(Debug)]
pub(super) struct Note {
    pub(super) direction: Direction,
    pub(super) kind: &'static str,
    pub(super) method: Option<String>,
    pub(super) id: Option<RawJson>,
    pub(super) call: Option<Uuid>,
    pub(super) body: Option<RawJson>,
    pub(super) flags: Vec<String>,
}

impl Core {
    /// Records a message; without a seat it is held until the exchange has one.
    pub(super) fn note(
        &mut self,
        exchange: &mut Exchange,
        seat: Option<&Seat>,
        at: Instant,
        note: Note,
    ) {
        let at = wall(exchange, at);
        let session = match seat {
            Some(seat) => self.session_now(seat),
            None => self.nobody.clone(),
        };
        let mut flags = note.flags;
        if seat.is_some_and(|seat| seat.foreign) {
            flags.push("session_other_principal".to_owned());
        }
        let message = Box::new(Message {
            id: self.ids.next(at),
            exchange_id: exchange.id,
            session,
            direction: note.direction,
            kind: note.kind.to_owned(),
            method: note.method,
            jsonrpc_id: note.id,
            call: note.call,
            at,
            http_status: exchange.status(),
            body: note.body,
            flags,
        });
        if seat.is_some() {
            exchange.produced = true;
            self.out.records.push(Record::Message(message));
        } else {
            exchange.held.push(message);
        }
    }

    /// The exchange has found its session: what was held goes to the log.
    pub(super) fn release(&mut self, exchange: &mut Exchange) {
        let Some(seat) = exchange.seat.clone().filter(|_| !exchange.held.is_empty()) else {
            return;
        };
        let session = self.session_now(&seat);
        let status = exchange.status();
        for mut message in exchange.held.drain(..) {
            message.session = session.clone();
            message.http_status = status;
            self.out.records.push(Record::Message(message));
        }
        exchange.produced = true;
    }

    /// The record of a message as it came.
    pub(super) fn note_of(&self, message: &Incoming<'_>, direction: Direction) -> Note {
        let part = match message.kind {
            Kind::Response => message.error.or(message.result),
            Kind::Request | Kind::Notification => message.params,
            Kind::Invalid => std::str::from_utf8(message.text)
                .ok()
                .and_then(|text| serde_json::from_str::<&RawValue>(text).ok()),
        };
        let mut flags = Vec::new();
        let body = match message.cut {
            None => part.and_then(|part| self.rules.json(part, Place::Message)),
            Some(overflow) => {
                flags.push("truncated".to_owned());
                flags.push(over_cap(message.text.len(), message.bytes, overflow));
                self.rules.prefix(message.text, Place::Message)
            }
        };
        if message.duplicate_members {
            flags.push("duplicate_members".to_owned());
        }
        if message.not_v2 {
            flags.push("not_jsonrpc_2".to_owned());
        }
        Note {
            direction,
            kind: match message.kind {
                Kind::Request => "request",
                Kind::Notification => "notification",
                Kind::Response => "response",
                Kind::Invalid => "invalid",
            },
            method: message
                .method
                .as_deref()
                .map(|method| clipped(method, MAX_NAME)),
            id: spelled(&message.id),
            call: None,
            body,
            flags,
        }
    }
}

/// An id as spelled; none when there is none.
pub(super) fn spelled(id: &IdField) -> Option<RawJson> {
    let raw = match id {
        IdField::Missing => return None,
        // No peer needs an id that long; its record would only cost.
        IdField::Id(id) if id.as_raw_json().len() > MAX_ID => {
            return Some(quoted(&clipped(id.as_raw_json(), MAX_ID)));
        }
        IdField::Invalid(raw) if raw.len() > MAX_ID => return Some(quoted(&clipped(raw, MAX_ID))),
        IdField::Null => "null",
        IdField::Id(id) => id.as_raw_json(),
        IdField::Invalid(raw) => raw,
    };
    Some(RawValue::from_string(raw.to_owned()).unwrap_or_else(|_| quoted(raw)))
}
