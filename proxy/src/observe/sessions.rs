//! Sessions in memory: found by a keyed digest, given up when they are silent or when there are too many.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use callbox_store::Session;
use callbox_wire::rpc::RequestId;

use super::calls::OpenCall;

/// Calls of one session that wait for an answer elsewhere; more are given up, the oldest first.
const MAX_WAITING: usize = 256;
/// Requests of the server that wait for the client's answer.
const MAX_SERVER_REQUESTS: usize = 64;

/// Keyed digest of what identifies a session.
pub(super) type Key = [u8; 16];

/// What is known of a session while it is active.
#[derive(Debug)]
pub(super) struct Active {
    pub(super) session: Arc<Session>,
    pub(super) calls: u32,
    pub(super) seen: Instant,
    pub(super) catalogue: Option<Arc<str>>,
    /// Rarely used parts.
    pub(super) more: Option<Box<More>>,
}

/// Parts that most sessions never need.
#[derive(Debug, Default)]
pub(super) struct More {
    /// Calls whose answer comes on another exchange, or not at all.
    pub(super) waiting: Vec<Box<OpenCall>>,
    /// Requests from the server: id, method, the call they belong to.
    pub(super) server_requests: VecDeque<(RequestId, Box<str>, Option<uuid::Uuid>)>,
    /// Pages of a tool list under way.
    pub(super) pages: Vec<Box<serde_json::value::RawValue>>,
    /// The cursor that continues them.
    pub(super) cursor: Option<Box<str>>,
}

impl Active {
    pub(super) fn more(&mut self) -> &mut More {
        self.more.get_or_insert_default()
    }

    /// Keeps a call for an answer on another exchange; gives the one that had to go for it.
    pub(super) fn wait_for(&mut self, call: Box<OpenCall>) -> Option<Box<OpenCall>> {
        let waiting = &mut self.more().waiting;
        let gone = (waiting.len() >= MAX_WAITING).then(|| waiting.remove(0));
        waiting.push(call);
        gone
    }

    /// Takes out the waiting call that `matches`.
    pub(super) fn take_waiting(
        &mut self,
        matches: impl Fn(&OpenCall) -> bool,
    ) -> Option<Box<OpenCall>> {
        let waiting = &mut self.more.as_mut()?.waiting;
        let at = waiting.iter().position(|call| matches(call))?;
        Some(waiting.remove(at))
    }

    pub(super) fn server_asked(&mut self, id: RequestId, method: &str, call: Option<uuid::Uuid>) {
        let requests = &mut self.more().server_requests;
        if requests.len() >= MAX_SERVER_REQUESTS {
            requests.pop_front();
        }
        requests.push_back((id, method.into(), call));
    }
}

/// All sessions in memory.
#[derive(Debug)]
pub(super) struct Sessions {
    by_key: HashMap<Key, Active>,
    /// When each is to be looked at again; an entry that was seen since goes to the end.
    queue: VecDeque<(Instant, Key)>,
    max: usize,
    pub(super) evicted: u64,
}

impl Sessions {
    pub(super) fn new(max: usize) -> Self {
        Self {
            by_key: HashMap::new(),
            queue: VecDeque::new(),
            max: max.max(1),
            evicted: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(super) fn get(&mut self, key: &Key) -> Option<&mut Active> {
        self.by_key.get_mut(key)
    }

    /// Adds a session; gives those that had to go.
    pub(super) fn insert(&mut self, key: Key, active: Active) -> Vec<Active> {
        let mut gone = Vec::new();
        while self.by_key.len() >= self.max {
            let Some((_, oldest)) = self.queue.pop_front() else {
                break;
            };
            if let Some(active) = self.by_key.remove(&oldest) {
                self.evicted += 1;
                gone.push(active);
            }
        }
        self.queue.push_back((active.seen, key));
        gone.extend(self.by_key.insert(key, active));
        gone
    }

    /// Takes out sessions that have been silent for `idle`.
    pub(super) fn expire(&mut self, now: Instant, idle: Duration) -> Vec<Active> {
        let mut gone = Vec::new();
        while let Some((queued, key)) = self.queue.front().copied() {
            if now.saturating_duration_since(queued) < idle {
                break;
            }
            self.queue.pop_front();
            match self.by_key.get(&key) {
                Some(active) if now.saturating_duration_since(active.seen) < idle => {
                    self.queue.push_back((active.seen, key));
                }
                Some(_) => gone.extend(self.by_key.remove(&key)),
                None => {}
            }
        }
        if self.by_key.capacity() > 4 * self.by_key.len() + 1024 {
            self.by_key.shrink_to_fit();
            self.queue.shrink_to_fit();
        }
        gone
    }

    /// Takes out all.
    pub(super) fn drain(&mut self) -> Vec<Active> {
        self.queue.clear();
        self.by_key.drain().map(|(_, active)| active).collect()
    }
}
