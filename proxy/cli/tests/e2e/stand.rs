//! One test's stand: an upstream, callbox in front of it, a folder for its data; and the books balanced at the end.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use callbox_testkit::blocking::{Answer, Asked, Client, Upstream};
use callbox_testkit::process::{Callbox, until};
use serde_json::Value;
use tempfile::TempDir;

/// The binary under test.
pub(crate) const CALLBOX: &str = env!("CARGO_BIN_EXE_callbox");

/// Every deadline that can be set, far below what a case waits for: what outlives them has none.
pub(crate) const SHORT_DEADLINES: &[(&str, &str)] = &[
    ("LISTEN__TLS_TIMEOUT", "200ms"),
    ("LISTEN__REQUEST_HEAD_TIMEOUT", "200ms"),
    ("LISTEN__DRAIN_TIMEOUT", "200ms"),
    ("RECORD__DURABILITY_TIMEOUT", "200ms"),
    ("RECORD__SESSION_IDLE", "1s"),
];

/// Longer than any of [`SHORT_DEADLINES`].
pub(crate) const LONGER: Duration = Duration::from_millis(1500);

/// The stand. Dropping it kills callbox; [`Stand::finish`] ends it in order.
#[derive(Debug)]
pub(crate) struct Stand {
    pub(crate) callbox: Callbox,
    pub(crate) upstream: Upstream,
    pub(crate) folder: TempDir,
}

/// The binary's path.
pub(crate) fn binary() -> &'static Path {
    Path::new(CALLBOX)
}

/// What a stand is to be.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    upstream: Option<Upstream>,
    environment: Vec<(String, String)>,
    upstream_keys: Option<String>,
    sections: String,
}

impl Setup {
    /// A setting by its name in the environment without `CALLBOX__`.
    pub(crate) fn set(mut self, name: &str, value: &str) -> Self {
        self.environment
            .push((format!("CALLBOX__{name}"), value.to_owned()));
        self
    }

    /// Several of them.
    pub(crate) fn set_all(self, settings: &[(&str, &str)]) -> Self {
        settings
            .iter()
            .fold(self, |setup, (name, value)| setup.set(name, value))
    }

    /// Lines of `[[upstream]]`, then other sections: callbox is started with a file.
    pub(crate) fn file(mut self, upstream_keys: &str, sections: &str) -> Self {
        self.upstream_keys = Some(upstream_keys.to_owned());
        sections.clone_into(&mut self.sections);
        self
    }

    /// An upstream that answers by itself.
    pub(crate) fn answered_by(mut self, upstream: Upstream) -> Self {
        self.upstream = Some(upstream);
        self
    }

    /// Starts it.
    pub(crate) fn start(self) -> Result<Stand> {
        let folder = TempDir::new()?;
        let upstream = match self.upstream {
            Some(upstream) => upstream,
            None => Upstream::start()?,
        };
        let data = folder.path().join("data");
        let callbox = if let Some(keys) = self.upstream_keys {
            ensure!(self.environment.is_empty(), "a file or the environment");
            let config = folder.path().join("callbox.toml");
            std::fs::write(&config, file(&upstream.url(), &keys, &self.sections))?;
            Callbox::proxy(binary(), &config, &data)?
        } else {
            let environment: Vec<_> = self
                .environment
                .iter()
                .map(|(name, value)| (name.as_str(), value.as_str()))
                .collect();
            Callbox::up(binary(), &upstream.url(), &data, &[], &environment)?
        };
        Ok(Stand {
            callbox,
            upstream,
            folder,
        })
    }
}

/// A configuration file with one upstream.
pub(crate) fn file(url: &str, upstream_keys: &str, sections: &str) -> String {
    format!("{sections}\n[[upstream]]\nname = \"crm\"\nurl = \"{url}\"\n{upstream_keys}\n")
}

impl Stand {
    /// `callbox up` with its defaults.
    pub(crate) fn up() -> Result<Self> {
        Setup::default().start()
    }

    /// `callbox up` with settings from the environment.
    pub(crate) fn with(settings: &[(&str, &str)]) -> Result<Self> {
        Setup::default().set_all(settings).start()
    }

    /// A new client connection.
    pub(crate) fn client(&self) -> Result<Client> {
        Client::connect(self.callbox.listen)
    }

    /// Client sends, upstream sees and answers, client reads.
    pub(crate) fn trade(
        &self,
        client: &mut Client,
        request: impl AsRef<[u8]>,
        answer: impl AsRef<[u8]>,
    ) -> Result<(Asked, Answer)> {
        client.send(request)?;
        let mut asked = self.upstream.next()?;
        asked.body()?;
        asked.send(answer)?;
        Ok((asked, client.answer()?))
    }

    /// All calls, once `n` are concluded.
    pub(crate) fn calls(&self, n: usize) -> Result<Vec<Value>> {
        self.callbox.calls_when(n).with_context(|| {
            let found = self.callbox.query(&["calls", "--limit", "5"]);
            format!("{n} calls; there are\n{}", found.unwrap_or_default())
        })
    }

    /// The only call, once it is concluded.
    pub(crate) fn call(&self) -> Result<Value> {
        let mut calls = self.calls(1)?;
        ensure!(
            calls.len() == 1,
            "one call, not {}: {calls:#?}",
            calls.len()
        );
        calls.pop().context("one call")
    }

    /// The only call, once `ready`.
    pub(crate) fn call_when(&self, what: &str, ready: impl Fn(&Value) -> bool) -> Result<Value> {
        let mut last = Vec::new();
        until(what, || {
            last = self.callbox.calls()?;
            ensure!(last.len() < 2, "one call, not {}", last.len());
            Ok(last.iter().find(|call| ready(call)).cloned())
        })
        .with_context(|| format!("{last:#?}"))
    }

    /// `calls --json` as text, once `n` calls are concluded: for what a JSON value would change.
    pub(crate) fn calls_text(&self, n: usize) -> Result<String> {
        until("the calls are recorded", || {
            let text = self.callbox.query(&["calls", "--json", "--limit", "0"])?;
            let concluded = text
                .lines()
                .filter(|line| !line.contains(r#""outcome":"pending""#))
                .count();
            Ok((concluded >= n).then_some(text))
        })
    }

    /// `sessions --json`, parsed.
    pub(crate) fn sessions(&self) -> Result<Vec<Value>> {
        lines(&self.callbox.query(&["sessions", "--json"])?)
    }

    /// All messages of all sessions, once `ready` holds for them.
    pub(crate) fn messages_when(
        &self,
        what: &str,
        ready: impl Fn(&[Value]) -> bool,
    ) -> Result<Vec<Value>> {
        let mut last = Vec::new();
        until(what, || {
            last = self.messages()?;
            Ok(ready(&last).then(|| last.clone()))
        })
        .with_context(|| format!("{last:#?}"))
    }

    fn messages(&self) -> Result<Vec<Value>> {
        let mut messages = Vec::new();
        for session in self.sessions()? {
            let id = session["id"].as_str().context("a session has an id")?;
            let shown = lines(&self.callbox.query(&["show", id, "--json"])?)?;
            messages.extend(
                shown
                    .into_iter()
                    .filter(|line| line["schema"] == "callbox.message/1"),
            );
        }
        Ok(messages)
    }

    /// A metric that counts whole things, summed over its label sets whose line contains `label`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count"
    )]
    pub(crate) fn count(&self, name: &str, label: &str) -> Result<u64> {
        Ok(self.callbox.metric(name, label)? as u64)
    }

    /// `mcp_tool_calls_total` of an outcome.
    pub(crate) fn counted(&self, outcome: &str) -> Result<u64> {
        self.count("mcp_tool_calls_total", &format!("outcome=\"{outcome}\""))
    }

    /// The data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.callbox.data.clone()
    }

    /// Balances the books, stops callbox and checks its exit status; gives what was dropped.
    pub(crate) fn finish(mut self) -> Result<u64> {
        self.callbox.reconcile()?;
        let dropped = self.count("callbox_dropped_total", "")?;
        let status = self.callbox.stop()?;
        ensure!(
            status.code() == Some(0),
            "callbox ended with {status}: {}",
            self.callbox.log()?
        );
        Ok(dropped)
    }

    /// The same, with nothing dropped.
    pub(crate) fn finish_whole(self) -> Result<()> {
        let dropped = self.finish()?;
        ensure!(dropped == 0, "{dropped} records dropped");
        Ok(())
    }
}

/// JSON Lines, parsed.
pub(crate) fn lines(text: &str) -> Result<Vec<Value>> {
    text.lines()
        .map(|line| serde_json::from_str(line).with_context(|| line.to_owned()))
        .collect()
}

/// Whether a call has a flag.
pub(crate) fn flagged(call: &Value, flag: &str) -> bool {
    strings(&call["flags"]).iter().any(|found| found == flag)
}

/// Kinds of a call's events, in order.
pub(crate) fn event_kinds(call: &Value) -> Vec<String> {
    call["events"]
        .as_array()
        .map(|events| {
            events
                .iter()
                .filter_map(|event| event["kind"].as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default()
}

/// A list of strings.
pub(crate) fn strings(value: &Value) -> Vec<String> {
    value
        .as_array()
        .map(|list| {
            list.iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect()
        })
        .unwrap_or_default()
}
