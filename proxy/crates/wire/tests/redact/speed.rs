//! How fast it is. Not a test of anything: run with `--release -- --ignored --nocapture speed`.

use std::hint::black_box;
use std::time::Instant;

use crate::{ARGUMENTS, RESULT, redactor};

fn measure(name: &str, bytes: usize, mut work: impl FnMut() -> usize) {
    let mut best = f64::INFINITY;
    // Many short rounds, the best one: a busy machine disturbs most of them.
    let rounds = u32::try_from(100_000 / bytes.max(64)).unwrap().max(1);
    for _ in 0..200 {
        let start = Instant::now();
        for _ in 0..rounds {
            black_box(work());
        }
        best = best.min(start.elapsed().as_secs_f64() / f64::from(rounds));
    }
    let size = f64::from(u32::try_from(bytes).unwrap());
    println!(
        "{name:44} {bytes:>9} B {:>12.0} ns {:>8.0} MB/s",
        best * 1e9,
        size / best / 1e6
    );
}

#[test]
#[ignore = "a measurement"]
fn speed_of_messages() {
    let redactor = redactor();
    let call = r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search_contacts","arguments":{"query":"Dana Kim","company":"Northwind","limit":25,"include_archived":false,"since":"2026-11-30T23:59:59.123456Z"},"_meta":{"progressToken":"0193a7c2-5f1e-7c3a-9b1d-2f6d8c4e5a10","io.x/client":"a 2.1"}}}"#;
    measure("tools/call, nothing found", call.len(), || {
        redactor.json(call, ARGUMENTS).len()
    });
    let found = r#"{"query":"dana@northwind.example","company":"Northwind","limit":25,"note":"call (555)0100123 for more about this one","api_key":"abc"}"#;
    measure("arguments, three found", found.len(), || {
        redactor.json(found, ARGUMENTS).len()
    });
    let nested = format!(
        r#"{{"content":[{{"type":"text","text":{}}}],"isError":false}}"#,
        serde_json::to_string(call).unwrap()
    );
    measure("result with JSON in its text", nested.len(), || {
        redactor.json(&nested, RESULT).len()
    });

    measure("header", 36, || {
        redactor
            .header("x-other", "0193a7c2-5f1e-7c3a-9b1d-2f6d8c4e5a10")
            .len()
    });
    measure("target", 24, || {
        redactor.target("/mcp/v1/messages?page=12").len()
    });
}

#[test]
#[ignore = "a measurement"]
fn speed_of_texts() {
    let redactor = redactor();
    let prose = "The committee met in the old hall and went through the list of members once more, without finding what it had been looking for. ";
    for (name, sentence) in [
        ("prose", prose),
        (
            "prose, escaped line ends",
            "The committee met in the old hall and went through the list\\nof members once more, without finding what it looked for.\\n",
        ),
        (
            "rows of a table",
            "| 4711 | Northwind Traders | 2026-11-30 | 12.50 | open | 10.0.0.12 | item_name |  ",
        ),
        (
            "source code",
            "    let value = self.items.get(index).map(|item| item.name.clone()); // a note: see docs/x.md\\n",
        ),
        (
            "base64",
            "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg",
        ),
        (
            "urls",
            "https://docs.example.test/a/b-c/d_e?page=2&sort=name https://example.test/%7Ex/y?q=a%20b ",
        ),
    ] {
        let text = sentence.repeat(1_048_576 / sentence.len());
        let json = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}]}}"#);
        measure(&format!("1 MiB result: {name}"), json.len(), || {
            redactor.json(&json, RESULT).len()
        });
    }
    let text = prose.repeat(1_048_576 / prose.len());
    measure("plain text, 1 MiB", text.len(), || {
        redactor.text(&text).len()
    });
}

#[test]
#[ignore = "a measurement"]
fn speed_of_rows() {
    let redactor = redactor();
    let rows: Vec<String> = (0..6000).map(|n| format!(r#"{{"id":{n},"customer_name":"Northwind {n}","amount":12.50,"status":"open","created_at":"2026-11-30T23:59:59Z","ref":"0193a7c2-5f1e-7c3a-9b1d-2f6d8c4e5a10"}}"#)).collect();
    let rows = format!("[{}]", rows.join(","));
    measure("JSON rows", rows.len(), || {
        redactor.json(&rows, RESULT).len()
    });
}

/// What an adversary may send: nothing may grow faster than its length.
#[test]
#[ignore = "a measurement"]
fn speed_of_hostile_texts() {
    let redactor = redactor();
    for piece in [
        "eyJ-",
        "sk-",
        "-----BEGIN A----- ",
        "a://",
        "a@",
        "DE89 ",
        "4111 ",
        "4111-",
        "555-",
        "password:",
        "{\\\"a\\\":",
        "[",
        "\\\\",
        "a1",
        "token=${",
        "(5",
        "%3D",
        "\\\"",
        "://a:b",
        "0 0",
        "-----BEGIN A-----\\n\\n",
        "password=\\\"",
        "eyJaaaaaaaaaaaa.",
        "+1 ",
        "=\\\\\\\\",
        "?a=%",
        "{\\\"password\\\":",
        "sk-1",
        "SG.",
        "www.a.",
        "a@a.",
        "%40",
        "]",
        "password   ",
        " :",
        "password:a ",
        "\\u0061",
        "[\\\"",
        "\\\"\\\\\\\"",
    ] {
        let short = format!("[\"{}\"]", piece.repeat(100_000 / piece.len()));
        let long = format!("[\"{}\"]", piece.repeat(1_000_000 / piece.len()));
        measure(&format!("100 kB of {piece:?}"), short.len(), || {
            redactor.json(&short, RESULT).len()
        });
        measure(&format!("1 MB of {piece:?}"), long.len(), || {
            redactor.json(&long, RESULT).len()
        });
    }
}
