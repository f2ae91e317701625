//! Children of a test that are forked, and go on with its memory and its open files.
//!
//! Promise: a child does its job and nothing else of the test; one that panics says so, and one
//! that waits for ever is ended.
//! Never: used where other threads of the process may have locks that the job takes.

use std::panic::{AssertUnwindSafe, catch_unwind};

#[allow(unsafe_code)]
mod raw;

/// How long a child may take.
const PATIENCE_S: u32 = 30;

/// How a child ends whose job panicked.
const PANICKED: i32 = 101;

/// A child that was forked, and is on its way.
#[derive(Debug)]
#[must_use]
pub struct Forked(i32);

impl Forked {
    /// Has a child do this.
    ///
    /// # Panics
    /// If there can be no child.
    pub fn begin(job: impl FnOnce()) -> Forked {
        let child = raw::fork();
        if child == 0 {
            raw::end_after(PATIENCE_S);
            let done = catch_unwind(AssertUnwindSafe(job));
            raw::exit(if done.is_ok() { 0 } else { PANICKED });
        }
        assert!(child > 0, "a process can be forked");
        Forked(child)
    }

    /// Waits for its end.
    ///
    /// # Panics
    /// If it panicked, or did not come to an end.
    pub fn wait(self) {
        let ended = raw::wait(self.0);
        assert!(ended == 0, "the child of a fork ended with {ended:#x}");
    }

    /// Has a child do this, and waits for its end.
    ///
    /// # Panics
    /// As the other two.
    pub fn does(job: impl FnOnce()) {
        Forked::begin(job).wait();
    }
}
