//! libFuzzer's door to the decoder of logs.
//!
//! Promise: whatever it finds is repeated by the tests of holdfast-wal, which run the corpus.
//! Never: holds a case; `src/decoder.rs` does.

#![no_main]

#[path = "../src/decoder.rs"]
mod decoder;

libfuzzer_sys::fuzz_target!(|input: &[u8]| decoder::run(input));
