//! Who is found to use a home.

use super::*;
use crate::keeper::attach;
use crate::keeper::mounts::{our_mount_at, unmount};
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
    let users = || users_of(home.path(), &rustix::fs::stat(home.path()).unwrap());
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
    let _nobody_serves = attach::mount("a test", "silent", silent.path()).unwrap();
    let root = File::options().read(true).custom_flags(O_PATH).open(silent.path()).unwrap();
    let user = who_has(root);
    let (told, heard) = mpsc::channel();
    let place = home.path().to_path_buf();
    std::thread::spawn(move || {
        let users = users_of(&place, &rustix::fs::stat(&place).unwrap());
        told.send(users).unwrap();
    });
    let users = heard.recv_timeout(Duration::from_secs(60));
    unmount(&our_mount_at(silent.path(), "silent").unwrap(), true).unwrap();
    end(user);
    assert!(users.expect("it waits for the file system").is_empty());
}
