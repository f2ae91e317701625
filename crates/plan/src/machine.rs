//! What moving a page costs.
//!
//! Promise: cycles of input and output, at the paper's rates or any others; reading and writing
//! cost the same.
//! Never: counts seeks, queues or processors: the paper has bandwidth only.

use crate::traffic::Traffic;

/// A machine, as far as the model knows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Machine {
    /// Cycles a second. Every cost is told in cycles.
    pub clock_hz: f64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes a second between memory and disk.
    pub disk_bytes_per_s: f64,
    /// Bytes a second between conventional and durable memory.
    pub durable_bytes_per_s: f64,
}

impl Machine {
    /// The machine of section 6.1: 100 MHz, pages of 4,096 bytes, 12.5 million bytes a second to
    /// and from disk, 100 million to and from durable memory.
    pub const PAPER: Machine = Machine {
        clock_hz: 100e6,
        page_bytes: 4096,
        disk_bytes_per_s: 12.5e6,
        durable_bytes_per_s: 100e6,
    };

    /// Cycles to move a page from disk or to it.
    #[must_use]
    pub fn disk_page_cycles(&self) -> f64 {
        self.page_bytes as f64 * self.clock_hz / self.disk_bytes_per_s
    }

    /// Cycles to move a page from durable memory or to it.
    #[must_use]
    pub fn durable_page_cycles(&self) -> f64 {
        self.page_bytes as f64 * self.clock_hz / self.durable_bytes_per_s
    }

    /// Cycles of some traffic.
    #[must_use]
    pub fn cycles(&self, traffic: Traffic) -> f64 {
        let disk_pages = (traffic.disk_reads + traffic.disk_writes) as f64;
        let durable_pages = (traffic.durable_reads + traffic.durable_writes) as f64;
        disk_pages * self.disk_page_cycles() + durable_pages * self.durable_page_cycles()
    }

    /// Seconds of some cycles.
    #[must_use]
    pub fn seconds(&self, cycles: f64) -> f64 {
        cycles / self.clock_hz
    }
}
