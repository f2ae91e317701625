//! Processes in each part of their life.

use super::{goes_on, lives};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_killed_process_does_not_go_on_although_nobody_has_asked_for_its_end() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    assert!(lives(child.id()), "it waits for its input");
    child.kill().unwrap();
    assert!(!lives(child.id()), "from the kill on");
    let end = Instant::now() + PATIENCE;
    let listed = format!("/proc/{}/stat", child.id());
    while !std::fs::read_to_string(&listed).unwrap().contains(") Z ") {
        assert!(Instant::now() < end, "it does not end");
    }
    assert!(!lives(child.id()), "listed, and ended");
    child.wait().unwrap();
    assert!(!lives(child.id()), "not listed any more");
}

#[test]
fn what_the_kernel_says_of_a_process_is_read_behind_any_name() {
    let told = |name: &str, state: &str, flags: u64, pending: u64| {
        let between = "0 ".repeat(21);
        format!("7 ({name}) {state} 1 7 7 0 -1 {flags} {between}{pending} 0 0 0")
    };
    assert!(goes_on(&told("cat", "S", 0x0040_0000, 0)));
    assert!(goes_on(&told("a) Z (b", "D", 0, 1 << 14)), "it waits, or was asked to end");
    assert!(!goes_on(&told("a) S (b", "Z", 0, 0)));
    assert!(!goes_on(&told("cat", "X", 0, 0)));
    assert!(!goes_on(&told("cat", "D", 0x0040_0004, 0)), "it lets go of what it has");
    assert!(!goes_on(&told("cat", "D", 0, 1 << 8)), "it was killed");
    assert!(!goes_on(""));
}
