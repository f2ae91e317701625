//! What the home would refuse is refused through the mount, with the same error.

use crate::fixture::{Ended, Fixture, NAME};
use std::fs;
use std::path::Path;
use std::process::Command;

/// What a shell script does in a directory.
pub(crate) fn done(directory: &Path, script: &str) -> (Option<i32>, String, String) {
    let shell = Command::new("bash").args(["-c", script]).current_dir(directory).output();
    let Ended { code, out, err } = Ended::of(shell.unwrap());
    (code, out, err)
}

/// Does the same through a volume and on its home's file system, and then gives the volume back.
fn assert_same(script: &str) {
    let mut fixture = Fixture::made();
    let raw = fixture.path("raw");
    fs::create_dir(&raw).unwrap();
    fixture.serve();
    let expected = done(&raw, script);
    println!("{expected:?}");
    assert_eq!(done(&fixture.mount(), script), expected);
    fixture.holdfast(&["umount", NAME]).succeeded();
    let list = "stat -c '%n %s' *";
    assert_eq!(done(&fixture.home(), list), done(&raw, list));
}

#[test]
fn a_size_that_the_home_cannot_have_is_refused_before_it_is_acknowledged() {
    let sizes = ["16T", "17T", "1P", "7E", "9223372036854775807"];
    let cut = |size: &str| format!("truncate -s {size} f; echo $?; stat -c %s f; ");
    let reserve = |size: &str| format!("fallocate -n -l {size} g 2>/dev/null; echo $?; ");
    let write = "python3 -c 'import os; os.pwrite(os.open(\"f\", 1), b\"x\", 18 << 40)' 2>&1 | \
        tail -1; ";
    let script: String = sizes.iter().map(|size| cut(size) + &reserve(size)).collect();
    assert_same(&(script + write + "rm -f f g; touch left"));
}

#[test]
fn a_process_writes_no_more_than_it_may() {
    let script = "trap '' XFSZ; ulimit -f 8; head -c 100000 /dev/zero >a; echo $?; stat -c %s a; \
        truncate -s 8192 b; echo $?; truncate -s 8193 b; echo $?; stat -c %s b; \
        fallocate -l 8193 c; echo $?; \
        head -c 4000 /dev/zero >d; head -c 9000 /dev/zero >>d; echo $?; stat -c %s d";
    assert_same(script);
}
