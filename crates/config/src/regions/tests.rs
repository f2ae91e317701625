//! Where regions are.

use super::*;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};

#[test]
fn a_region_of_an_earlier_version_is_found_only_if_it_is_ours_alone() {
    let name = format!("test-regions-{}", std::process::id());
    let (new, old) = (region_of(&name), Path::new("/dev/shm").join(format!("holdfast-{name}")));
    assert_eq!(where_it_is(new.clone()), new);
    fs::write(&old, "a region").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(where_it_is(new.clone()), old);
    fs::set_permissions(&old, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(where_it_is(new.clone()), new, "everybody could write it");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).unwrap();
    chown(&old, Some(65534), None).unwrap();
    assert_eq!(where_it_is(new.clone()), new, "it is another user's");
    fs::remove_file(&old).unwrap();
    let elsewhere = Path::new("/dev/shm/else").to_owned();
    assert_eq!(where_it_is(elsewhere.clone()), elsewhere);
}
