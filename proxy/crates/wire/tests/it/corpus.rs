//! The fuzz targets' seeds, replayed.

#[path = "../../fuzz/checks.rs"]
mod checks;

use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut files = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        files += 1;
    }
    assert!(files >= 3, "{files} seeds in {}", folder.display());
}

#[test]
fn seeds_of_sse_decode() {
    replay("sse_decode", checks::sse_decode);
}

#[test]
fn seeds_of_jsonrpc_parse() {
    replay("jsonrpc_parse", checks::jsonrpc_parse);
}

#[test]
fn seeds_of_coding_decode() {
    replay("coding_decode", checks::coding_decode);
}
