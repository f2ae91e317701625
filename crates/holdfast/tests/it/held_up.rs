//! A stranger's process whose memory is locked for as long as he likes, so that whoever asks the
//! kernel what it has mapped waits.

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
    fn start(folder: &Path) -> HeldUp {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/held_up.py");
        let mut holds = Command::new("python3")
            .arg(script)
            .arg(folder)
            .arg(NOBODY.to_string())
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

#[test]
#[ignore = "whoever reads of processes waits meanwhile; `make test-long` runs it alone"]
fn who_could_not_have_got_at_a_home_keeps_nobody_waiting() {
    let mut fixture = Fixture::new();
    let folder = folders(&fixture, 0o700);
    let _held_up = HeldUp::start(folder.path());
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
}

#[test]
#[ignore = "whoever reads of processes waits meanwhile; `make test-long` runs it alone"]
fn who_may_have_a_home_mapped_and_does_not_tell_is_named() {
    let mut fixture = Fixture::made();
    let folder = folders(&fixture, 0o755);
    let held_up = HeldUp::start(folder.path());
    let named = format!("(pid {}) does not tell what it has mapped", held_up.pid);
    let ended = fixture.holdfast(&["serve"]);
    assert!(ended.code == Some(5) && ended.err.contains(&named), "{ended:?}");
    drop(held_up);
    fixture.serve();
}
