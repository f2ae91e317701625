//! File systems that the kernel mounts, of servers that never answer.

use super::super::{our_mount_at, unmount};
use super::*;
use crate::mounts::mount;
use std::path::Path;

const SOURCE: &str = "elsewhere";

/// Mounts at a place; the connection must live as long as the mount.
fn mounted(point: &Path) -> (FileSystem, Arc<OwnedFd>) {
    let connection = Arc::new(mount("a test", SOURCE, point).unwrap());
    (FileSystem::behind(&connection, point, SOURCE).unwrap(), connection)
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

fn mount_at(number: u64, point: String) -> Mount {
    let (device, kind) = ("0:1".to_owned(), "tmpfs".to_owned());
    let (root, source) = (PathBuf::from("/"), "none".to_owned());
    Mount {
        number,
        device,
        root,
        point: point.into(),
        kind,
        source,
        layers: Vec::new(),
        is_volatile: false,
    }
}

/// As many as a user may have: compared with one another they would take hours.
#[test]
fn who_sees_a_part_of_a_table_belongs_to_it_however_many_mounts_there_are() {
    let each = 100_000;
    let view = |pid: u32, numbers: std::ops::Range<u64>| {
        let mounts = numbers.map(|number| mount_at(number, format!("/{pid}/{number}"))).collect();
        View { pids: vec![pid], mounts }
    };
    let ours = view(0, 0..100).mounts;
    let views = (1..9).map(|pid| view(pid, u64::from(pid) * each..u64::from(pid + 1) * each));
    // One with another root, in the namespace of the third, and one in ours, who sees less.
    let views = views.chain([view(9, 3 * each + 7..3 * each + 9), view(10, 50..60)]);
    let tables = tables_of(ours, views.collect());
    assert_eq!((tables.len(), tables[0].is_ours, &tables[0].pids), (9, true, &vec![10]));
    assert!(tables[1..].iter().all(|table| !table.is_ours && table.mounts.len() == each as usize));
    assert_eq!(tables[3].pids, [3, 9]);
}
