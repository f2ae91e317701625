//! What the kernel tells of connections.

use super::super::{our_mount_at, unmount};
use super::*;
use crate::mounts::mount;
use std::os::fd::AsRawFd;

#[test]
fn a_connection_is_known_by_the_device_of_its_file_system() {
    let told = "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t90\nfuse_connection:\t39\n";
    assert_eq!(device(told).as_deref(), Some("0:39"));
    assert_eq!(device("fuse_connection:\t1048577\n").as_deref(), Some("1:1"));
    assert_eq!(device("pos:\t0\n"), None);
}

#[test]
fn a_connection_that_has_ended_is_no_files_systems_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let connection = mount("a test", "served", folder.path()).unwrap();
    let device = our_mount_at(folder.path(), "served").unwrap().device;
    let is_served = || connections_of(std::process::id()).contains(&device);
    assert!(is_served() && is_connected(&connection));
    unmount(&our_mount_at(folder.path(), "served").unwrap(), false).unwrap();
    assert!(!is_connected(&connection), "the descriptor is open, and leads nowhere");
    // Other tests' file systems may get its number, and are served by this process.
    let told = format!("/proc/self/fdinfo/{}", connection.as_raw_fd());
    assert_eq!(super::device(&fs::read_to_string(told).unwrap()), Some(device));
}
