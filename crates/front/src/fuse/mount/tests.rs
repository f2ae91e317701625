//! What people are told about a mount that failed.

use super::*;

#[test]
fn a_device_that_is_forbidden_is_not_a_module_that_is_missing() {
    let text = |errno: Errno| MountError::Device(errno.into()).to_string();
    for errno in [Errno::PERM, Errno::ACCESS] {
        assert!(text(errno).contains("run as root"), "{}", text(errno));
        assert!(!text(errno).contains("modprobe"), "{}", text(errno));
    }
    for errno in [Errno::NOENT, Errno::NODEV, Errno::NXIO] {
        assert!(text(errno).contains("modprobe fuse"), "{}", text(errno));
    }
    assert!(text(Errno::MFILE).contains("limit of open files"));
}
