//! What ends a test that hangs, and says in what.
//!
//! A program that waits for a mount cannot be interrupted, so the processes that it waits for are
//! ended; the mount then answers with an error, and the test fails instead of hanging.

use crate::fixture::{Fixture, kill, stop};
use rustix::process::Signal;
use std::fmt::Write;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Barks once, unless it is dropped in time.
pub(crate) struct Watchdog {
    report: Arc<Mutex<Option<String>>>,
    _dropped_in_time: Sender<()>,
}

impl Watchdog {
    /// Watches over the processes that were started with this configuration.
    pub(crate) fn start(config: PathBuf, patience: Duration) -> Watchdog {
        let (sender, dropped) = channel();
        let report = Arc::new(Mutex::new(None));
        let told = report.clone();
        std::thread::spawn(move || watch(&config, patience, &dropped, &told));
        Watchdog { report, _dropped_in_time: sender }
    }

    /// What was running when the patience was over, if it ever was.
    pub(crate) fn take_report(&self) -> Option<String> {
        self.report.lock().unwrap().take()
    }
}

// A test that stays in its call prints nothing, so this does.
#[allow(clippy::print_stderr)]
fn watch(config: &Path, patience: Duration, dropped: &Receiver<()>, told: &Mutex<Option<String>>) {
    if dropped.recv_timeout(patience) != Err(RecvTimeoutError::Timeout) {
        return;
    }
    let processes = processes_of(config);
    let report: String = processes.iter().map(|pid| state_of(*pid)).collect();
    eprintln!("the test still runs after {patience:?}:\n{report}");
    *told.lock().unwrap() = Some(report);
    // The keeper is the oldest. Stopped, it replaces no front end; alive until the last one is
    // gone, it leaves none an orphan, to whom the kernel would send SIGCONT.
    processes.iter().for_each(|pid| kill(*pid, Signal::STOP));
    processes.into_iter().rev().for_each(|pid| kill(pid, Signal::KILL));
}

/// The processes that have the configuration in their environment, the oldest first as a rule.
pub(crate) fn processes_of(config: &Path) -> Vec<i32> {
    let mut wanted = b"HOLDFAST_CONFIG=".to_vec();
    wanted.extend_from_slice(config.as_os_str().as_bytes());
    let is_ours = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|variable| variable == wanted)
    };
    let names = fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.file_name());
    let mut pids: Vec<i32> = names.filter_map(|name| name.to_str()?.parse().ok()).collect();
    pids.retain(is_ours);
    pids.sort_unstable();
    pids
}

/// What each thread of a process waits for.
fn state_of(pid: i32) -> String {
    let read = |path: String| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let command = read(format!("/proc/{pid}/cmdline")).replace('\0', " ");
    let mut text = format!("process {pid}: {command}\n");
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks.map(|task| task.path()) {
        let of = |what: &str| read(format!("{}/{what}", task.display()));
        let (status, stack) = (of("status"), of("stack"));
        let state = status.lines().find(|line| line.starts_with("State:")).unwrap_or_default();
        let (name, wchan, call) = (of("comm"), of("wchan"), of("syscall"));
        let _ = writeln!(text, "  {name}: {state}; in {wchan}; system call {call}\n{stack}");
    }
    text
}

#[test]
fn a_test_that_hangs_is_ended_and_says_what_each_process_waits_for() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let front_end = fixture.front_end();
    stop(front_end);
    fixture.watch_for(Duration::from_millis(500));
    let hung = fs::write(fixture.mount().join("f"), "x");
    let report = fixture.take_watchdog_report().expect("the watchdog ended it");
    assert!(hung.is_err(), "{report}");
    for word in ["holdfast serve", "front", "State:\tT"] {
        assert!(report.contains(word), "no {word:?} in {report}");
    }
}

#[test]
fn a_test_that_ends_in_time_hears_nothing_of_its_watchdog() {
    let mut fixture = Fixture::made();
    fixture.watch_for(Duration::from_secs(60));
    fixture.serve();
    fs::write(fixture.mount().join("f"), "x").unwrap();
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(fixture.take_watchdog_report(), None);
}
