//! Regions at places that another user of the machine can reach.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};

use holdfast_memory::{AttachError, CreateError, Medium, Region};

use crate::common::{create, path_of, shm, spec};

/// The stranger.
const NOBODY: u32 = 65534;

fn is_exposed(medium: &Medium) {
    let made = Region::create(medium, &spec());
    assert!(matches!(made, Err(CreateError::Exposed { .. })), "{made:?}");
    let attached = Region::attach(medium);
    assert!(matches!(attached, Err(AttachError::Exposed { .. })), "{attached:?}");
    let seen = Region::observe(medium);
    assert!(matches!(seen, Err(AttachError::Exposed { .. })), "{seen:?}");
    assert!(Region::remove(medium).is_err());
}

#[test]
fn a_file_that_another_user_made_first_does_not_become_a_region() {
    let (_folder, medium) = shm();
    let path = path_of(&medium);
    for bytes in [0, 8192 + 4096 + 8192] {
        fs::write(&path, vec![0; bytes]).unwrap();
        chown(&path, Some(NOBODY), None).unwrap();
        is_exposed(&medium);
        assert_eq!(fs::read(&path).unwrap(), vec![0; bytes]);
    }
}

#[test]
fn a_region_that_others_can_write_or_that_has_another_name_is_refused() {
    let (folder, medium) = shm();
    drop(create(&medium));
    let path = path_of(&medium);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o622)).unwrap();
    is_exposed(&medium);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::hard_link(&path, folder.path().join("other")).unwrap();
    is_exposed(&medium);
    fs::remove_file(folder.path().join("other")).unwrap();
    Region::attach(&medium).unwrap();
}

#[test]
fn another_users_link_does_not_lead_to_a_region() {
    let (folder, medium) = shm();
    drop(create(&medium));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o1777)).unwrap();
    let link = folder.path().join("link");
    symlink(path_of(&medium), &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(NOBODY), None).unwrap();
    let medium = Medium::Shm { path: link };
    let is_refused = |error: &AttachError| {
        matches!(error, AttachError::Exposed { .. } | AttachError::InTheWay { .. })
    };
    assert!(Region::create(&medium, &spec()).is_err());
    assert!(Region::attach(&medium).is_err_and(|error| is_refused(&error)));
    assert!(Region::observe(&medium).is_err_and(|error| is_refused(&error)));
    assert!(Region::remove(&medium).is_err());
}

#[test]
fn a_region_in_a_folder_that_others_can_change_is_refused_on_every_medium() {
    let (folder, medium) = shm();
    drop(create(&medium));
    let path = path_of(&medium);
    chown(folder.path(), Some(NOBODY), None).unwrap();
    is_exposed(&medium);
    is_exposed(&Medium::File { path: path.clone() });
    is_exposed(&Medium::Pmem { path: path.clone() });
    is_exposed(&Medium::HugeTlb { path });
}
