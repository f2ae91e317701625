//! File systems that the kernel mounts, of servers that never answer.

use super::super::{our_mount_at, unmount};
use super::*;
use crate::keeper::attach;
use std::path::Path;

const SOURCE: &str = "elsewhere";

/// Mounts at a place; the connection must live as long as the mount.
fn mounted(point: &Path) -> (FileSystem, Arc<OwnedFd>) {
    let connection = Arc::new(attach::mount("a test", SOURCE, point).unwrap());
    let mount = our_mount_at(point, SOURCE);
    (FileSystem::of(mount, Some(&connection)).unwrap(), connection)
}

fn in_use(file_system: &FileSystem) -> Option<String> {
    file_system.kept().and_then(KeptBy::in_use)
}

#[test]
fn who_has_the_number_of_a_file_system_that_has_ended_keeps_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let point = folder.path().join("point");
    std::fs::create_dir(&point).unwrap();
    // Other tests mount, too, and may get the number.
    let seen = (0..1000).find_map(|_| {
        let (before, _alive) = mounted(&point);
        assert!(in_use(&before).is_some_and(|who| who.contains(point.to_str().unwrap())));
        unmount(&our_mount_at(&point, SOURCE).unwrap(), false).unwrap();
        let (next, _alive) = mounted(&point);
        let is_reused = next.device == before.device;
        let seen = (before.kept(), next.kept().is_some(), next.is_connected());
        unmount(&our_mount_at(&point, SOURCE).unwrap(), false).unwrap();
        is_reused.then_some(seen)
    });
    assert_eq!(seen, Some((None, true, true)), "a number is used again");
}
