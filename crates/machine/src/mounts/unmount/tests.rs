//! Mounts whose names others change.

use super::*;
use crate::mounts;
use crate::mounts::our_mount_at;
use std::fs;

fn is_there(mount: &Mount) -> bool {
    all_mounts().iter().any(|it| mount.is(it))
}

#[test]
fn a_mount_is_taken_away_where_it_is_and_not_where_its_name_leads_by_now() {
    for force in [false, true] {
        let folder = tempfile::tempdir().unwrap();
        let (way, moved) = (folder.path().join("way"), folder.path().join("moved"));
        let point = way.join("point");
        fs::create_dir_all(&point).unwrap();
        let _connection = mounts::mount("a test", "moved", &point).unwrap();
        let mount = our_mount_at(&point, "moved").unwrap();
        fs::rename(&way, &moved).unwrap();
        fs::create_dir_all(&point).unwrap();
        let _other = mounts::mount("a test", "decoy", &point).unwrap();
        unmount(&mount, force).unwrap();
        assert!(!is_there(&mount), "force: {force}");
        let decoy = our_mount_at(&point, "decoy").expect("what has the name by now stays");
        unmount(&decoy, force).unwrap();
        unmount(&mount, force).expect("what is gone is unmounted");
    }
}

#[test]
fn what_got_the_number_of_a_mount_that_is_gone_stays() {
    let folder = tempfile::tempdir().unwrap();
    let mounted = |name: &str| {
        let point = folder.path().join(name);
        fs::create_dir(&point).unwrap();
        let connection = mounts::mount("a test", name, &point).unwrap();
        (our_mount_at(&point, name).unwrap(), connection)
    };
    let (gone, connection) = mounted("gone");
    unmount(&gone, false).unwrap();
    drop(connection);
    // The kernel gives the lowest number that is free, which others take as well.
    let heirs: Vec<_> = (0..20).map(|heir| mounted(&heir.to_string())).collect();
    for force in [false, true] {
        unmount(&gone, force).unwrap();
        assert!(heirs.iter().all(|(heir, _)| is_there(heir)), "{gone:?}: {heirs:?}");
    }
    heirs.iter().for_each(|(heir, _)| unmount(heir, true).unwrap());
}

#[test]
fn a_mount_is_found_while_a_folder_on_the_way_to_it_changes_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let names = [folder.path().join("one"), folder.path().join("other")];
    fs::create_dir_all(names[0].join("point")).unwrap();
    let connection = mounts::mount("a test", "restless", &names[0].join("point")).unwrap();
    let mount = our_mount_at(&names[0].join("point"), "restless").unwrap();
    let ends = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&names[0], &names[1]).unwrap();
                fs::rename(&names[1], &names[0]).unwrap();
            }
        });
        let unmounted = unmount(&mount, false);
        ends.store(true, std::sync::atomic::Ordering::Relaxed);
        unmounted.unwrap();
    });
    assert!(!is_there(&mount));
    drop(connection);
}
