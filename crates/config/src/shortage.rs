//! What the system does not have at the moment.
//!
//! Promise: one answer to whether an error will pass by itself: there is no process, thread,
//! descriptor or memory just now, because others have them all.
//! Never: waits for them to come back.

use std::error::Error;
use std::io;

/// What a call says for want of processes, threads, descriptors or memory.
const SHORT: [i32; 4] = [libc::EAGAIN, libc::ENOMEM, libc::EMFILE, libc::ENFILE];

/// What a process of the keeper's ends with that lacks something and cannot say: `EX_TEMPFAIL`.
pub const LACKING: i32 = 75;

/// What becomes of something that is lacking.
pub const AGAIN: &str = "it is tried again every second";

/// Whether this is, or came of, a lack that passes.
pub fn passes(error: &(dyn Error + 'static)) -> bool {
    let of_io = |error: &io::Error| match error.raw_os_error() {
        Some(number) => SHORT.contains(&number),
        // Its source is only what lies behind the error that it holds.
        None => error.get_ref().is_some_and(|held| passes(held)),
    };
    let is_short =
        match (error.downcast_ref::<io::Error>(), error.downcast_ref::<rustix::io::Errno>()) {
            (Some(error), _) => of_io(error),
            (_, Some(error)) => SHORT.contains(&error.raw_os_error()),
            (None, None) => false,
        };
    is_short || error.source().is_some_and(passes)
}

#[cfg(test)]
mod tests;
