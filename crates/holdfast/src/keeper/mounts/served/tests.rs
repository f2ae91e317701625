//! What the kernel tells of connections.

use super::*;

#[test]
fn a_connection_is_known_by_the_device_of_its_file_system() {
    let told = "pos:\t0\nflags:\t02100002\nmnt_id:\t24\nino:\t90\nfuse_connection:\t39\n";
    assert_eq!(device(told).as_deref(), Some("0:39"));
    assert_eq!(device("fuse_connection:\t1048577\n").as_deref(), Some("1:1"));
    assert_eq!(device("pos:\t0\n"), None);
}
