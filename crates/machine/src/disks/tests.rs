//! Which file systems count as disks, and what is left of a measurement.

use super::{among, measure};
use crate::mounts::Mount;
use std::path::PathBuf;

fn mount(device: &str, point: &str, kind: &str, source: &str) -> Mount {
    Mount {
        number: 0,
        device: device.to_owned(),
        root: PathBuf::from("/"),
        point: point.into(),
        kind: kind.to_owned(),
        source: source.to_owned(),
        layers: Vec::new(),
        is_volatile: false,
    }
}

#[test]
fn a_disk_is_named_once_by_its_shortest_place() {
    let disks = among(vec![
        mount("8:1", "/srv/data/deep", "ext4", "/dev/sda1"),
        mount("8:1", "/srv/data", "ext4", "/dev/sda1"),
        mount("8:2", "/", "xfs", "/dev/sda2"),
    ]);
    let at: Vec<_> = disks.iter().map(|disk| disk.at.to_str().unwrap()).collect();
    assert_eq!(at, ["/", "/srv/data"]);
}

#[test]
fn what_is_no_disk_that_can_be_written_is_left_out() {
    let disks = among(vec![
        mount("0:5", "/dev", "devtmpfs", "udev"),
        mount("0:6", "/proc", "proc", "proc"),
        mount("0:7", "/net", "nfs4", "host:/export"),
        mount("7:0", "/snap/core", "squashfs", "/dev/loop0"),
        mount("8:1", "/boot/efi", "vfat", "/dev/sda1"),
    ]);
    assert_eq!(disks, []);
}

#[test]
fn a_measurement_leaves_nothing_behind_and_tells_of_every_write() {
    let folder = tempfile::tempdir().unwrap();
    let kept = measure(folder.path()).unwrap();
    assert!((5..=300).contains(&kept.writes));
    assert!(kept.median_us > 0.0 && kept.median_us <= kept.worst_us);
    assert_eq!(folder.path().read_dir().unwrap().count(), 0);
}

#[test]
fn what_cannot_be_written_is_an_error_and_no_figure() {
    assert!(measure(&PathBuf::from("/proc")).is_err());
    assert!(measure(&PathBuf::from("/nowhere")).is_err());
}
