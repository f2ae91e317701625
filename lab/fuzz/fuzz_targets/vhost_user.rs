//! libFuzzer's door to the vhost-user front end.
//!
//! Promise: whatever it finds is repeated by the tests of holdfast-front, which run the corpus.
//! Never: holds a case; `src/vhost_user.rs` does.

#![no_main]

#[path = "../src/vhost_user.rs"]
mod vhost_user;

libfuzzer_sys::fuzz_target!(|input: &[u8]| {
    vhost_user::run(input);
});
