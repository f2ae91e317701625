//! The table of mounts, as the kernel writes it.

use super::*;
use crate::mounts::{mount, unmount};

#[test]
fn a_line_with_optional_fields_and_escapes_is_understood() {
    let table = b"36 35 98:0 /mnt1 /srv/pg\\040wal rw,noatime master:1 shared:2 - fuse.holdfast \
        pgwal rw\nnonsense\n37 35 98:0 / /srv rw - ext4 /dev/root rw\n";
    let mounts = parse(table);
    assert_eq!(mounts.len(), 2);
    assert_eq!(mounts[0].point, Path::new("/srv/pg wal"));
    assert_eq!((&*mounts[0].device, &*mounts[0].root), ("98:0", Path::new("/mnt1")));
    assert!(mounts[0].is_ours());
    assert_eq!(mounts[0].source, "pgwal");
    assert_eq!((mounts[1].kind.as_str(), mounts[1].is_ours()), ("ext4", false));
}

#[test]
fn an_overlay_tells_its_layers_however_its_kernel_writes_them() {
    let layers = |options: &str| layers_of(options.as_bytes());
    let paths = |all: &[&str]| all.iter().map(PathBuf::from).collect::<Vec<_>>();
    let older = "rw,lowerdir=/a\\134:b:/c\\040d,upperdir=/u,workdir=/w,userxattr";
    assert_eq!(layers(older), paths(&["/a:b", "/c d", "/u", "/w"]));
    let newer = "rw,lowerdir+=/a\\054b,datadir+=/d,upperdir=/u,workdir=/w,index=on";
    assert_eq!(layers(newer), paths(&["/a,b", "/d", "/u", "/w"]));
    assert_eq!(layers("ro,lowerdir=/a:/b::/data"), paths(&["/a", "/b", "", "/data"]));
    assert_eq!(layers(""), paths(&[]));
}

#[test]
fn a_backslash_that_escapes_nothing_stays() {
    assert_eq!(unescaped(b"a\\"), b"a\\");
    assert_eq!(unescaped(b"a\\9zz"), b"a\\9zz");
    assert_eq!(unescaped(b"a\\134b"), b"a\\b");
}

#[test]
fn the_root_is_mounted_and_a_plain_directory_is_not() {
    assert!(mounted_at(Path::new("/proc")).is_some_and(|mount| mount.kind == "proc"));
    assert_eq!(mounted_at(Path::new("/proc/self")), None);
}

#[test]
fn a_path_leads_where_it_does_however_it_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(folder.join("a/b")).unwrap();
    std::os::unix::fs::symlink("a/b", folder.join("link")).unwrap();
    for written in ["a/b", "a/b/", "a//b/.", "a/b/../b", "link", "link/", "link/../b"] {
        assert_eq!(leads_to(&folder.join(written)), folder.join("a/b"), "{written}");
    }
    assert_eq!(leads_to(&folder.join("link/none/x/")), folder.join("a/b/none/x"));
}

#[test]
fn a_mount_that_nobody_serves_is_found_with_a_slash_behind_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let connection = mount("a test", "slash", folder.path()).unwrap();
    // Nobody answers: whoever asked the file system anything would hang.
    let point = folder.path().join("");
    assert_eq!(our_mount_at(&point, "slash").unwrap().point, folder.path());
    assert!(users(&point).0.is_empty());
    unmount(&our_mount_at(&point, "slash").unwrap(), false).unwrap();
    drop(connection);
}
