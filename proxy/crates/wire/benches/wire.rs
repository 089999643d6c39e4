//! What the observer pays per message: `cargo bench -p callbox-wire [NAME]` prints the best of several rounds.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a bench speaks to a person and may stop"
)]

use std::hint::black_box;
use std::time::Instant;

use callbox_wire::rpc;

fn main() {
    let wanted: Vec<String> = std::env::args()
        .skip(1)
        .filter(|arg| !arg.starts_with('-'))
        .collect();
    let mut bench = Bench { wanted };
    let call = r#"{"jsonrpc":"2.0","id":17,"method":"tools/call","params":{"name":"search_contacts","arguments":{"query":"Dana Kim","limit":10},"_meta":{"progressToken":17,"traceparent":"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}}"#;
    bench.run("rpc_parse_call", call.len(), || {
        drop(black_box(rpc::parse(black_box(call.as_bytes()))));
    });
}

struct Bench {
    wanted: Vec<String>,
}

impl Bench {
    fn run(&mut self, name: &str, bytes: usize, mut body: impl FnMut()) {
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
