//! What ties exchanges of one call together beyond its id: request states, equal questions, task ids, retries.
//!
//! Everything is kept as keyed digests. A digest covers upstream and principal, so that nobody's call is ever joined to
//! somebody else's.

use callbox_store::SessionSource;
use callbox_wire::mcp::each_member;
use callbox_wire::redact::Redactor;
use serde_json::value::RawValue;

use super::bounded::{Bounded, DigestMap, Key};
use super::calls::RequestNo;
use super::sessions::Seat;

/// Failed calls that a retry is told by.
const MAX_FAILED: usize = 4096;
/// Seconds after which a like call is no retry any more.
const RETRY_WITHIN: u32 = 60;

/// What an interim result asked for, as a further leg will show it.
#[derive(Debug)]
pub(super) struct Asks {
    /// Digest of its `requestState`.
    state: Option<Key>,
    /// Digest of tool, arguments and the names of what was asked.
    question: Key,
    /// Names of the inputs that are elicitations.
    pub(super) elicits: Vec<Box<str>>,
}

/// The call that a further leg belongs to.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Linked {
    /// None that is known.
    No,
    One {
        no: RequestNo,
        /// Not told by `requestState` alone.
        weak: bool,
    },
    Several(Vec<RequestNo>),
}

/// Links by digest.
#[derive(Debug)]
pub(super) struct Links {
    states: DigestMap<Key, Vec<RequestNo>>,
    questions: DigestMap<Key, Vec<RequestNo>>,
    tasks: DigestMap<Key, RequestNo>,
    failed: Bounded<()>,
}

/// Upstream and principal, for digests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) upstream: &'a str,
    pub(super) principal: Option<Key>,
}

impl Scope<'_> {
    /// Digest of parts within this scope.
    pub(super) fn digest(&self, redactor: &Redactor, domain: &str, parts: &[&[u8]]) -> Key {
        let size =
            parts.iter().map(|part| part.len() + 8).sum::<usize>() + self.upstream.len() + 32;
        let mut value = Vec::with_capacity(size);
        value.extend_from_slice(&self.principal.unwrap_or_default());
        for part in std::iter::once(&self.upstream.as_bytes()).chain(parts) {
            // Lengths, so that parts cannot run into each other.
            value.extend_from_slice(&(part.len() as u64).to_le_bytes());
            value.extend_from_slice(part);
        }
        redactor.digest(domain, &value)
    }

    /// Digest of a task id: within its session where the protocol has one, else within the principal.
    pub(super) fn task(&self, redactor: &Redactor, seat: &Seat, task: &str) -> Key {
        if seat.session.source == SessionSource::Protocol {
            let scope = Scope {
                principal: None,
                ..*self
            };
            scope.digest(redactor, "task", &[&seat.key, task.as_bytes()])
        } else {
            self.digest(redactor, "task", &[task.as_bytes()])
        }
    }

    /// Digest of what a call asks, to know it again.
    pub(super) fn retry(
        &self,
        redactor: &Redactor,
        seat: &Seat,
        tool: &str,
        arguments: u64,
    ) -> Key {
        // A client without a credential is known by its session only.
        let session: &[u8] = if self.principal.is_some() {
            &[]
        } else {
            &seat.key
        };
        self.digest(
            redactor,
            "retry",
            &[session, tool.as_bytes(), &arguments.to_le_bytes()],
        )
    }

    /// What an interim result asks.
    pub(super) fn asks(
        &self,
        redactor: &Redactor,
        state: Option<&str>,
        tool: &str,
        arguments: u64,
        inputs: Option<&RawValue>,
    ) -> Asks {
        let (mut names, mut elicits) = (Vec::new(), Vec::new());
        if let Some(inputs) = inputs {
            each_member(inputs.get(), |name, request| {
                names.push(name.to_owned());
                each_member(request.get(), |member, value| {
                    if member == "method" && value.get() == r#""elicitation/create""# {
                        elicits.push(name.into());
                    }
                });
            });
        }
        names.sort_unstable();
        let arguments = arguments.to_le_bytes();
        let mut parts: Vec<&[u8]> = vec![tool.as_bytes(), &arguments];
        parts.extend(names.iter().map(String::as_bytes));
        Asks {
            state: state.map(|state| self.digest(redactor, "request-state", &[state.as_bytes()])),
            question: self.digest(redactor, "question", &parts),
            elicits,
        }
    }
}

impl Links {
    pub(super) fn new() -> Self {
        Self {
            states: DigestMap::default(),
            questions: DigestMap::default(),
            tasks: DigestMap::default(),
            failed: Bounded::new(MAX_FAILED),
        }
    }

    /// An interim result was given: the call waits for a further leg.
    pub(super) fn wait(&mut self, asks: &Asks, no: RequestNo) {
        let (index, key) = self.place(asks);
        index.entry(key).or_default().push(no);
    }

    /// The call waits no more.
    pub(super) fn stop(&mut self, asks: &Asks, no: RequestNo) {
        let (index, key) = self.place(asks);
        if let Some(waiting) = index.get_mut(&key) {
            waiting.retain(|other| *other != no);
            if waiting.is_empty() {
                index.remove(&key);
            }
        }
    }

    /// With a state the state must be equal; only without one does the question count.
    fn place(&mut self, asks: &Asks) -> (&mut DigestMap<Key, Vec<RequestNo>>, Key) {
        match asks.state {
            Some(state) => (&mut self.states, state),
            None => (&mut self.questions, asks.question),
        }
    }

    /// The call that a leg which answers `leg` belongs to; `same_question` tells whether a waiting call asked just that.
    pub(super) fn find(
        &mut self,
        leg: &Asks,
        same_question: impl Fn(RequestNo, &Key) -> bool,
    ) -> Linked {
        let by_state = leg.state.is_some();
        let (index, key) = self.place(leg);
        let Some(waiting) = index.get(&key) else {
            return Linked::No;
        };
        if let [no] = waiting.as_slice() {
            return Linked::One {
                no: *no,
                weak: !by_state,
            };
        }
        let alike: Vec<RequestNo> = waiting
            .iter()
            .copied()
            .filter(|no| same_question(*no, &leg.question))
            .collect();
        match alike.as_slice() {
            [no] => Linked::One {
                no: *no,
                weak: true,
            },
            [] => Linked::Several(waiting.clone()),
            _ => Linked::Several(alike),
        }
    }

    pub(super) fn begin_task(&mut self, task: Key, no: RequestNo) {
        self.tasks.insert(task, no);
    }

    pub(super) fn task(&self, task: &Key) -> Option<RequestNo> {
        self.tasks.get(task).copied()
    }

    pub(super) fn end_task(&mut self, task: &Key, no: RequestNo) {
        if self.task(task) == Some(no) {
            self.tasks.remove(task);
        }
    }

    /// A call got no answer; the same question soon after is a retry.
    pub(super) fn failed(&mut self, call: Key, now: u32) {
        self.failed.insert(call, (), now);
    }

    /// Whether there is anything to retry at all.
    pub(super) fn any_failed(&self) -> bool {
        !self.failed.is_empty()
    }

    /// Whether this repeats a call that failed lately. Asked once per repetition.
    pub(super) fn is_retry(&mut self, call: &Key, now: u32) -> bool {
        let lately = self
            .failed
            .used(call)
            .is_some_and(|used| used + RETRY_WITHIN >= now);
        self.failed.remove(call);
        lately
    }

    /// Failures that are too old for a retry are forgotten.
    pub(super) fn expire(&mut self, now: u32) {
        while let Some(old) = self.failed.oldest_before(now.saturating_sub(RETRY_WITHIN)) {
            self.failed.remove(&old);
        }
        self.failed.shrink();
    }
}

impl Asks {
    /// Whether it asks just what `question` answers.
    pub(super) fn is(&self, question: &Key) -> bool {
        self.question == *question
    }
}
