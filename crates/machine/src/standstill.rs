//! What of a volume should move and does not.
//!
//! Promise: from one look at the marks after another, says what has not moved for
//! [`STANDS_AFTER`] although something waits, and for how long; a pure rule.
//! Never: looks at a region or a clock; says that an idle volume stands still.

use holdfast_config::sizes::rounded;
use holdfast_memory::MEMORY_DAMAGED;
use serde::{Deserialize, Serialize};
use std::io;
use std::time::{Duration, Instant};

/// What keeps a reader of the log from going on where memory has lost what nothing else has.
pub const DAMAGED_MEMORY: &str =
    "memory has damaged what it waits for, and the log's disk does not have that whole";

/// Time that a drain or the cleaner may take for anything to move.
pub const STANDS_AFTER: Duration = Duration::from_secs(5);

/// A cleaner that brings home less than this part of the ring in [`STANDS_AFTER`], while changes
/// wait for room all the time, is as good as none.
const CRAWL_PART: u64 = 16;

/// So many bytes come behind a window without one of them being a change: marks, pads, watermarks.
const IDLE_BYTES: u64 = 64 << 10;

/// Something that stands still, and that others wait for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Standstill {
    /// What, and why.
    pub what: String,
    /// For how long.
    pub for_ms: u64,
}

impl Standstill {
    /// This has not moved for that long.
    pub fn new(what: impl Into<String>, time: Duration) -> Standstill {
        Standstill { what: what.into(), for_ms: time.as_millis() as u64 }
    }
}

impl std::fmt::Display for Standstill {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, for {} s", self.what, self.for_ms / 1000)
    }
}

/// What one look at a region saw.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The three marks.
    pub released: u64,
    /// As above.
    pub durable: u64,
    /// As above.
    pub tail: u64,
    /// What keeps the log from going on.
    pub log_errno: Option<i32>,
    /// What the home's last failure was.
    pub home_errno: Option<i32>,
    /// How often a change began to wait for room in the ring.
    pub stalls: u64,
    /// What the ring has room for.
    pub ring_bytes: u64,
}

impl Look {
    /// Nearly all of the ring waits for the cleaner.
    fn is_full(&self) -> bool {
        self.ring_bytes > 0 && self.tail.saturating_sub(self.released) >= self.ring_bytes / 4 * 3
    }
}

/// A mark, and since when it has not moved.
#[derive(Clone, Copy, Debug)]
struct Mark {
    at: u64,
    since: Instant,
    /// Where the tail was then.
    tail: u64,
}

impl Mark {
    fn moved(mark: Option<Mark>, at: u64, tail: u64, now: Instant) -> Mark {
        mark.filter(|mark| mark.at == at).unwrap_or(Mark { at, since: now, tail })
    }
}

/// What earlier looks saw.
#[derive(Debug, Default)]
pub struct Marks {
    durable: Option<Mark>,
    released: Option<Mark>,
    /// What keeps the log from going on, and since when.
    log: Option<(i32, Instant)>,
    /// The home's failure, and since when it is that.
    home: Option<(i32, Instant)>,
    /// How often changes had begun to wait for room at the last look.
    stalls: Option<u64>,
    /// Changes wait for room in a full ring: since when, and where the cleaner was then.
    full: Option<Mark>,
    /// Since when it crawls meanwhile, and how many bytes a second it brings home.
    crawls: Option<(Instant, u64)>,
}

impl Marks {
    /// Looks again. Returns what stands still.
    pub fn look(&mut self, look: Look, now: Instant) -> Vec<Standstill> {
        let durable = Mark::moved(self.durable, look.durable, look.tail, now);
        // A drain that had nothing to do has stood for no time.
        let is_waited_for = look.tail > look.durable;
        self.durable = Some(durable).filter(|_| is_waited_for);
        let mut released = Mark::moved(self.released, look.released, look.tail, now);
        // Neither has a cleaner.
        if look.durable.saturating_sub(released.tail) <= IDLE_BYTES {
            released.since = now;
        }
        self.released = Some(released);
        self.log = since(self.log, look.log_errno.filter(|_| is_waited_for), now);
        self.home = since(self.home, look.home_errno, now);
        self.look_for_room(look, now);
        // What waits for the log waits for nothing else.
        if let Some(log) = self.log_text(look, now) {
            return vec![log];
        }
        let drain = self.durable.and_then(|mark| drain_text(mark, look, now));
        let cleaner = self.home_text(now).or_else(|| cleaner_text(released, look, now));
        let cleaner = cleaner.map(|it| self.with_those_who_wait(it));
        let crawl = || self.crawl_text(now).filter(|_| drain.is_none());
        let cleaner = cleaner.or_else(crawl);
        drain.into_iter().chain(cleaner).collect()
    }

    /// Whether changes wait for room in a full ring, and how fast the cleaner makes some.
    fn look_for_room(&mut self, look: Look, now: Instant) {
        let waits = self.stalls.is_some_and(|before| look.stalls > before) && look.is_full();
        self.stalls = Some(look.stalls);
        let here = Mark { at: look.released, since: now, tail: look.tail };
        self.full = waits.then(|| self.full.unwrap_or(here));
        let Some(full) = self.full else {
            self.crawls = None;
            return;
        };
        let (time, moved) = (now - full.since, look.released.saturating_sub(full.at));
        if time >= STANDS_AFTER {
            let is_slow = moved < look.ring_bytes / CRAWL_PART;
            let begun = self.crawls.map_or(full.since, |(begun, _)| begun);
            self.crawls = is_slow.then_some((begun, moved / time.as_secs().max(1)));
            self.full = Some(here);
        }
    }

    /// Who waits for what stands still.
    fn with_those_who_wait(&self, standstill: Standstill) -> Standstill {
        let text = match self.full {
            Some(_) => format!("{}, the ring is full and changes wait for room", standstill.what),
            None => standstill.what,
        };
        Standstill { what: text, ..standstill }
    }

    fn crawl_text(&self, now: Instant) -> Option<Standstill> {
        let (begun, rate) = self.crawls?;
        let rate = rounded(rate);
        let what = format!(
            "the ring is full and changes wait for room: the home takes {rate} of log a second"
        );
        Some(Standstill::new(what, now - begun))
    }

    fn log_text(&self, look: Look, now: Instant) -> Option<Standstill> {
        let (errno, since) = self.log?;
        let (error, waits) =
            (io::Error::from_raw_os_error(errno), rounded(look.tail - look.durable));
        let what = format!("the log's disk takes no more ({error}): {waits} wait for it");
        Some(Standstill::new(what, now - since))
    }

    fn home_text(&self, now: Instant) -> Option<Standstill> {
        let (errno, since) = self.home?;
        let error = io::Error::from_raw_os_error(errno);
        let why = match errno {
            MEMORY_DAMAGED => DAMAGED_MEMORY.to_owned(),
            _ => format!("it fails ({error})"),
        };
        let what = format!("nothing is applied to the home: {why}");
        Some(Standstill::new(what, now - since))
    }
}

/// A failure, and since when it is that.
fn since(
    before: Option<(i32, Instant)>,
    errno: Option<i32>,
    now: Instant,
) -> Option<(i32, Instant)> {
    errno.map(|errno| before.filter(|(was, _)| *was == errno).unwrap_or((errno, now)))
}

fn drain_text(mark: Mark, look: Look, now: Instant) -> Option<Standstill> {
    let waits = rounded(look.tail - look.durable);
    let what = format!("nothing reaches the log's disk: {waits} wait for it");
    (now - mark.since >= STANDS_AFTER).then(|| Standstill::new(what, now - mark.since))
}

fn cleaner_text(mark: Mark, look: Look, now: Instant) -> Option<Standstill> {
    let waits = look.durable.saturating_sub(look.released);
    let what = format!("nothing is applied to the home: {} wait for that", rounded(waits));
    (now - mark.since >= STANDS_AFTER).then(|| Standstill::new(what, now - mark.since))
}

#[cfg(test)]
mod tests;
