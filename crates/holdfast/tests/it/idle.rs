//! What a volume costs that nobody uses.

use crate::fixture::{Fixture, wait_until};
use std::fs;
use std::time::{Duration, Instant};

/// More than an idle front end has by far, and much less than one with a thread that looks every
/// few milliseconds. A machine with much else to do has fewer.
const WAKE_UPS_A_SECOND: u64 = 80;

/// How often the threads of a process have gone to sleep.
fn sleeps(pid: i32) -> u64 {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).unwrap();
    let statuses =
        tasks.filter_map(|task| fs::read_to_string(task.unwrap().path().join("status")).ok());
    let counts = statuses.filter_map(|status| {
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"))?;
        line.split_whitespace().nth(1)?.parse::<u64>().ok()
    });
    counts.sum()
}

#[test]
fn a_volume_that_nobody_uses_is_seldom_awake() {
    let mut fixture = Fixture::made();
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    let told = || fixture.status().to_string();
    wait_until(|| fs::read(fixture.home().join("f")).is_ok_and(|it| it == b"x"), told);
    let front_end = fixture.front_end();
    // What memory gets beforehand is got, and what was written is at rest, if it ever is.
    let is_idle = || {
        let (begun, before) = (Instant::now(), sleeps(front_end));
        std::thread::sleep(Duration::from_secs(2));
        let slept = sleeps(front_end) - before;
        slept < WAKE_UPS_A_SECOND * begun.elapsed().as_secs()
    };
    wait_until(is_idle, told);
}
