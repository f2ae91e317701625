//! How fast the device takes what it is given, and how long it takes for it.
//!
//! Promise: the rate is bytes a second of the time in which something was under way, over the last
//! 64 MiB or so; the depth follows the device's own delay, not that of a busy processor.
//! Never: counts the time in which nobody asked for anything.

use holdfast_core::drain::FLIGHTS_MAX;

/// Bytes after which older ones count half.
const WINDOW_BYTES: u64 = 64 << 20;
/// Flights of which the quickest tells the device's delay.
const WINDOW_FLIGHTS: u32 = 64;
/// Delay of the device that makes one more flight at a time worth its cost. A flight costs some 20
/// microseconds of a processor, and takes frames away from the next one, which then saves less.
const DELAY_PER_FLIGHT_NS: u64 = 200_000;

/// What is being measured.
pub(crate) struct Rate {
    bytes: u64,
    busy_ns: u64,
    flying: u32,
    since_ns: u64,
    /// The quickest flight of this window so far, how many it has, and the quickest of the last.
    quickest_ns: u64,
    flights: u32,
    delay_ns: u64,
}

impl Default for Rate {
    fn default() -> Rate {
        let (bytes, busy_ns, flying, since_ns, flights, delay_ns) = (0, 0, 0, 0, 0, 0);
        Rate { bytes, busy_ns, flying, since_ns, quickest_ns: u64::MAX, flights, delay_ns }
    }
}

impl Rate {
    /// Something gets under way.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if self.flying == 0 {
            self.since_ns = now_ns;
        }
        self.flying += 1;
    }

    /// So many bytes have arrived, after so long. Returns bytes a second.
    pub(crate) fn end(&mut self, bytes: u64, began_ns: u64, now_ns: u64) -> u64 {
        self.observe(now_ns.saturating_sub(began_ns));
        self.busy_ns += now_ns.saturating_sub(self.since_ns).max(1);
        (self.flying, self.since_ns) = (self.flying - 1, now_ns);
        self.bytes += bytes;
        let rate = u128::from(self.bytes) * 1_000_000_000 / u128::from(self.busy_ns);
        if self.bytes > WINDOW_BYTES {
            self.bytes /= 2;
            self.busy_ns /= 2;
        }
        rate as u64
    }

    /// How many flights at once this device deserves.
    pub(crate) fn depth(&self) -> usize {
        (1 + self.delay_ns / DELAY_PER_FLIGHT_NS).min(FLIGHTS_MAX as u64) as usize
    }

    fn observe(&mut self, took_ns: u64) {
        self.quickest_ns = self.quickest_ns.min(took_ns);
        self.flights += 1;
        if self.flights == WINDOW_FLIGHTS {
            (self.delay_ns, self.quickest_ns, self.flights) = (self.quickest_ns, u64::MAX, 0);
        }
    }
}

#[cfg(test)]
mod tests;
