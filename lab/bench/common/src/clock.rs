//! Time, of the wall and of the processors.
//!
//! Promise: the process's time is that of all its threads, in user and in kernel mode; the
//! machine's is that of everybody, what the kernel does for nobody in particular included.
//! Never: counts time that a hypervisor gave to others.

use std::fs;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Microseconds in which the kernel counts the machine's time.
const TICK_US: f64 = 10_000.0;

/// Where the kernel's first line has the time in user, nice and system mode, and in interrupts.
const BUSY_FIELDS: [usize; 5] = [1, 2, 3, 6, 7];

/// All clocks, at a moment.
pub struct Clock {
    wall: Instant,
    process: Duration,
    machine_us: f64,
}

impl Clock {
    /// Reads all of them.
    #[must_use]
    pub fn start() -> Clock {
        Clock { wall: Instant::now(), process: process(), machine_us: machine_us() }
    }

    /// Seconds since the start.
    #[must_use]
    pub fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    /// Microseconds that the processors worked for this process since the start.
    #[must_use]
    pub fn process_us(&self) -> f64 {
        (process() - self.process).as_secs_f64() * 1e6
    }

    /// Microseconds that the processors worked since the start, in steps of 10 ms.
    #[must_use]
    pub fn machine_us(&self) -> f64 {
        machine_us() - self.machine_us
    }
}

fn process() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Nothing on a machine that does not say.
fn machine_us() -> f64 {
    fs::read_to_string("/proc/stat").map_or(0.0, |text| busy_ticks(&text) * TICK_US)
}

fn busy_ticks(statistics: &str) -> f64 {
    let fields: Vec<&str> = statistics.lines().next().unwrap_or("").split_whitespace().collect();
    let ticks = |field: usize| fields.get(field).and_then(|text| text.parse::<f64>().ok());
    BUSY_FIELDS.into_iter().filter_map(ticks).sum()
}

#[cfg(test)]
mod tests;
