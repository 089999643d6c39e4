//! `tail`, and readers that go away.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, ChildStderr, ChildStdout, Stdio};
use std::sync::Arc;

use callbox_store::{Batch, Outcome, Writer};
use rustix::process::{Pid, Signal, kill_process};

use crate::fixture::{Data, START, call, crm, crm_records, of_call, options, session};
use crate::run::on;

struct Tail {
    child: Child,
    out: BufReader<ChildStdout>,
    err: BufReader<ChildStderr>,
}

impl Tail {
    /// Follows, and has said so.
    fn start(data: &Data, arguments: &[&str]) -> Self {
        let mut child = on(&data.dir, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        err.read_line(&mut line).unwrap();
        assert!(line.starts_with("following "), "{line}");
        Self { child, out, err }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.out.read_line(&mut line).unwrap();
        line
    }

    /// Ctrl-C; gives what else was written.
    fn interrupt(mut self) -> (Option<i32>, String) {
        kill_process(Pid::from_child(&self.child), Signal::INT).unwrap();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        self.err.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap().code(), rest)
    }
}

fn store(writer: &Writer, seq: u32, outcome: Outcome) {
    let session = Arc::new(session(START + 3_600_000_000));
    let mut call = call(
        &session,
        seq,
        START + 3_600_000_000 + i64::from(seq) * 1000,
        "tool",
        "{}",
        "text",
    );
    call.outcome = outcome;
    writer
        .submit(Batch {
            records: vec![of_call(call)],
            committed: Vec::new(),
        })
        .unwrap();
}

#[test]
fn follows_what_concludes_and_ends_on_sigint() {
    let data = crm();
    let writer = callbox_store::open(options(&data.dir)).unwrap();
    let mut tail = Tail::start(&data, &["tail", "--json", "--outcome", "ok"]);
    store(&writer, 1, Outcome::ToolError);
    store(&writer, 2, Outcome::Ok);
    let first: serde_json::Value = serde_json::from_str(&tail.line()).unwrap();
    assert_eq!(
        (&first["seq"], &first["outcome"]),
        (&2.into(), &"ok".into())
    );
    // Open, then concluded: seen once, when it is.
    store(&writer, 3, Outcome::Pending);
    store(&writer, 3, Outcome::Ok);
    let second: serde_json::Value = serde_json::from_str(&tail.line()).unwrap();
    assert_eq!(
        (&second["seq"], &second["outcome"]),
        (&3.into(), &"ok".into())
    );
    assert_eq!(tail.interrupt(), (Some(0), String::new()));
    writer.close().unwrap();
}

#[test]
fn people_get_a_table() {
    let data = crm();
    let writer = callbox_store::open(options(&data.dir)).unwrap();
    let mut tail = Tail::start(&data, &["tail"]);
    store(&writer, 1, Outcome::Ok);
    assert!(tail.line().starts_with("TIME"));
    let row = tail.line();
    assert!(
        row.starts_with("2026-11-30T15:03:05.001000Z") && row.contains("tool"),
        "{row}"
    );
    assert_eq!(tail.interrupt(), (Some(0), String::new()));
    writer.close().unwrap();
}

/// `callbox calls | head`: no message, no failure.
#[test]
fn a_reader_that_goes_away_is_no_error() {
    let session = Arc::new(session(START));
    let mut records = crm_records();
    records.extend((0..2000_u32).map(|n| {
        let call = call(
            &session,
            n + 10,
            START + 100_000_000 + i64::from(n) * 1000,
            "tool",
            "{\"a\":\"0123456789\"}",
            "text",
        );
        of_call(call)
    }));
    let data = Data::with(records);
    for arguments in [
        &["calls", "--json"][..],
        &["calls", "--limit", "0"],
        &["export"],
        &["export", "--har"],
        &["show", "--json", &session.id.to_string()],
        &["show", &session.id.to_string()],
        &["config", "schema"],
        &["completions", "bash"],
    ] {
        let mut child = on(&data.dir, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut first = [0];
        child.stdout.take().unwrap().read_exact(&mut first).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(
            (
                output.status.code(),
                String::from_utf8_lossy(&output.stderr)
            ),
            (Some(0), "".into()),
            "{arguments:?}"
        );
    }
}
