//! Locks: who is refused, and when they are free again.

use super::*;

#[test]
fn the_second_keeper_is_told_who_the_first_is() {
    let directory = tempfile::tempdir().unwrap();
    let socket = directory.path().join("control.sock");
    let first = KeeperLock::take(&socket).unwrap();
    let refused = KeeperLock::take(&socket).unwrap_err();
    assert_eq!(refused.exit, Exit::InUse);
    assert!(refused.why.contains(&std::process::id().to_string()), "{refused}");
    drop(first);
    KeeperLock::take(&socket).unwrap();
}

#[test]
fn a_directory_belongs_to_one_volume_until_the_last_copy_is_closed() {
    let directory = tempfile::tempdir().unwrap();
    let first = take_directory("home", directory.path()).unwrap();
    let copy = first.try_clone().unwrap();
    drop(first);
    assert_eq!(take_directory("home", directory.path()).unwrap_err().exit, Exit::InUse);
    drop(copy);
    take_directory("home", directory.path()).unwrap();
}

#[test]
fn what_is_not_a_directory_is_refused_by_its_key() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = take_directory("home", file.path()).unwrap_err();
    assert!(refused.what.contains("home") && refused.why.contains("not a directory"));
    let missing = take_directory("log", &file.path().with_extension("gone")).unwrap_err();
    assert!(missing.why.contains("does not exist"), "{missing}");
}
