//! Mount points that somebody else leads elsewhere.

use super::*;
use crate::mounts::{mounted_at, unmount};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
use std::sync::atomic::{AtomicBool, Ordering};

/// The stranger.
const NOBODY: u32 = 65534;

/// A folder of the stranger's beside one of ours that nobody else can enter.
fn places() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (his, ours) = (folder.path().join("his"), folder.path().join("ours"));
    fs::create_dir(&his).unwrap();
    chown(&his, Some(NOBODY), Some(NOBODY)).unwrap();
    fs::create_dir(&ours).unwrap();
    fs::set_permissions(&ours, fs::Permissions::from_mode(0o700)).unwrap();
    (folder, his, ours)
}

fn found(path: &Path) -> Outcome<MountPoint> {
    MountPoint::find("a test", path, None)
}

#[test]
fn a_mount_point_to_which_another_users_link_leads_is_refused() {
    let (_folder, his, ours) = places();
    for path in [his.join("link"), his.join("link/sub")] {
        fs::create_dir_all(ours.join("sub")).unwrap();
        let _again = symlink(&ours, his.join("link"));
        lchown(his.join("link"), Some(NOBODY), Some(NOBODY)).unwrap();
        let problem = found(&path).unwrap_err();
        assert_eq!(problem.exit, Exit::Usage);
        assert!(problem.why.contains("link of user 65534"), "{problem}");
        assert!(check_way("a test", &path).is_err(), "it is refused before it is there");
    }
}

#[test]
fn a_users_own_directory_is_mounted_over_and_that_of_a_third_is_not() {
    let (_folder, his, _ours) = places();
    let point = his.join("point");
    fs::create_dir(&point).unwrap();
    for (owner, is_his_to_give) in [(0, true), (NOBODY, true), (NOBODY - 1, false)] {
        chown(&point, Some(owner), None).unwrap();
        let found = found(&point);
        assert_eq!(found.is_ok(), is_his_to_give, "owner {owner}: {found:?}");
    }
}

#[test]
fn what_is_in_a_mount_point_is_not_hidden_unless_it_is_the_home() {
    let (_folder, _his, ours) = places();
    found(&ours).unwrap();
    fs::write(ours.join("name"), "").unwrap();
    assert!(found(&ours).unwrap_err().why.contains("not empty"));
    let home: OwnedFd = fs::File::open(&ours).unwrap().into();
    MountPoint::find("a test", &ours, Some(&home)).unwrap();
    assert_eq!(found(&ours.join("name")).unwrap_err().exit, Exit::Usage);
    assert_eq!(found(&ours.join("none")).unwrap_err().exit, Exit::Usage);
}

#[test]
fn whatever_a_name_leads_to_meanwhile_the_mount_is_where_it_was_looked_at() {
    let (_folder, his, ours) = places();
    let (point, link) = (his.join("point"), his.join("link"));
    fs::create_dir(&point).unwrap();
    symlink(&ours, &link).unwrap();
    let ends = AtomicBool::new(false);
    let exchange = || {
        let flags = rustix::fs::RenameFlags::EXCHANGE;
        while !ends.load(Ordering::Relaxed) {
            let at = rustix::fs::CWD;
            // What is mounted over stays where it is.
            let _busy = rustix::fs::renameat_with(at, &point, at, &link, flags);
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(exchange);
        let mounted = (0..2000).filter(|round| {
            let Ok(over) = found(&point) else { return false };
            let connection = over.mount("a test", "exchanged").unwrap();
            let over_ours = mounted_at(&ours);
            let mount = crate::mounts::served::mount_of(&connection, &point, "exchanged");
            unmount(&mount.unwrap(), true).unwrap();
            assert_eq!(over_ours, None, "round {round}");
            true
        });
        let mounted = mounted.count();
        ends.store(true, Ordering::Relaxed);
        assert!(mounted > 0, "it was never a directory when it was looked at");
    });
}
