//! Promise: what is in RAM is found to be, on real file systems and devices, and below a folder
//! that is laid out as the kernel lays out its devices.
//! Never: needs a RAM disk or a mapped device of the machine's.

use super::*;
use std::os::unix::fs::symlink;
use std::process::Command;
use tempfile::TempDir;

fn ram(path: &Path) -> Option<String> {
    ram_behind(path, DEEPEST)
}

#[test]
fn a_tmpfs_is_ram_and_so_is_what_is_to_be_made_there() {
    assert_eq!(ram(Path::new("/dev/shm")).as_deref(), Some("tmpfs"));
    assert_eq!(ram(Path::new("/dev/shm/not/there/yet")).as_deref(), Some("tmpfs"));
    let said = Storage::Ram("its log /dev/shm/x is on a tmpfs".into());
    assert_eq!(storage("its log", Path::new("/dev/shm/x")), said);
    assert_eq!(storage("its log", Path::new(env!("CARGO_MANIFEST_DIR"))), Storage::Disk);
}

#[test]
fn a_loop_device_is_what_its_file_is_on() {
    let losetup = |arguments: &[&str]| {
        let said = Command::new("losetup").args(arguments).output().unwrap();
        assert!(said.status.success(), "{said:?}");
        String::from_utf8(said.stdout).unwrap().trim().to_owned()
    };
    for (folder, is_ram) in [(Path::new("/dev/shm"), true), (Path::new("/var/tmp"), false)] {
        let image = tempfile::NamedTempFile::new_in(folder).unwrap();
        image.as_file().set_len(1 << 20).unwrap();
        let device = losetup(&["--find", "--show", image.path().to_str().unwrap()]);
        let found = ram(Path::new(&device));
        losetup(&["--detach", &device]);
        let said = found.as_deref().is_some_and(|it| it.ends_with("over a tmpfs"));
        assert_eq!(said, is_ram, "{found:?}");
    }
}

/// A folder of devices.
struct Devices(TempDir);

impl Devices {
    fn with(names: &[&str]) -> Devices {
        let devices = Devices(tempfile::tempdir().unwrap());
        names.iter().for_each(|name| fs::create_dir_all(devices.at(name)).unwrap());
        devices
    }

    fn at(&self, name: &str) -> std::path::PathBuf {
        self.0.path().join(name)
    }

    fn found(&self, name: &str) -> Option<String> {
        ram_device(&self.at(name), DEEPEST)
    }
}

#[test]
fn ram_disks_are_known_by_their_names_and_through_what_lies_over_them() {
    let devices = Devices::with(&["ram0", "zram12", "vda/vda1", "ramble", "dm-0/slaves", "ring"]);
    fs::write(devices.at("vda/vda1/partition"), "1\n").unwrap();
    symlink(devices.at("zram12"), devices.at("dm-0/slaves/zram12")).unwrap();
    assert_eq!(devices.found("ram0").as_deref(), Some("RAM disk (ram0)"));
    assert_eq!(devices.found("zram12").as_deref(), Some("RAM disk (zram12)"));
    let mapped = "device (dm-0) over a RAM disk (zram12)";
    assert_eq!(devices.found("dm-0").as_deref(), Some(mapped));
    assert_eq!(devices.found("vda/vda1"), None);
    assert_eq!(devices.found("ramble"), None);
    fs::create_dir(devices.at("ring/slaves")).unwrap();
    symlink(devices.at("ring"), devices.at("ring/slaves/ring")).unwrap();
    assert_eq!(devices.found("ring"), None, "a stack without an end");
}
