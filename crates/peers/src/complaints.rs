//! What the log hears about peers.
//!
//! Promise: in every span of time a peer is good for a few lines, and all peers together for a
//! bounded number; what is left out is counted, and the count is said.
//! Never: reads a clock; keeps more peers apart than it has room for.
//!
//! Whatever a client can cause and that becomes a line goes through here, so that no client can
//! fill a disk with them or hide another's lines among them.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Peer;

/// Lines are counted anew after this.
pub const SPAN: Duration = Duration::from_secs(10);

/// Lines of one peer in a span.
pub const LINES_OF_PEER: u32 = 16;

/// Peers that are kept apart in a span; the others have the lines of one together. So there are
/// never more lines than of these and of one more, and one for what was left out.
pub const PEERS_MAX: usize = 15;

/// How many lines each may have, by time alone.
#[derive(Debug, Default)]
pub struct Lines {
    began: Option<Instant>,
    said: BTreeMap<Peer, u32>,
    said_of_others: u32,
    left_out: u64,
}

impl Lines {
    /// Whether one more line about a peer may be said now; if not, it counts as left out.
    pub fn may_say(&mut self, peer: Peer, now: Instant) -> bool {
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= SPAN) {
            *self = Lines { began: Some(now), left_out: self.left_out, ..Lines::default() };
        }
        let is_apart = self.said.contains_key(&peer) || self.said.len() < PEERS_MAX;
        let said = match is_apart {
            true => self.said.entry(peer).or_default(),
            false => &mut self.said_of_others,
        };
        *said += 1;
        let may = *said <= LINES_OF_PEER;
        *said = (*said).min(LINES_OF_PEER);
        self.left_out += u64::from(!may);
        may
    }

    /// How many were left out, once in a span, to be said.
    pub fn left_out(&mut self, now: Instant) -> Option<u64> {
        self.left_out_at().filter(|at| *at <= now)?;
        Some(std::mem::take(&mut self.left_out))
    }

    /// When it is time to say how many were left out; `None` if none were.
    #[must_use]
    pub fn left_out_at(&self) -> Option<Instant> {
        self.began.filter(|_| self.left_out > 0).map(|began| began + SPAN)
    }
}

/// Says lines about peers, as many as [`Lines`] allows.
#[derive(Debug, Default)]
pub struct Complaints(Mutex<Lines>);

impl Complaints {
    /// Says a line about a peer, or counts it.
    pub fn say(&self, peer: Peer, now: Instant, what: impl Display) {
        self.settle(now);
        if self.lock().may_say(peer, now) {
            tracing::warn!("{peer}: {what}");
        }
    }

    /// Says what was left out, if it is time.
    pub fn settle(&self, now: Instant) {
        let left_out = self.lock().left_out(now);
        left_out.into_iter().for_each(say_left_out);
    }

    /// When [`Self::settle`] will have something to say.
    #[must_use]
    pub fn settles_at(&self) -> Option<Instant> {
        self.lock().left_out_at()
    }

    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Complaints {
    fn drop(&mut self) {
        let left_out = self.lock().left_out;
        (left_out > 0).then(|| say_left_out(left_out));
    }
}

fn say_left_out(lines: u64) {
    tracing::warn!("{lines} more lines about clients were left out");
}
