//! Who is found to use a home.

use super::*;
use holdfast_machine::mounts::{our_mount_at, unmount};
use rustix::fs::CWD;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command};
use std::sync::mpsc;
use std::time::Duration;

/// A process that has this open, and does nothing.
fn who_has(file: File) -> Child {
    Command::new("sleep").arg("1000").stdin(file).spawn().unwrap()
}

fn end(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn who_has_the_home_open_is_found_and_nobody_else() {
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let users = || Place::at(home.path()).users().users;
    let elsewhere = who_has(File::open(other.path()).unwrap());
    assert!(users().is_empty());
    let here = who_has(File::open(home.path()).unwrap());
    assert_eq!(users(), [here.id()]);
    end(here);
    end(elsewhere);
}

#[test]
fn a_file_system_that_never_answers_keeps_nobody_waiting() {
    const O_PATH: i32 = 0o10_000_000;
    let (home, silent) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let _nobody_serves =
        holdfast_machine::mounts::mount("a test", "silent", silent.path()).unwrap();
    let root = File::options().read(true).custom_flags(O_PATH).open(silent.path()).unwrap();
    let user = who_has(root);
    let found = found_in_time(home.path());
    unmount(&our_mount_at(silent.path(), "silent").unwrap(), true).unwrap();
    end(user);
    assert_eq!(found.expect("it waits for the file system"), Found::default());
}

/// Who uses a home, if that is known in a minute.
fn found_in_time(home: &Path) -> Option<Found> {
    let (told, heard) = mpsc::channel();
    let place = home.to_path_buf();
    std::thread::spawn(move || {
        let found = Place::at(&place).users();
        told.send(found).unwrap();
    });
    heard.recv_timeout(Duration::from_secs(60)).ok()
}

#[test]
fn a_pipe_in_the_place_of_a_databases_file_keeps_nobody_waiting() {
    let above = tempfile::tempdir().unwrap();
    let home = above.path().join("home");
    fs::create_dir(&home).unwrap();
    // Who may write above the home, and who may write it.
    for place in [above.path(), &home] {
        let pipe = place.join(PID_FILE);
        rustix::fs::mkfifoat(CWD, &pipe, Mode::RUSR | Mode::WUSR).unwrap();
        let found = found_in_time(&home).expect("it waits for somebody at the other end");
        assert_eq!(found, Found::default());
        fs::remove_file(pipe).unwrap();
    }
}
