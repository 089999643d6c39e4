//! Sessions in memory: which one a message belongs to, and what a session holds while its messages come.
//!
//! Bounded twice. Sessions without a call wait in a small room of their own: opening sessions and never using them must
//! not push out those that are used. What leaves memory is found again in the log by its key.

use std::collections::VecDeque;
use std::sync::Arc;

use callbox_store::{Client, Ids, Micros, Session, SessionSource};
use callbox_wire::mcp::Method;
use callbox_wire::rpc::RequestId;
use uuid::Uuid;

use super::bounded::{Bounded, Key};
use super::calls::RequestNo;
use super::identity::{self, Identity};
use super::open::Open;

/// Finds a session and the number of its last call in the log.
pub(crate) type Finder = Box<dyn Fn(&Key) -> Option<(Session, u32)> + Send>;

/// Sessions without a call that are kept.
const MAX_FRESH: usize = 4096;
/// Server requests that wait for the client's answer, per session.
const MAX_ASKED: usize = 64;
/// Look-ups in the log per second; made-up session ids must not stall the observer.
const LOOKUPS_PER_SECOND: u32 = 500;

/// A session in memory.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) session: Arc<Session>,
    /// Whose it is.
    owner: Option<Key>,
    /// Number of its last call.
    calls: u32,
    /// Tool list that was listed in it.
    pub(super) catalogue: Option<Arc<str>>,
    /// Requests of the client that are open.
    pub(super) open: Open,
    asked: Option<Box<VecDeque<Asked>>>,
}

/// A request of the server that the client has not answered.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) id: RequestId,
    pub(super) kind: Method,
    pub(super) method: Box<str>,
    /// The call it was asked for.
    pub(super) call: Option<(RequestNo, Uuid)>,
}

/// A message's place: its session, and how it got there.
#[derive(Clone, Debug)]
pub(super) struct Seat {
    pub(super) key: Key,
    pub(super) session: Arc<Session>,
    /// The session id belongs to another principal.
    pub(super) foreign: bool,
}

/// What a new session is made from.
#[derive(Clone, Copy, Debug)]
pub(super) struct Origin<'a> {
    pub(super) upstream: &'a str,
    pub(super) identity: &'a Identity,
    pub(super) client: Option<&'a Client>,
    pub(super) version: Option<&'a str>,
    pub(super) at: Micros,
}

/// All sessions in memory.
pub(super) struct Sessions {
    used: Bounded<Active>,
    fresh: Bounded<Active>,
    find: Finder,
    lookups: (u32, u32),
    /// Seconds of silence after which an inferred session is over.
    pub(super) idle: u32,
    pub(super) evicted: u64,
}

impl std::fmt::Debug for Sessions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sessions")
            .field("used", &self.used.len())
            .field("fresh", &self.fresh.len())
            .finish_non_exhaustive()
    }
}

impl Sessions {
    pub(super) fn new(max: usize, idle: u32, find: Finder) -> Self {
        Self {
            used: Bounded::new(max),
            fresh: Bounded::new(max.min(MAX_FRESH)),
            find,
            lookups: (0, 0),
            idle,
            evicted: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.used.len() + self.fresh.len()
    }

    /// A session in memory, without counting as use.
    pub(super) fn peek(&mut self, key: &Key) -> Option<&mut Active> {
        match self.used.peek(key) {
            Some(active) => Some(active),
            None => self.fresh.peek(key),
        }
    }

    fn get(&mut self, key: &Key, now: u32) -> Option<&mut Active> {
        match self.used.get(key, now) {
            Some(active) => Some(active),
            None => self.fresh.get(key, now),
        }
    }

    /// Whether a session is known, in memory or in the log.
    pub(super) fn knows(&mut self, key: &Key, now: u32) -> bool {
        self.peek(key).is_some() || self.recall(key, now)
    }

    /// The session under a key that nobody else's credential leads to; made when there is none.
    pub(super) fn seat(
        &mut self,
        key: Key,
        source: SessionSource,
        origin: &Origin<'_>,
        ids: &mut Ids,
        now: u32,
    ) -> Seat {
        let over = source == SessionSource::Inferred
            && self.peek(&key).is_some_and(|active| active.open.is_empty())
            && self
                .last_used(&key)
                .is_some_and(|used| used.saturating_add(self.idle) < now);
        if over {
            self.remove(&key);
        }
        let lasting = matches!(
            source,
            SessionSource::Protocol | SessionSource::Conversation
        );
        if self.peek(&key).is_none() && !(lasting && self.recall(&key, now)) {
            return self.begin(key, source, origin, ids, now);
        }
        match self.get(&key, now) {
            Some(active) => {
                active.learn(origin);
                Seat {
                    key,
                    session: Arc::clone(&active.session),
                    foreign: false,
                }
            }
            None => self.begin(key, source, origin, ids, now),
        }
    }

    /// The session of the protocol under `key`; under `other` when it belongs to another principal.
    pub(super) fn protocol_seat(
        &mut self,
        key: Key,
        other: impl FnOnce() -> Key,
        origin: &Origin<'_>,
        ids: &mut Ids,
        now: u32,
    ) -> Seat {
        if !self.knows(&key, now) {
            return self.begin(key, SessionSource::Protocol, origin, ids, now);
        }
        let owner = self.peek(&key).and_then(|active| active.owner);
        if owner == origin.identity.principal {
            return self.seat(key, SessionSource::Protocol, origin, ids, now);
        }
        let version = self
            .peek(&key)
            .and_then(|active| active.session.protocol_version.clone());
        let origin = Origin {
            version: origin.version.or(version.as_deref()),
            ..*origin
        };
        let seat = self.seat(other(), SessionSource::Protocol, &origin, ids, now);
        Seat {
            foreign: true,
            ..seat
        }
    }

    /// A new session, also where there was one under the key.
    pub(super) fn begin(
        &mut self,
        key: Key,
        source: SessionSource,
        origin: &Origin<'_>,
        ids: &mut Ids,
        now: u32,
    ) -> Seat {
        let session = Arc::new(Session {
            id: ids.next(origin.at),
            source,
            key,
            upstream: origin.upstream.to_owned(),
            principal: origin.identity.principal.as_ref().map(identity::shown),
            tenant: origin.identity.tenant.as_deref().map(str::to_owned),
            asserted: origin.identity.asserted,
            client: origin.client.cloned(),
            protocol_version: origin.version.map(str::to_owned),
            started_at: origin.at,
        });
        self.remove(&key);
        let active = Active::new(Arc::clone(&session), origin.identity.principal, 0);
        if let Some((left, _)) = self.fresh.insert(key, active, now)
            && left != key
        {
            self.evicted += 1;
        }
        Seat {
            key,
            session,
            foreign: false,
        }
    }

    /// The number of the session's next call.
    pub(super) fn next_seq(&mut self, seat: &Seat, now: u32) -> u32 {
        if let Some(active) = self.used.get(&seat.key, now) {
            active.calls += 1;
            return active.calls;
        }
        let mut active = match self.fresh.remove(&seat.key) {
            Some(active) => active,
            // It had to leave memory while its exchange was under way.
            None => match self.look_up(&seat.key, now) {
                Some(active) => active,
                None => Active::new(Arc::clone(&seat.session), owner_of(&seat.session), 0),
            },
        };
        active.calls += 1;
        let seq = active.calls;
        if let Some((left, _)) = self.used.insert(seat.key, active, now)
            && left != seat.key
        {
            self.evicted += 1;
        }
        seq
    }

    pub(super) fn remove(&mut self, key: &Key) -> Option<Active> {
        self.used.remove(key).or_else(|| self.fresh.remove(key))
    }

    /// Sessions that were silent for too long leave, unless something is open in them.
    pub(super) fn expire(&mut self, now: u32) {
        let limit = now.saturating_sub(self.idle);
        for room in [&mut self.used, &mut self.fresh] {
            while let Some(key) = room.oldest_before(limit) {
                if room
                    .peek(&key)
                    .is_some_and(|active| !active.open.is_empty())
                {
                    room.get(&key, now);
                } else {
                    room.remove(&key);
                }
            }
            room.shrink();
        }
    }

    fn last_used(&self, key: &Key) -> Option<u32> {
        self.used.used(key).or_else(|| self.fresh.used(key))
    }

    fn recall(&mut self, key: &Key, now: u32) -> bool {
        let Some(active) = self.look_up(key, now) else {
            return false;
        };
        let room = if active.calls > 0 {
            &mut self.used
        } else {
            &mut self.fresh
        };
        if room.insert(*key, active, now).is_some() {
            self.evicted += 1;
        }
        true
    }

    fn look_up(&mut self, key: &Key, now: u32) -> Option<Active> {
        let (second, count) = &mut self.lookups;
        if *second != now {
            (*second, *count) = (now, 0);
        }
        *count += 1;
        if *count > LOOKUPS_PER_SECOND {
            return None;
        }
        let (session, calls) = (self.find)(key)?;
        let owner = owner_of(&session);
        Some(Active::new(Arc::new(session), owner, calls))
    }
}

fn owner_of(session: &Session) -> Option<Key> {
    session.principal.as_deref().and_then(identity::hidden)
}

impl Active {
    fn new(session: Arc<Session>, owner: Option<Key>, calls: u32) -> Self {
        Self {
            session,
            owner,
            calls,
            catalogue: None,
            open: Open::default(),
            asked: None,
        }
    }

    /// What was not known when the session began.
    pub(super) fn learn(&mut self, origin: &Origin<'_>) {
        let client = origin.client.filter(|_| self.session.client.is_none());
        let version = origin
            .version
            .filter(|_| self.session.protocol_version.is_none());
        if client.is_some() || version.is_some() {
            self.introduce(client.cloned(), version);
        }
    }

    /// What the handshake said.
    pub(super) fn introduce(&mut self, client: Option<Client>, version: Option<&str>) {
        let mut session = Session::clone(&self.session);
        if client.is_some() {
            session.client = client;
        }
        if let Some(version) = version {
            session.protocol_version = Some(version.to_owned());
        }
        self.session = Arc::new(session);
    }

    /// The server asks the client.
    pub(super) fn ask(&mut self, asked: Asked) {
        let all = self.asked.get_or_insert_default();
        if all.len() == MAX_ASKED {
            all.pop_front();
        }
        all.push_back(asked);
    }

    /// The client answers; the newest of that id, should the server have used it twice.
    pub(super) fn answer(&mut self, id: &RequestId) -> Option<Asked> {
        let all = self.asked.as_mut()?;
        let at = all.iter().rposition(|asked| asked.id == *id)?;
        let asked = all.remove(at);
        if all.is_empty() {
            self.asked = None;
        }
        asked
    }
}
