//! Damage to the file costs what is damaged, and says so.

use std::fs::OpenOptions;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use callbox_store::{Call, CallFilter, Capture, Outcome, Reader, open};
use rusqlite::Connection;

use crate::sample::{NOON, call, calls, options, raw, session, store};

/// A log of three blocks, a call each; the middle one's block number.
fn three_blocks(dir: &Path) -> (Vec<Call>, i64) {
    let writer = open(options(dir)).unwrap();
    let mut ids = writer.ids();
    let session = session(1);
    let mut all = Vec::new();
    for seq in 0..3_u32 {
        let text: String = (0..4000_u64)
            .map(|number| {
                format!(
                    "{:x}",
                    number.wrapping_mul(0x9e37_79b9_7f4a_7c15 + u64::from(seq))
                )
            })
            .collect();
        let call = Call {
            result: Some(raw(&format!("\"{text}\""))),
            outcome: Outcome::ToolError,
            ..call(&mut ids, &session, seq, NOON + i64::from(seq))
        };
        assert!(store(&writer, calls([call.clone()])));
        all.push(call);
    }
    writer.close().unwrap();
    let conn = Connection::open(dir.join("calls.db")).unwrap();
    let middle = conn
        .query_row(
            "SELECT num FROM block ORDER BY num LIMIT 1 OFFSET 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    (all, middle)
}

/// Changes bytes of a block where they lie in the file.
fn damage(dir: &Path, num: i64, how: impl Fn(&mut [u8])) {
    let path = dir.join("calls.db");
    let data: Vec<u8> = Connection::open(&path)
        .unwrap()
        .query_row("SELECT data FROM block WHERE num = ?1", [num], |row| {
            row.get(0)
        })
        .unwrap();
    let part = &data[data.len() - 600..data.len() - 500];
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut all = Vec::new();
    file.read_to_end(&mut all).unwrap();
    let at = all
        .windows(part.len())
        .position(|window| window == part)
        .expect("the block is in the file");
    // The page is overwritten from its start, where the number of the next page is.
    let page = at / 4096 * 4096;
    how(&mut all[page..page + 4096]);
    file.seek(SeekFrom::Start(0)).unwrap();
    file.write_all(&all).unwrap();
}

fn check(dir: &Path, all: &[Call]) {
    let reader = Reader::open(dir).unwrap();
    let read = reader
        .calls(
            &CallFilter {
                outcomes: vec![Outcome::ToolError],
                ..CallFilter::default()
            },
            None,
        )
        .unwrap();
    assert_eq!(read.len(), 3);
    assert_eq!(read[0].to_json(), all[0].to_json());
    assert_eq!(read[2].to_json(), all[2].to_json());
    let (damaged, whole) = (&read[1], &all[1]);
    assert_eq!(damaged.flags, ["damaged_record"]);
    assert_eq!(damaged.capture.response, Capture::Dropped);
    assert!(
        damaged
            .capture
            .reason
            .as_ref()
            .unwrap()
            .contains("is damaged"),
        "{:?}",
        damaged.capture
    );
    assert!(damaged.result.is_none());
    // What the row has is still known.
    assert_eq!(
        (damaged.id, &damaged.tool, damaged.started_at),
        (whole.id, &whole.tool, whole.started_at)
    );
    assert_eq!(
        (damaged.outcome, damaged.end, damaged.duration_us),
        (whole.outcome, whole.end, whole.duration_us)
    );
    assert_eq!(damaged.session, whole.session);
}

#[test]
fn a_flipped_byte_costs_one_block() {
    let dir = tempfile::tempdir().unwrap();
    let (all, middle) = three_blocks(dir.path());
    damage(dir.path(), middle, |page| page[2000] ^= 1);
    check(dir.path(), &all);
}

#[test]
fn a_page_of_garbage_costs_one_block() {
    let dir = tempfile::tempdir().unwrap();
    let (all, middle) = three_blocks(dir.path());
    damage(dir.path(), middle, |page| page.fill(0xa5));
    check(dir.path(), &all);
}

#[test]
fn recording_goes_on_beside_a_damaged_block() {
    let dir = tempfile::tempdir().unwrap();
    let (all, middle) = three_blocks(dir.path());
    damage(dir.path(), middle, |page| page.fill(0xa5));
    let writer = open(options(dir.path())).unwrap();
    let mut ids = writer.ids();
    let next = call(&mut ids, &all[0].session, 4, NOON);
    assert!(store(&writer, calls([next.clone()])));
    assert_eq!(writer.health().stored, 1);
    check(dir.path(), &all);
    assert!(
        Reader::open(dir.path())
            .unwrap()
            .call(next.id)
            .unwrap()
            .is_some()
    );
    writer.close().unwrap();
}
