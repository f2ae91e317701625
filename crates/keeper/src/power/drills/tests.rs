//! Which drills prove something.

use super::*;

fn log(path: &str) -> Log {
    Log { path: path.into(), ring_bytes: 100 }
}

fn drill(is_passed: bool, when_s: u64) -> Drill {
    let logs = vec![log("/log")];
    let (bytes, took_ms, had_ms, given_up_ms) = (50, 2, 5, 4);
    Drill { when_s, is_passed, logs, bytes, took_ms, had_ms, given_up_ms, stopped: None }
}

impl Drills {
    fn passed_ms_ago(&self, logs: &[Log]) -> Option<u64> {
        self.shown(logs).map(|it| it.ago_ms)
    }
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
    let shown = drills.shown(&[log("/log")]).unwrap();
    assert_eq!((shown.drain_ms, shown.bytes_per_s), (5, 25_000));
    assert_eq!(drills.passed_ms_ago(&[log("/log"), log("/other")]), None);
    let larger = Log { ring_bytes: 101, ..log("/log") };
    assert_eq!(drills.passed_ms_ago(&[larger]), None, "its memory had less room");
    drills.add(&Drill { bytes: 0, ..drill(true, now_s()) }).unwrap();
    assert_eq!(drills.passed_ms_ago(&[]), None, "it wrote nothing");
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

#[test]
fn a_file_that_has_anything_but_drills_stays_as_it_is_and_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("config.toml");
    let good = serde_json::to_string(&drill(true, now_s())).unwrap();
    for text in ["[power]\nfile = \"/ups\"\n", "{\"a\": 1}\n", &format!("{good}\ntorn"), "\n"] {
        std::fs::write(&path, text).unwrap();
        let drills = Drills::of(&path);
        assert!(drills.text().unwrap().contains("is no drill"), "{:?}", drills.text());
        assert!(drills.add(&drill(true, now_s())).is_err());
        assert_eq!(drills.passed_ms_ago(&[]), None);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    }
}

#[test]
fn what_is_no_file_keeps_its_place() {
    let directory = tempfile::tempdir().unwrap();
    let device = directory.path().join("null");
    let made = std::process::Command::new("mknod").arg(&device).args(["c", "1", "3"]).status();
    assert!(made.unwrap().success());
    assert!(Drills::of(&device).add(&drill(true, now_s())).is_err());
    assert!(!std::fs::symlink_metadata(&device).unwrap().is_file());
}

#[test]
fn drills_of_an_earlier_version_prove_nothing_and_are_kept() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("drills.jsonl");
    let new = serde_json::to_string(&drill(true, now_s())).unwrap();
    let log = serde_json::to_string(&log("/log")).unwrap();
    let old = new.replace(&log, "\"/log\"");
    assert_ne!(old, new);
    std::fs::write(&path, old + "\n").unwrap();
    let drills = Drills::of(&path);
    assert_eq!(drills.passed_ms_ago(&[self::log("/log")]), None);
    drills.add(&drill(true, now_s())).unwrap();
    assert!(drills.passed_ms_ago(&[self::log("/log")]).is_some());
    assert_eq!(std::fs::read_to_string(&path).unwrap().lines().count(), 2);
}
