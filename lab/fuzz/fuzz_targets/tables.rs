//! libFuzzer's door to tables.
//!
//! Promise: whatever it finds is repeated by the tests of holdfast-table, which run the corpus.
//! Never: holds a case; `src/tables.rs` does.

#![no_main]
#![allow(dead_code)] // the tests use more of what they lend

#[path = "../../../crates/table/tests/it/model.rs"]
mod model;
#[path = "../src/tables.rs"]
mod script;
#[path = "../../../crates/store/tests/it/support.rs"]
mod support;

libfuzzer_sys::fuzz_target!(|input: &[u8]| script::run(input));
