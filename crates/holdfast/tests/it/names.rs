//! A directory with as many names as a mail server or a cache puts into one.

use crate::fixture::{Fixture, NAME, kill};
use rustix::process::Signal;
use std::collections::HashSet;
use std::fs;
use std::path::Path;

/// In `make test`; four times as many in `make test-long`, and a million with
/// `HOLDFAST_SEEDS_FACTOR=20`. The region has room for some sixty thousand.
const NAMES: u32 = 50_000;
const FACTOR_MAX: u32 = 20;

fn names() -> u32 {
    let factor = std::env::var("HOLDFAST_SEEDS_FACTOR").ok().and_then(|text| text.parse().ok());
    NAMES * factor.unwrap_or(1).clamp(1, FACTOR_MAX)
}

fn name(number: u32) -> String {
    format!("a name of some length {number}")
}

fn listed(directory: &Path) -> HashSet<String> {
    let entries: Vec<_> = fs::read_dir(directory).unwrap().map(Result::unwrap).collect();
    let names: HashSet<String> =
        entries.iter().map(|entry| entry.file_name().into_string().unwrap()).collect();
    assert_eq!(names.len(), entries.len(), "a name is listed once");
    names
}

#[test]
fn a_directory_of_very_many_names_is_made_listed_looked_up_and_emptied_and_the_home_is_exact() {
    let mut fixture = Fixture::made();
    fixture.serve();
    let directory = fixture.mount().join("d");
    fs::create_dir(&directory).unwrap();
    let all: HashSet<String> = (0..names()).map(name).collect();
    for number in 0..names() {
        fs::File::create_new(directory.join(name(number))).unwrap();
    }
    assert!(listed(&directory) == all);
    kill(fixture.front_end(), Signal::KILL);
    for name in &all {
        assert!(fs::metadata(directory.join(name)).unwrap().is_file());
    }
    let kept: HashSet<String> = (0..names()).step_by(2).map(name).collect();
    for name in all.difference(&kept) {
        fs::remove_file(directory.join(name)).unwrap();
    }
    assert!(!fs::exists(directory.join(name(1))).unwrap());
    assert!(listed(&directory) == kept);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(listed(&fixture.home().join("d")) == kept);
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert!(listed(&directory) == kept);
    for name in &kept {
        fs::remove_file(directory.join(name)).unwrap();
    }
    fs::remove_dir(&directory).unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read_dir(fixture.home()).unwrap().count(), 0);
}
