//! When a home was touched last by its own volume, as the memory of its log has it.
//!
//! Promise: while the home is touched, the memory says that this is under way, from before the
//! first change of anything in it; when that was is noted only behind the last. A window has its
//! own word for being under way, [`words::WINDOW_END`]; everything else is done in [`touching`].
//! Never: touches the home.

use holdfast_io::Clock;
use holdfast_log::CommitLog;

use crate::clean::error::CleanError;
use crate::error::VolumeError;
use crate::words::HOME_TOUCHED_NS;

/// Added to the moment that was noted last. The sum is a moment that never comes, by which an
/// older version tells nothing either.
const UNDER_WAY_NS: u64 = 1 << 62;

/// By how much times of files may be ahead of the clock, which counts ticks of the kernel.
const FILE_TIMES_AHEAD_NS: u64 = 20_000_000;

/// Does what changes something in the home apart from what the log has for it. A process that dies
/// meanwhile leaves unknown who did.
///
/// # Errors
/// [`VolumeError::Clean`]: the log does not take the word. Without it nothing is done.
pub fn touching<T>(
    log: &dyn CommitLog,
    clock: &dyn Clock,
    touch: impl FnOnce() -> T,
) -> Result<T, VolumeError> {
    let before = noted_ns(log)?;
    set(log, before | UNDER_WAY_NS)?;
    let touched = touch();
    note(log, clock)?;
    Ok(touched)
}

/// Notes that the home has just been touched, for the last time for now. The clock may step back;
/// then the time of before counts.
pub(crate) fn note(log: &dyn CommitLog, clock: &dyn Clock) -> Result<(), CleanError> {
    let now = clock.utc_ns().max(0).cast_unsigned() + FILE_TIMES_AHEAD_NS;
    set(log, noted_ns(log)?.max(now))
}

/// The moment that a word tells; nothing if none was noted, or if it has passed by now.
pub(crate) fn moment_ns(word: u64) -> Option<i64> {
    (word > 0 && word & UNDER_WAY_NS == 0).then_some(word.cast_signed())
}

fn noted_ns(log: &dyn CommitLog) -> Result<u64, CleanError> {
    Ok(log.word(HOME_TOUCHED_NS).map_err(CleanError::Word)? & !UNDER_WAY_NS)
}

fn set(log: &dyn CommitLog, value: u64) -> Result<(), CleanError> {
    log.set_word(HOME_TOUCHED_NS, value).map_err(CleanError::Word)
}
