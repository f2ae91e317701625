//! Looking at what a front end does, and whether it lives.
//!
//! Promise: a front end that gives no sign of life, a request that it took and does not answer, a
//! drain and a cleaner that do not move, are in the snapshot within [`LOOK_EVERY`] of their bound,
//! and in the keeper's log once.
//! Never: ends what stands still: it has lost nothing, and goes on when its reason is gone.

use super::state::Supervisor;
use holdfast_attach::observe::look;
use holdfast_machine::standstill::Standstill;
use std::time::Instant;

impl Supervisor {
    /// Looks once more.
    pub(super) fn look(&mut self) {
        let seen = self.orders.volume.as_ref().and_then(|volume| look(&volume.medium()));
        let marks = &mut self.watch.marks;
        let moved = seen.map(|seen| marks.look(seen, Instant::now())).unwrap_or_default();
        let standing = self.watched.look();
        self.tell(standing.iter().chain(&moved));
        self.watched.tell_astray(&mut self.watch.astray);
        self.watched.change(|s| s.standstills = moved);
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
