//! libFuzzer's door to the NBD front end.
//!
//! Promise: whatever it finds is repeated by the tests of holdfast-front, which run the corpus.
//! Never: holds a case; `src/nbd.rs` does.

#![no_main]
#![allow(dead_code)] // the tests use more of what they lend

#[path = "../../../crates/front/tests/nbd/answers.rs"]
mod answers;
#[path = "../../../crates/front/tests/nbd/memory.rs"]
mod memory;
#[path = "../../../crates/front/tests/nbd/messages.rs"]
mod messages;
#[path = "../src/nbd.rs"]
mod script;

libfuzzer_sys::fuzz_target!(|input: &[u8]| script::run(input));
