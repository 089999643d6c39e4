//! Which request a message from the server is about.
//!
//! Ids are only ever compared within one session, and a request of the same exchange comes first: the two directions, and
//! other sessions and principals, use the same ids all the time.

use callbox_wire::rpc::{IdField, RequestId};
use uuid::Uuid;

use super::calls::{Request, RequestNo, Role, What};
use super::core::Core;
use super::exchange::{Exchange, Kind};
use super::head::value;
use super::incoming::Incoming;
use super::link::Scope;

/// Requests that are looked through where no index helps.
const MAX_SCANNED: usize = 64;

/// The request that a response answers.
#[derive(Debug)]
pub(super) enum Found {
    /// One of this exchange. `odd`: what is wrong with the id, as a flag.
    Own {
        no: RequestNo,
        odd: Option<&'static str>,
    },
    /// One that another exchange of the session carried.
    Elsewhere(RequestNo),
    None,
}

impl Core {
    pub(super) fn find(&mut self, exchange: &Exchange, message: &Incoming<'_>) -> Found {
        let IdField::Id(id) = &message.id else {
            return match self.only(exchange) {
                // What answers an id of `null`, or an error whose sender could not read the id.
                Some((no, named)) if !named || message.is_error() => Found::Own {
                    no,
                    odd: named.then_some("id_missing"),
                },
                _ => Found::None,
            };
        };
        let (mut own, mut elsewhere) = (None, None);
        self.with_id(exchange, id, |no, request| {
            if request.exchange == exchange.id {
                // In the order they were asked, should an id be there twice.
                let rank = (request.answered, no);
                own = Some(own.map_or(rank, |best: (bool, RequestNo)| best.min(rank)));
            } else {
                // The one whose stream is resumed here, else one that still waits, else a repetition; the newest of each.
                let rank = (is_resumed(exchange, request), !request.answered, no);
                elsewhere = elsewhere.max(Some(rank));
            }
        });
        if let Some((_, no)) = own {
            return Found::Own { no, odd: None };
        }
        let like = exchange.requests.iter().take(MAX_SCANNED).find(|no| {
            self.requests.get(**no).is_some_and(|request| {
                !request.answered && request.id.as_ref().is_some_and(|known| known.resembles(id))
            })
        });
        if let Some(no) = like {
            return Found::Own {
                no: *no,
                odd: Some("id_type_mismatch"),
            };
        }
        match self.only(exchange) {
            // A call known by its headers only has no id to compare.
            Some((no, false)) => Found::Own { no, odd: None },
            // A refusal under an id of the server's own.
            Some((no, true))
                if elsewhere.is_none() && message.is_error() && !exchange.is_success() =>
            {
                Found::Own {
                    no,
                    odd: Some("id_mismatch"),
                }
            }
            _ => elsewhere.map_or(Found::None, |(_, _, no)| Found::Elsewhere(no)),
        }
    }

    /// All requests with an id: of the exchange's session, or of the exchange itself while it has none.
    fn with_id(
        &mut self,
        exchange: &Exchange,
        id: &RequestId,
        mut with: impl FnMut(RequestNo, &mut Request),
    ) {
        let candidates = match &exchange.seat {
            Some(seat) => self.requests.with_id(&seat.key, id),
            None => exchange.requests.clone(),
        };
        for no in candidates {
            if let Some(request) = self.requests.get(no).filter(|request| request.has_id(id)) {
                with(no, request);
            }
        }
    }

    /// The one open request that an answer without a usable id can mean, and whether it has an id.
    fn only(&mut self, exchange: &Exchange) -> Option<(RequestNo, bool)> {
        if exchange.requests.len() > MAX_SCANNED {
            return None;
        }
        let mut open = exchange.requests.iter().copied().filter_map(|no| {
            let request = self.requests.get(no)?;
            (!request.answered).then_some((no, request.id.is_some()))
        });
        match (open.next(), open.next()) {
            (only, None) => only,
            _ => None,
        }
    }

    /// The one call that a message on this exchange can be about.
    pub(super) fn call_meant(
        &mut self,
        exchange: &Exchange,
        task: Option<&str>,
    ) -> Option<(RequestNo, Uuid)> {
        if let Some(found) = task.and_then(|task| self.call_of_task(exchange, task)) {
            return Some(found);
        }
        // Where the whole session has one stream, its only open call stands for what an exchange carried.
        let shared = exchange.down.as_ref().is_some_and(|down| down.endpoint);
        let session = exchange.seat.as_ref().filter(|_| shared);
        let open = session
            .and_then(|seat| self.sessions.peek(&seat.key))
            .map(|active| active.open.as_slice())
            .filter(|open| open.len() <= MAX_SCANNED)
            .map(<[RequestNo]>::to_vec)
            .unwrap_or_default();
        let own = exchange.requests.iter().take(MAX_SCANNED).copied();
        let mut meant = own.chain(open).filter_map(|no| {
            let request = self.requests.get(no)?;
            let no = match &request.what {
                What::Call(call) if shared && call.decided => return None,
                What::Call(_) => no,
                What::Other(other) => match other.role {
                    Role::Task(call) => call?,
                    _ => return None,
                },
            };
            Some((no, self.requests.call(no)?.record.id))
        });
        match (meant.next(), meant.next()) {
            (Some(only), None) => Some(only),
            _ => None,
        }
    }

    pub(super) fn call_of_task(
        &mut self,
        exchange: &Exchange,
        task: &str,
    ) -> Option<(RequestNo, Uuid)> {
        let seat = exchange.seat.as_ref()?;
        let scope = Scope {
            upstream: &exchange.head.upstream,
            principal: exchange.identity.principal,
        };
        let key = scope.task(&self.rules.redactor, seat, task);
        let no = self.links.task(&key)?;
        Some((no, self.requests.call(no)?.record.id))
    }

    /// The call that a progress token stands for: of this exchange, else one of the newest of the session.
    pub(super) fn call_of_token(
        &mut self,
        exchange: &Exchange,
        token: &RequestId,
    ) -> Option<(RequestNo, Uuid)> {
        let session = exchange
            .seat
            .as_ref()
            .and_then(|seat| self.sessions.peek(&seat.key));
        let others = session
            .map(|active| active.open.newest(MAX_SCANNED))
            .unwrap_or_default();
        let own = exchange.requests.iter().take(MAX_SCANNED).copied();
        own.chain(others).find_map(|no| {
            let call = self.requests.call(no)?;
            (call.progress.as_ref() == Some(token)).then_some((no, call.record.id))
        })
    }
}

/// Whether an exchange goes on with the stream that broke under a request.
fn is_resumed(exchange: &Exchange, request: &mut Request) -> bool {
    if exchange.kind != Kind::Resume {
        return false;
    }
    let after = value(&exchange.head.headers, "last-event-id");
    after.is_some()
        && request
            .call()
            .is_some_and(|call| call.last_event.as_deref().map(str::as_bytes) == after)
}
