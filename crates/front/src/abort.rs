//! What a thread does that cannot go on.
//!
//! Promise: a panic in a disk or tree ends the whole process, so that whoever holds the descriptors
//! notices and starts another: a front end that answers only some requests is worse than none.
//! Never: catches anything.

use std::thread;

/// Held by every thread that answers requests.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}
