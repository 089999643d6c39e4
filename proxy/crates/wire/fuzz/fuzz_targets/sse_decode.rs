//! See `checks.rs`.

#![no_main]

#[allow(dead_code, reason = "each target uses one")]
#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|input: &[u8]| checks::sse_decode(input));
