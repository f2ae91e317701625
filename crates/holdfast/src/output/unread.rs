//! What is logged where nobody may read it: a terminal that was stopped, a pipe to a pager.
//!
//! Promise: no line that is logged keeps its thread waiting for a reader for more than
//! [`PATIENCE`], and none at all while he is known not to read; once he does, he hears how many
//! lines he has missed.
//! Never: says that of a result, which somebody waits for.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, StderrLock, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// What a reader may need for what he was given before.
const PATIENCE: Duration = Duration::from_millis(200);

/// So much a pipe takes at once that takes anything.
const PIECE_BYTES: usize = 4096;

/// Lines that nobody had read room for since the last that was said.
static MISSED: AtomicU64 = AtomicU64::new(0);

/// Says a line on standard error, unless that would have to wait for a reader.
pub(super) fn say(line: &[u8]) {
    // Held throughout: nobody else of this process takes the room that was seen.
    let mut out = io::stderr().lock();
    let missed = MISSED.load(Ordering::Relaxed);
    let patience = if missed == 0 { PATIENCE } else { Duration::ZERO };
    if !takes(&out, patience) {
        MISSED.fetch_add(1, Ordering::Relaxed);
        return;
    }
    if missed > 0 {
        MISSED.store(0, Ordering::Relaxed);
        let told = format!("{missed} lines are missing here: nobody read what came before them\n");
        let _nobody_listens = out.write_all(told.as_bytes());
    }
    for piece in line.chunks(PIECE_BYTES) {
        if !takes(&out, PATIENCE) {
            MISSED.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let _nobody_listens = out.write_all(piece);
    }
}

/// Whether something can be written without waiting, now or within that time. A reader who is gone
/// keeps nobody waiting.
fn takes(out: &StderrLock<'_>, patience: Duration) -> bool {
    let mut polled = [PollFd::new(out, PollFlags::OUT)];
    let time = Timespec::try_from(patience).expect("it is short");
    let _interrupted = poll(&mut polled, Some(&time));
    !polled[0].revents().is_empty()
}
