//! Which drills prove something.

use super::*;

fn drill(is_passed: bool, when_s: u64) -> Drill {
    let logs = vec!["/log".into()];
    Drill { when_s, is_passed, logs, bytes: 1, took_ms: 2, had_ms: 5, given_up_ms: 4 }
}

#[test]
fn the_last_drill_counts_and_is_found_again() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("folder").join("drills.jsonl");
    let drills = Drills::of(&path);
    assert_eq!(drills.passed_ms_ago(&[]), None);
    drills.add(&drill(true, now_s() - 100)).unwrap();
    assert!((100_000..200_000).contains(&drills.passed_ms_ago(&[]).unwrap()));
    drills.add(&drill(false, now_s())).unwrap();
    assert_eq!(drills.passed_ms_ago(&[]), None, "one that failed proves the contrary");
    assert_eq!(Drills::of(&path).newest(), drills.newest());
    drills.add(&drill(true, now_s())).unwrap();
    assert!(Drills::of(&path).passed_ms_ago(&[]).is_some());
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 3);
}

#[test]
fn a_drill_that_is_to_come_or_cannot_be_read_proves_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drills.jsonl");
    Drills::of(&path).add(&drill(true, now_s() + 10_000)).unwrap();
    assert_eq!(Drills::of(&path).passed_ms_ago(&[]), None);
    for text in ["{", "\n", "\u{0}", "{\"when_s\":1,\"is_passed\":true}\n"] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(Drills::of(&path).newest(), None, "{text:?}");
    }
}

#[test]
fn one_that_failed_counts_although_it_could_not_be_noted() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drills.jsonl");
    let drills = Drills::of(&path);
    drills.add(&drill(true, now_s())).unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(drills.add(&drill(false, now_s())).is_err());
    assert_eq!(drills.passed_ms_ago(&[]), None);
    assert!(drills.add(&drill(true, now_s())).is_err());
    assert_eq!(drills.passed_ms_ago(&[]), None, "what was not noted is not relied on");
}

#[test]
fn a_drill_proves_nothing_of_a_log_that_was_not_in_it_and_nothing_that_it_does_not_say() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drills.jsonl");
    let drills = Drills::of(&path);
    drills.add(&drill(true, now_s())).unwrap();
    assert!(drills.passed_ms_ago(&["/log".into()]).is_some());
    assert_eq!(drills.passed_ms_ago(&["/log".into(), "/other".into()]), None);
    drills.add(&Drill { took_ms: 6, ..drill(true, now_s()) }).unwrap();
    assert_eq!(drills.passed_ms_ago(&[]), None, "it took longer than it may");
}

#[test]
fn what_is_no_file_is_not_waited_for() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(Drills::of(&pipe).newest(), None);
}
