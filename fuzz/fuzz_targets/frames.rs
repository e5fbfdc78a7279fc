//! See `fuzz::runner::frames`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzz::runner::frames(bytes));
