//! Strangers' processes that hold locks of their memory, or of the program that they become, for as
//! long as they like, so that whoever asks the kernel what they have waits.

use crate::fixture::{Fixture, NAME, wait_until};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const NOBODY: u32 = 65534;

/// The process, and what holds it up until this is dropped.
struct HeldUp {
    holds: Child,
    pid: u32,
}

impl HeldUp {
    fn start(folder: &Path, how: &str, count: usize) -> HeldUp {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/held_up.py");
        let mut holds = Command::new("python3")
            .arg(script)
            .arg(folder)
            .args([&NOBODY.to_string(), how, &count.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(holds.stdout.take().unwrap()).read_line(&mut line).unwrap();
        HeldUp { holds, pid: line.trim().parse().unwrap() }
    }
}

impl Drop for HeldUp {
    fn drop(&mut self) {
        drop(self.holds.stdin.take());
        self.holds.wait().unwrap();
        let ends = || !Path::new(&format!("/proc/{}", self.pid)).exists();
        wait_until(ends, || "the process that was held up goes on".into());
    }
}

/// Lets others into the folder of the volume, or not, and to the file system of the stranger.
fn folders(fixture: &Fixture, mode: u32) -> tempfile::TempDir {
    for path in [fixture.path(""), fixture.home()] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let strangers = tempfile::tempdir().unwrap();
    fs::set_permissions(strangers.path(), fs::Permissions::from_mode(0o755)).unwrap();
    strangers
}

/// More than may keep a thread each.
const MANY: usize = 12;

#[test]
#[ignore = "whoever reads of processes waits meanwhile; `make test-long` runs it alone"]
fn who_could_not_have_got_at_a_home_keeps_nobody_waiting() {
    for (how, count) in [("memory", 1), ("program", 1), ("program", MANY)] {
        let mut fixture = Fixture::new();
        let folder = folders(&fixture, 0o700);
        let _held_up = HeldUp::start(folder.path(), how, count);
        fixture.holdfast(&["volume", "make", NAME]).succeeded();
        fixture.serve();
        fixture.holdfast(&["status"]).succeeded();
        fixture.holdfast(&["umount", NAME]).succeeded();
        fixture.holdfast(&["mount", NAME]).succeeded();
    }
}

#[test]
#[ignore = "whoever reads of processes waits meanwhile; `make test-long` runs it alone"]
fn who_may_have_something_of_a_home_and_does_not_tell_is_named() {
    let mut fixture = Fixture::made();
    let folder = folders(&fixture, 0o755);
    let held_up = HeldUp::start(folder.path(), "program", 1);
    let named = format!("(pid {}) does not tell what it has of it", held_up.pid);
    let ended = fixture.holdfast(&["serve"]);
    assert!(ended.code == Some(5) && ended.err.contains(&named), "{ended:?}");
    drop(held_up);
    fixture.serve();
}
