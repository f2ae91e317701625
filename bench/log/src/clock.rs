//! Time, of the wall and of the processors.
//!
//! Promise: the processors' time is this whole process's, in user and in kernel mode, whichever of
//! its threads used it.
//! Never: counts what the kernel does for nobody in particular, such as writing back.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Both clocks, at a moment.
pub(crate) struct Clock {
    wall: Instant,
    processors: Duration,
}

impl Clock {
    pub(crate) fn start() -> Clock {
        Clock { wall: Instant::now(), processors: processors() }
    }

    /// Seconds since the start.
    pub(crate) fn wall_s(&self) -> f64 {
        self.wall.elapsed().as_secs_f64()
    }

    /// Microseconds that the processors worked for this process since the start.
    pub(crate) fn processors_us(&self) -> f64 {
        (processors() - self.processors).as_secs_f64() * 1e6
    }
}

fn processors() -> Duration {
    let now = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}
