//! Behaviour of the work directory.
//!
//! Promise: each test uses a directory of its own.
//! Never: needs root.

use super::*;

fn programs() -> Programs {
    let (holdfast, slow_disk) = ("/other/hf".into(), "/build/holdfast-slowdisk".into());
    Programs { holdfast, slow_disk, this: "/build/holdfast-demo".into() }
}

fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("holdfast-cleanup-{name}-{}", std::process::id()))
}

#[test]
fn a_dropped_work_directory_is_gone_with_its_strays() {
    let (path, stray) = (scratch("drop"), scratch("stray"));
    fs::write(&stray, "region").unwrap();
    let work = WorkDir::claim(&path, vec![stray.clone()], programs()).unwrap();
    assert!(!stray.exists(), "a stray of an earlier run is swept at the claim");
    fs::create_dir(work.path().join("data")).unwrap();
    fs::write(work.path().join("data/file"), "bytes").unwrap();
    fs::write(&stray, "region").unwrap();
    drop(work);
    assert!(!path.exists() && !stray.exists());
}

#[test]
fn a_second_claim_is_refused_while_the_first_lives() {
    let path = scratch("twice");
    let first = WorkDir::claim(&path, Vec::new(), programs()).unwrap();
    fs::write(path.join("file"), "bytes").unwrap();
    let refused = WorkDir::claim(&path, Vec::new(), programs()).err().unwrap();
    assert!(refused.to_string().contains("another demonstration is running"), "{refused}");
    assert!(path.join("file").exists(), "a refused claim removes nothing");
    drop(first);
    assert!(WorkDir::claim(&path, Vec::new(), programs()).is_ok());
}

#[test]
fn what_an_earlier_run_left_is_swept_by_the_next() {
    let path = scratch("leftover");
    fs::create_dir_all(path.join("pg_wal")).unwrap();
    fs::write(path.join("pg_wal/000000010000000000000001"), "old").unwrap();
    let work = WorkDir::claim(&path, Vec::new(), programs()).unwrap();
    assert_eq!(fs::read_dir(work.path()).unwrap().count(), 0);
}

#[test]
fn only_programs_of_the_demonstration_count_as_ours() {
    let is_ours = |name: &str| is_our_program(&programs(), OsStr::new(name));
    assert!(is_ours("postgres"));
    assert!(is_ours("hf (deleted)") && is_ours("holdfast-slowdisk") && is_ours("holdfast-demo"));
    assert!(!is_ours("bash") && !is_ours("holdfast"));
}
