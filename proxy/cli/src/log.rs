//! The call log as the commands see it: opened for reading, ids and principals completed, every refusal in words that
//! say what to do next.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use callbox_store::{Reader, Resolved, SessionFilter, SessionSummary, StoreError};
use uuid::Uuid;

use crate::exit::Advice;
use crate::{clock, ids, words};

/// A call log, opened for reading.
pub(crate) struct Log {
    pub(crate) dir: PathBuf,
    pub(crate) reader: Reader,
}

impl Log {
    pub(crate) fn open(dir: &Path) -> anyhow::Result<Self> {
        let reader = Reader::open(dir).map_err(|error| advise(dir, error))?;
        Ok(Self {
            dir: dir.to_owned(),
            reader,
        })
    }

    /// What an id given to `show` means. A session and its first calls are minted within seconds and share their first
    /// digits: a beginning that one session has among others means the session.
    pub(crate) fn resolve(&self, prefix: &str) -> anyhow::Result<Resolved> {
        let candidates = match self.reader.resolve(prefix) {
            Err(StoreError::AmbiguousId { candidates, .. }) => candidates,
            other => return other.map_err(|error| advise(&self.dir, error)),
        };
        let mut sessions = candidates.iter().filter(|id| self.is_session(**id));
        match (sessions.next(), sessions.next()) {
            (Some(one), None) => Ok(Resolved::Session(*one)),
            _ => Err(self.ambiguous(prefix, &candidates)),
        }
    }

    /// The session that an id names where nothing but a session makes sense.
    pub(crate) fn session_id(&self, prefix: &str) -> anyhow::Result<Uuid> {
        match self.reader.resolve(prefix) {
            Ok(Resolved::Session(id)) => Ok(id),
            Ok(Resolved::Call(id)) => {
                let call = self
                    .reader
                    .call(id)?
                    .context("the call was removed just now")?;
                let session = self.short_session(call.session.id);
                Err(Advice::new(
                    format!("{prefix} is a call, not a session"),
                    format!("its session is {session}"),
                )
                .into())
            }
            Err(StoreError::AmbiguousId { candidates, .. }) => {
                let sessions = self.sessions_beginning_with(prefix)?;
                match sessions.as_slice() {
                    [one] => Ok(*one),
                    [] => Err(self.ambiguous(prefix, &candidates)),
                    several => Err(self.ambiguous(prefix, several)),
                }
            }
            Err(error) => Err(advise(&self.dir, error)),
        }
    }

    /// A principal from the beginning of its digest.
    pub(crate) fn principal(&self, prefix: &str) -> anyhow::Result<String> {
        let mut found: Vec<String> = self
            .reader
            .sessions(&SessionFilter::default(), None)?
            .into_iter()
            .filter_map(|summary| summary.session.principal)
            .filter(|principal| principal.starts_with(prefix))
            .collect();
        found.sort_unstable();
        found.dedup();
        match found.as_slice() {
            [one] => Ok(one.clone()),
            _ if found.iter().any(|principal| principal == prefix) => Ok(prefix.to_owned()),
            [] => Err(Advice::new(
                format!("no session has a principal that begins with {prefix}"),
                "callbox sessions lists them; a principal looks like h:9f2c…",
            )
            .into()),
            several => {
                let list = several.join("\n  ");
                Err(Advice::new(
                    format!("{prefix} is the beginning of several principals"),
                    format!("give more of it:\n  {list}"),
                )
                .into())
            }
        }
    }

    /// The shortest beginnings of calls' ids that `show` understands, in their order.
    pub(crate) fn short_calls(&self, ids: &[Uuid]) -> Vec<String> {
        ids::apart(ids)
            .into_iter()
            .zip(ids)
            .map(|(digits, id)| self.lengthen(*id, digits, &|_| true))
            .collect()
    }

    /// The shortest beginning of a session's id that `show` and `--session` understand.
    pub(crate) fn short_session(&self, id: Uuid) -> String {
        self.lengthen(id, ids::SHORTEST, &|other| self.is_session(other))
    }

    /// [`Log::short_session`] for many, in their order. Of a list so long that looking each one up would take seconds, they
    /// are only told apart from one another.
    pub(crate) fn short_sessions(&self, ids: &[Uuid]) -> Vec<String> {
        const LONG: usize = 2000;
        let mut known = HashMap::new();
        let mut short = |(digits, id): (usize, &Uuid)| -> String {
            let known = known.entry(*id).or_insert_with(|| match ids.len() {
                ..LONG => self.lengthen(*id, digits, &|other| self.is_session(other)),
                _ => ids::prefix(*id, digits),
            });
            known.clone()
        };
        let digits = ids::apart(ids).into_iter();
        digits.zip(ids).map(&mut short).collect()
    }

    /// The beginning of `id`, of so many digits or as many more as it takes to tell it from its rivals.
    fn lengthen(&self, id: Uuid, mut digits: usize, is_rival: &dyn Fn(Uuid) -> bool) -> String {
        while let Err(StoreError::AmbiguousId { candidates, .. }) =
            self.reader.resolve(&ids::prefix(id, digits))
        {
            let rivals = candidates
                .into_iter()
                .filter(|other| *other != id && is_rival(*other));
            match rivals.map(|other| ids::common(id, other)).max() {
                Some(common) => digits = common.max(digits) + 1,
                None => break,
            }
        }
        ids::prefix(id, digits)
    }

    fn is_session(&self, id: Uuid) -> bool {
        matches!(self.reader.session(id), Ok(Some(_)))
    }

    fn sessions_beginning_with(&self, prefix: &str) -> anyhow::Result<Vec<Uuid>> {
        let sessions = self.reader.sessions(&SessionFilter::default(), None)?;
        Ok(sessions
            .into_iter()
            .map(|summary| summary.session.id)
            .filter(|id| ids::begins_with(*id, prefix))
            .collect())
    }

    /// Says what the candidates are, so that one can be chosen.
    fn ambiguous(&self, prefix: &str, candidates: &[Uuid]) -> anyhow::Error {
        /// Enough to see what is meant; more would scroll the error away.
        const MOST: usize = 20;
        let mut candidates = candidates.to_vec();
        candidates.sort_unstable();
        let listed = candidates.get(..MOST).unwrap_or(&candidates);
        let lines = self
            .short_calls(listed)
            .into_iter()
            .zip(listed)
            .map(|(short, id)| {
                // An id whose record cannot be read is listed all the same.
                let about = self.describe(*id).unwrap_or_default();
                format!("\n  {short}  {about}")
            });
        let mut list: String = lines.collect();
        if candidates.len() > MOST {
            list += "\n  ...";
        }
        let message = format!("{prefix} is the beginning of several ids");
        Advice::new(message, format!("give more of it:{list}")).into()
    }

    fn describe(&self, id: Uuid) -> anyhow::Result<String> {
        if let Some(call) = self.reader.call(id)? {
            let outcome = words::outcome(call.outcome);
            return Ok(format!(
                "call     {}  {}  {outcome}",
                clock::date_time(call.started_at),
                call.tool
            ));
        }
        let Some(SessionSummary { session, .. }) = self.reader.session(id)? else {
            return Ok(String::new());
        };
        let client = session
            .client
            .as_ref()
            .map(words::client)
            .unwrap_or_default();
        Ok(format!(
            "session  {}  {client}",
            clock::date_time(session.started_at)
        ))
    }
}

/// Adds what to do to an error of the store.
pub(crate) fn advise(dir: &Path, error: StoreError) -> anyhow::Error {
    let hint = match &error {
        StoreError::NoSuchId(_) => "`callbox calls` and `callbox sessions` list what there is",
        StoreError::BadId(_) => {
            "ids are in the first columns of `callbox calls` and `callbox sessions`"
        }
        StoreError::NoLog(_) => {
            let message = format!("no call log in {}", dir.display());
            let hint = "name its directory with --data, or start recording there: callbox up --upstream ORIGIN --data DIR";
            return Advice::new(message, hint).into();
        }
        _ => return error.into(),
    };
    Advice::new(error.to_string(), hint).into()
}
