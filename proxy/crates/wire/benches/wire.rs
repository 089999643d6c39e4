//! What the observer pays per message: `cargo bench -p callbox-wire [NAME]` prints the best of several rounds.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench speaks to a person and may stop"
)]

use std::hint::black_box;
use std::io::Write;
use std::time::Instant;

use callbox_wire::coding::ContentDecoder;
use callbox_wire::collect::Collector;
use callbox_wire::rpc;
use callbox_wire::sse::Decoder;

const CALL: &str = r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search_contacts","arguments":{"query":"Dana Kim","limit":10},"_meta":{"progressToken":17,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}"#;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let bench = Bench { wanted };

    let medium = answer(4 << 10);
    let large = answer(256 << 10);
    for (name, text) in [("call", CALL), ("4k", &medium), ("256k", &large)] {
        bench.run(&format!("rpc_parse_{name}"), text.len(), || {
            drop(black_box(rpc::parse(black_box(text.as_bytes()))));
        });
        let event = format!("event: message\ndata: {text}\n\n");
        let mut decoder = Decoder::new(1 << 20);
        bench.run(&format!("sse_event_{name}"), event.len(), || {
            decoder.push(black_box(event.as_bytes()), &mut |event| {
                drop(black_box(event));
            });
        });
        for (coding, body) in encoded(&event) {
            bench.run(&format!("decode_{coding}_{name}"), event.len(), || {
                let mut decoder = ContentDecoder::for_header(Some(coding), 1 << 30).unwrap();
                let mut bytes = 0;
                decoder
                    .push(black_box(&body), &mut |piece| bytes += piece.len())
                    .unwrap();
                decoder.finish(&mut |_| {}).unwrap();
                assert_eq!(bytes, event.len());
            });
        }
    }

    let mut kept = Collector::new(1 << 20);
    bench.run("collect_kept_call", CALL.len(), || {
        kept.push(black_box(CALL.as_bytes()));
        drop(black_box(kept.finish()));
    });
    bench.run("collect_kept_256k", large.len(), || {
        large
            .as_bytes()
            .chunks(16 << 10)
            .for_each(|chunk| kept.push(black_box(chunk)));
        drop(black_box(kept.finish()));
    });
    let mut cut = Collector::new(4 << 10);
    bench.run("collect_cut_256k_text", large.len(), || {
        large
            .as_bytes()
            .chunks(16 << 10)
            .for_each(|chunk| cut.push(black_box(chunk)));
        drop(black_box(cut.finish()));
    });
    let dense = format!(
        r#"{{"result":{{"rows":[{}]}}}}"#,
        vec![r#"{"id":1,"at":[1,2.5,null]}"#; 10_000].join(",")
    );
    bench.run("collect_cut_dense", dense.len(), || {
        dense
            .as_bytes()
            .chunks(16 << 10)
            .for_each(|chunk| cut.push(black_box(chunk)));
        drop(black_box(cut.finish()));
    });
}

/// An answer with about `bytes` of text, some of it escaped.
fn answer(bytes: usize) -> String {
    let text = r#"Dana Kim \"Northwind\" 415 0100\n"#;
    let text = text.repeat(bytes / text.len());
    format!(
        r#"{{"jsonrpc":"2.0","id":17,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    )
}

fn encoded(text: &str) -> [(&'static str, Vec<u8>); 3] {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    let mut brotli = brotli::CompressorWriter::new(Vec::new(), 4096, 5, 22);
    brotli.write_all(text.as_bytes()).unwrap();
    [
        ("gzip", gzip.finish().unwrap()),
        ("br", brotli.into_inner()),
        ("zstd", zstd::encode_all(text.as_bytes(), 3).unwrap()),
    ]
}

struct Bench {
    wanted: Vec<String>,
}

impl Bench {
    fn run(&self, name: &str, bytes: usize, mut body: impl FnMut()) {
        if !self.wanted.is_empty()
            && !self
                .wanted
                .iter()
                .any(|wanted| name.contains(wanted.as_str()))
        {
            return;
        }
        let started = Instant::now();
        body();
        let once = started.elapsed().as_nanos().max(1);
        let rounds = u32::try_from((20_000_000 / once).clamp(1, 100_000)).unwrap();
        let best = (0..15)
            .map(|_| {
                let started = Instant::now();
                (0..rounds).for_each(|_| body());
                started.elapsed() / rounds
            })
            .min()
            .unwrap();
        #[allow(clippy::cast_precision_loss, reason = "printed with three digits")]
        let rate = bytes as f64 / best.as_secs_f64() / 1e6;
        println!("{name:32} {bytes:>9} bytes {best:>12.1?} {rate:>9.0} MB/s");
    }
}
