//! Whether to look at a socket for a while before sleeping until it is ready.
//!
//! Promise: where looking was in vain it is tried less and less often, and where it was not, each
//! time; a client that is slow, or a machine that has other work for the core, costs next to
//! nothing.
//! Never: looks, or knows a socket.
//!
//! Whoever looks for as long as a sleep would cost loses at most that much again
//! (`docs/decisions/0021-spin-as-long-as-a-wake-up-costs.md`).

#[cfg(test)]
mod tests;

use std::thread::available_parallelism;
use std::time::Duration;

/// How long to look: a client on a core of its own has mostly answered by then. The sweep is in
/// `docs/decisions/0074-a-long-write-is-received-where-it-will-lie.md`.
pub(crate) const LOOK: Duration = Duration::from_micros(50);

/// After so many vain looks in a row the pauses between them get no longer.
const VAIN_MAX: u32 = 10;

/// How looking went so far.
#[derive(Debug)]
pub(crate) struct Looks {
    /// In a row.
    vain: u32,
    /// Waits without a look until the next one; `None` where there is never one.
    pause: Option<u32>,
}

impl Looks {
    /// Where there is one core, looking keeps the other side from working.
    pub(crate) fn new() -> Looks {
        let has_cores = available_parallelism().is_ok_and(|cores| cores.get() > 1);
        Looks { vain: 0, pause: has_cores.then_some(0) }
    }

    /// Whether to look at this wait.
    pub(crate) fn are_due(&mut self) -> bool {
        let is_due = self.pause == Some(0);
        self.pause = self.pause.map(|waits| waits.saturating_sub(1));
        is_due
    }

    /// What a look came to.
    pub(crate) fn note(&mut self, found: bool) {
        self.vain = if found { 0 } else { (self.vain + 1).min(VAIN_MAX) };
        self.pause = Some((1 << self.vain) - 1);
    }
}
