//! How fast the device takes what it is given.
//!
//! Promise: bytes a second of the time in which something was under way, over the last 64 MiB or
//! so, so that it follows the device.
//! Never: counts the time in which nobody asked for anything.

/// Bytes after which older ones count half.
const WINDOW_BYTES: u64 = 64 << 20;

/// A rate that is being measured.
#[derive(Default)]
pub(crate) struct Rate {
    bytes: u64,
    busy_ns: u64,
    flying: u32,
    since_ns: u64,
}

impl Rate {
    /// Something gets under way.
    pub(crate) fn begin(&mut self, now_ns: u64) {
        if self.flying == 0 {
            self.since_ns = now_ns;
        }
        self.flying += 1;
    }

    /// So many bytes have arrived. Returns bytes a second.
    pub(crate) fn end(&mut self, bytes: u64, now_ns: u64) -> u64 {
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
}
