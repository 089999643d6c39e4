//! A configuration file is read or refused, whatever is in it.

#![no_main]

libfuzzer_sys::fuzz_target!(|input: &str| drop(callbox_config::parse(input)));
