//! A file system that nobody serves.

use super::*;
use crate::mounts::mount;
use crate::mounts::{our_mount_at, unmount};

#[test]
fn a_file_system_that_never_answers_is_asked_once_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let connection = mount("a test", "bounded", folder.path()).unwrap();
    let inside = folder.path().join("log");
    let look = |path: &Path| path.metadata().is_ok();
    assert!(read(&inside, look).unwrap_err() >= PATIENCE);
    // The second one is told for how long the first waits, and does not wait itself.
    let ask = |_: &Path| panic!("asked again");
    let time = read::<()>(&inside, ask).unwrap_err();
    assert!(time >= PATIENCE);
    let text = silent("its log's", &inside, time).to_string();
    assert!(text.starts_with("its log's disk does not answer: "), "{text}");
    unmount(&our_mount_at(folder.path(), "bounded").unwrap(), true).unwrap();
    drop(connection);
}

#[test]
fn what_a_file_system_answers_is_passed_on() {
    let folder = tempfile::tempdir().unwrap();
    assert_eq!(read(folder.path(), |path| path.is_dir()), Ok(true));
    assert_eq!(read(&folder.path().join("none"), |path| path.exists()), Ok(false));
}
