//! Processes in each part of their life.

use super::{children, goes_on, lives, owner, parent, threads, user_map};
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
    while super::status(child.id()).and_then(|told| super::state(&told)) != Some('Z') {
        assert!(Instant::now() < end, "it does not end");
    }
    assert!(!lives(child.id()), "listed, and ended");
    child.wait().unwrap();
    assert!(!lives(child.id()), "not listed any more");
}

#[test]
fn what_the_kernel_says_of_a_process_is_read_behind_any_name() {
    let told = |name: &str, state: &str, memory: &str, pending: u64, shared: u64| {
        format!(
            "Name:\t{name}\nState:\t{state}\nPPid:\t7\n{memory}SigPnd:\t{pending:016x}\n\
             ShdPnd:\t{shared:016x}\n"
        )
    };
    let memory = "VmSize:\t    5000 kB\n";
    assert!(goes_on(&told("cat", "S (sleeping)", memory, 0, 0)));
    assert!(goes_on(&told("State:\\tZ", "D", memory, 1 << 14, 0)), "it waits, or is asked to end");
    assert!(!goes_on(&told("cat", "Z (zombie)", memory, 0, 0)));
    assert!(!goes_on(&told("cat", "X (dead)", memory, 0, 0)));
    assert!(!goes_on(&told("cat", "D", "", 0, 0)), "it lets go of what it has");
    assert!(!goes_on(&told("cat", "D", memory, 1 << 8, 0)), "it was killed");
    assert!(!goes_on(&told("cat", "D", memory, 0, 1 << 8)), "all of it was killed");
    assert!(!goes_on(""));
}

#[test]
fn who_started_whom_is_told_from_both_sides() {
    let mut child = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
    let own = std::process::id();
    assert_eq!(parent(child.id()), Some(own));
    // Only the first thread's are told, and a test is another.
    assert!(threads(own).len() > 1 && children(child.id()).is_empty());
    assert_eq!((owner(child.id()), user_map(child.id())), (owner(own), user_map(own)));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((parent(child.id()), owner(child.id())), (None, None));
}
