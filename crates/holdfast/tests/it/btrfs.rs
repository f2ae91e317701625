//! A home on Btrfs: its quotas refuse root too, and a subvolume in it is a file system of its own.

use crate::fixture::{Fixture, NAME, kill, wait_until};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use std::process::Command;

const LIMIT: &str = "24M";
/// More than the limit and the memory of the volume together.
const FILES: usize = 64;
const FILE_BYTES: usize = 1 << 20;
const HOME_BYTES: u64 = 512 << 20;
/// About the least that a Btrfs can be on.
const SMALL_HOME_BYTES: u64 = 120 << 20;
/// As often as it dies of other things before it is given up.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(8);

/// True if it succeeded.
fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|done| done.status.success())
}

/// A volume whose home is a Btrfs of its own; none where the kernel has none, or nobody may mount
/// it.
fn on_btrfs(bytes: u64) -> Option<Fixture> {
    let fixture = Fixture::new();
    let image = fixture.path("image");
    File::create(&image).unwrap().set_len(bytes).unwrap();
    let image = image.to_str().unwrap();
    let is_there = run("mkfs.btrfs", &["--quiet", image])
        && run("mount", &["-o", "loop", image, &home_of(&fixture)]);
    if !is_there {
        println!("no Btrfs here: this is not tested");
        return None;
    }
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    Some(fixture)
}

fn home_of(fixture: &Fixture) -> String {
    fixture.home().to_str().unwrap().to_owned()
}

fn limit(fixture: &Fixture, bytes: &str) {
    let home = home_of(fixture);
    assert!(run("btrfs", &["quota", "enable", &home]));
    assert!(run("btrfs", &["qgroup", "limit", bytes, &home]));
}

fn contents(number: usize) -> Vec<u8> {
    // Nothing that a file system would compress.
    (0..FILE_BYTES).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8 ^ number as u8).collect()
}

/// Writes files until one is refused; how many were not, and with what number it was.
fn fill(directory: &Path) -> (usize, Option<i32>) {
    for number in 0..FILES {
        let path = directory.join(number.to_string());
        if let Err(error) = fs::write(&path, contents(number)) {
            return (number, error.raw_os_error());
        }
    }
    (FILES, None)
}

/// The front end dies while there is no room. The next one serves, unless the home has a part of
/// something that it has no room to finish: then that is told, and tried again.
fn die(fixture: &Fixture) {
    let died = fixture.front_end();
    kill(died, Signal::KILL);
    let is_told = || {
        let status = fixture.status();
        let is_served = status["state"] == "serving" && status["front_end_pid"] != died;
        is_served || status.to_string().contains("make room in the home")
    };
    wait_until(is_told, || format!("{}\n{}", fixture.status(), fixture.keeper_log()));
}

/// It is served, and there is room for something new, by and by.
fn takes_more(fixture: &Fixture) {
    let told = || fixture.status().to_string();
    wait_until(|| fs::write(fixture.mount().join("late"), "late").is_ok(), told);
}

#[test]
fn over_a_quota_writers_are_refused_and_what_was_acknowledged_waits_for_room() {
    const EDQUOT: i32 = 122;
    let Some(mut fixture) = on_btrfs(HOME_BYTES) else { return };
    limit(&fixture, LIMIT);
    fixture.serve();
    let (written, errno) = fill(&fixture.mount());
    assert_eq!(errno, Some(EDQUOT), "after {written} files");
    let status = fixture.status().to_string();
    assert!(status.contains("quota"), "{status}");
    fs::remove_file(fixture.mount().join("0")).expect("what costs nothing passes");
    die(&fixture);
    std::thread::sleep(PATIENCE);
    limit(&fixture, "none");
    takes_more(&fixture);
    fixture.holdfast(&["umount", NAME]).succeeded();
    for number in 1..written {
        let found = fs::read(fixture.home().join(number.to_string())).unwrap();
        assert!(found == contents(number), "file {number} of {written}");
    }
}

#[test]
fn full_it_goes_on_by_itself_once_there_is_room_whoever_died_meanwhile() {
    const ENOSPC: i32 = 28;
    let Some(mut fixture) = on_btrfs(SMALL_HOME_BYTES) else { return };
    fixture.serve();
    let ballast = File::create(fixture.home().join("ballast")).unwrap();
    let (written, errno) = std::thread::scope(|scope| {
        let filled = scope.spawn(|| fill(&fixture.mount()));
        // Somebody else takes the room that was free when it was acknowledged.
        let others = contents(0);
        while (&ballast).write_all(&others).is_ok() && ballast.sync_data().is_ok() {}
        filled.join().unwrap()
    });
    assert_eq!(errno, Some(ENOSPC), "after {written} files");
    die(&fixture);
    std::thread::sleep(PATIENCE);
    ballast.set_len(0).unwrap();
    takes_more(&fixture);
    fixture.holdfast(&["umount", NAME]).succeeded();
    for number in 0..written {
        let found = fs::read(fixture.home().join(number.to_string())).unwrap();
        assert!(found == contents(number), "file {number} of {written}");
    }
}

#[test]
fn a_subvolume_inside_the_home_is_not_entered() {
    const EXDEV: i32 = 18;
    let Some(mut fixture) = on_btrfs(HOME_BYTES) else { return };
    let home = home_of(&fixture);
    let inside = format!("{home}/inside");
    assert!(run("btrfs", &["subvolume", "create", &inside]));
    fs::write(format!("{inside}/f"), "its own").unwrap();
    // The first files of both have the same inode number.
    fs::write(format!("{home}/f"), "the home's").unwrap();
    fixture.serve();
    let mount = fixture.mount();
    let refused = |done: std::io::Result<()>| done.unwrap_err().raw_os_error();
    assert_eq!(refused(fs::read(mount.join("inside/f")).map(drop)), Some(EXDEV));
    assert_eq!(refused(fs::write(mount.join("inside/f"), "overwritten")), Some(EXDEV));
    assert_eq!(refused(fs::rename(mount.join("f"), mount.join("inside/g"))), Some(EXDEV));
    fs::write(mount.join("f"), "changed").unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(format!("{home}/f")).unwrap(), b"changed");
    assert_eq!(fs::read(format!("{inside}/f")).unwrap(), b"its own");
}
