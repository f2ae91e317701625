//! Looking at what a front end does, and whether it lives.
//!
//! Promise: a front end that gives no sign of life, a request that it took and does not answer, a
//! drain and a cleaner that do not move, are in the snapshot within [`LOOK_EVERY`] of their bound,
//! and in the keeper's log once.
//! Never: ends what stands still: it has lost nothing, and goes on when its reason is gone.

use super::snapshot::{Snapshot, State};
use super::state::Supervisor;
use crate::signs::{silence, tell_astray, unanswered};
use holdfast_attach::observe::look;
use holdfast_machine::standstill::Standstill;
use std::time::{Duration, Instant};

/// How often is looked.
pub(super) const LOOK_EVERY: Duration = Duration::from_secs(1);

impl Supervisor {
    /// Looks once more.
    pub(super) fn look(&mut self) {
        let seen = self.orders.volume.as_ref().and_then(|volume| look(&volume.medium()));
        let marks = &mut self.watch.marks;
        let moved = seen.map(|seen| marks.look(seen, Instant::now())).unwrap_or_default();
        let pid = self.shared.lock().front_end_pid;
        let silence = silence(&self.shared.pulse, pid, "its front end");
        let unanswered = unanswered(&self.shared.pulse, pid, "its front end");
        self.tell(silence.iter().chain(&unanswered).chain(&moved));
        let astray = self.shared.astray();
        let was_astray = std::mem::replace(&mut self.watch.astray, astray.is_some());
        tell_astray(&self.orders.whose(), astray.as_ref().map(|it| it.why.as_str()), was_astray);
        let stall = silence.map_or(0, |silence| silence.for_ms);
        self.shared.change(|s| {
            s.standstills = moved;
            note_stall(s, Duration::from_millis(stall));
        });
    }

    fn tell<'a>(&mut self, standing: impl Iterator<Item = &'a Standstill>) {
        let text: Vec<String> = standing.map(ToString::to_string).collect();
        let (volume, stands) = (&self.orders.name, !text.is_empty());
        match (stands, std::mem::replace(&mut self.watch.told, stands)) {
            (true, false) => tracing::warn!(volume, "stands still: {}", text.join("; ")),
            (false, true) => tracing::info!(volume, "goes on"),
            _ => {}
        }
    }
}

/// A front end that serves and gives no sign of life is none for as long.
fn note_stall(snapshot: &mut Snapshot, stall: Duration) {
    if snapshot.state == State::Serving {
        snapshot.longest_stall = snapshot.longest_stall.max(stall);
    }
}
