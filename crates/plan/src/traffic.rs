//! Pages that were moved.
//!
//! Promise: counts each page once each time it is moved.
//! Never: knows what a move costs.

use std::ops::Sub;

/// How many pages were moved, by where from and where to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// From disk into conventional memory.
    pub disk_reads: u64,
    /// To disk.
    pub disk_writes: u64,
    /// From durable into conventional memory.
    pub durable_reads: u64,
    /// To durable memory.
    pub durable_writes: u64,
}

impl Sub for Traffic {
    type Output = Traffic;

    /// What came to it since an earlier count.
    fn sub(self, earlier: Traffic) -> Traffic {
        Traffic {
            disk_reads: self.disk_reads - earlier.disk_reads,
            disk_writes: self.disk_writes - earlier.disk_writes,
            durable_reads: self.durable_reads - earlier.durable_reads,
            durable_writes: self.durable_writes - earlier.durable_writes,
        }
    }
}
