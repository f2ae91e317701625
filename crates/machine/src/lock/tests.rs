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
    let pipe = file.path().with_extension("pipe");
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let refused = take_home(&pipe).unwrap_err();
    std::fs::remove_file(&pipe).unwrap();
    assert!(refused.what.contains("home") && refused.why.contains("neither"), "{refused}");
    let missing = take_directory("log", &file.path().with_extension("gone")).unwrap_err();
    assert!(missing.why.contains("does not exist"), "{missing}");
}

#[test]
fn a_file_is_a_home_for_one_volume_if_it_has_a_size() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let refused = take_home(file.path()).unwrap_err();
    assert!(refused.why.contains("empty") && refused.remedy.contains("truncate"), "{refused}");
    file.as_file().set_len(4096).unwrap();
    let first = take_home(file.path()).unwrap();
    assert_eq!(take_home(file.path()).unwrap_err().exit, Exit::InUse);
    drop(first);
    take_home(file.path()).unwrap();
}
