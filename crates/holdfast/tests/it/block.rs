//! Volumes whose home is a file or a block device, seen as one file.

use crate::fixture::{Fixture, NAME, kill};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

pub(crate) const DISK_BYTES: u64 = 64 << 20;

/// A fixture whose volume has a file of zeros for a home.
pub(crate) fn with_disk() -> Fixture {
    let fixture = Fixture::new();
    fs::remove_dir(fixture.home()).unwrap();
    fs::File::create(fixture.home()).unwrap().set_len(DISK_BYTES).unwrap();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture
}

pub(crate) fn disk(fixture: &Fixture) -> PathBuf {
    fixture.mount().join("disk")
}

#[track_caller]
pub(crate) fn run(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).output().unwrap();
    assert!(output.status.success(), "{program} {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

/// A loop device over a file, perhaps with a file system of it mounted; both go with this.
pub(crate) struct Loop {
    pub(crate) device: String,
    mounted: Option<PathBuf>,
}

impl Loop {
    pub(crate) fn over(file: &Path) -> Loop {
        let device = run("losetup", &["--find", "--show", file.to_str().unwrap()]);
        Loop { device, mounted: None }
    }

    pub(crate) fn mount(&mut self, point: PathBuf) {
        self.mount_as("ext4", point);
    }

    pub(crate) fn mount_as(&mut self, file_system: &str, point: PathBuf) {
        fs::create_dir_all(&point).unwrap();
        mount(&self.device, &point, file_system, MountFlags::empty(), None).unwrap();
        self.mounted = Some(point);
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let unmounted = self.mounted.take().map(|point| unmount_when_free(&point));
        let detached = Command::new("losetup").args(["--detach", &self.device]).status();
        if !std::thread::panicking() {
            unmounted.into_iter().for_each(Result::unwrap);
            assert!(detached.unwrap().success());
        }
    }
}

/// A program that another test is just starting has what this process has open until it runs.
fn unmount_when_free(point: &Path) -> rustix::io::Result<()> {
    for _ in 0..500 {
        match unmount(point, UnmountFlags::empty()) {
            Err(Errno::BUSY) => std::thread::sleep(Duration::from_millis(10)),
            unmounted => return unmounted,
        }
    }
    unmount(point, UnmountFlags::empty())
}

pub(crate) fn contents(number: u8) -> Vec<u8> {
    (0..700_000_u32).map(|index| (index >> 4) as u8 ^ number).collect()
}

#[track_caller]
pub(crate) fn check_files(file_system: &Path, count: u8) {
    for number in 0..count {
        let found = fs::read(file_system.join(format!("f{number}"))).unwrap();
        assert!(found == contents(number), "file {number} is another");
    }
}

#[test]
fn a_file_system_on_a_disk_sees_no_death_of_a_front_end_and_is_in_the_home_afterwards() {
    let mut fixture = with_disk();
    fixture.serve();
    let point = fixture.path("fs");
    {
        let mut device = Loop::over(&disk(&fixture));
        run("mkfs.ext4", &["-q", &device.device]);
        device.mount(point.clone());
        for number in 0..10 {
            kill(fixture.front_end(), Signal::KILL);
            let file = fs::File::create(point.join(format!("f{number}"))).unwrap();
            file.write_all_at(&contents(number), 0).unwrap();
            file.sync_all().unwrap();
        }
        fs::remove_file(point.join("f9")).unwrap();
        check_files(&point, 9);
    }
    assert_eq!(fixture.status()["restarts"], 10, "{}", fixture.status());
    let said = fixture.holdfast(&["umount", NAME]).succeeded().out;
    assert!(said.contains("is complete"), "{said}");
    fixture.assert_given_back();
    run("e2fsck", &["-f", "-n", fixture.home().to_str().unwrap()]);
    let mut device = Loop::over(&fixture.home());
    device.mount(point.clone());
    check_files(&point, 9);
    assert!(!point.join("f9").exists());
}

#[test]
fn what_is_written_while_front_ends_and_keeper_are_killed_is_on_the_disk() {
    let mut fixture = with_disk();
    let mut expected = vec![0; DISK_BYTES as usize];
    for round in 0..3_u64 {
        fixture.serve();
        let file = fs::File::options().read(true).write(true).open(disk(&fixture)).unwrap();
        assert_eq!(file.metadata().unwrap().len(), DISK_BYTES);
        for number in 0..7_u64 {
            kill(fixture.front_end(), Signal::KILL);
            let (at, byte) = ((round * 7 + number) * 3_000_001, number as u8 + 1);
            file.write_all_at(&vec![byte; 100_000], at).unwrap();
            expected[at as usize..at as usize + 100_000].fill(byte);
        }
        let mut found = vec![0; expected.len()];
        file.read_exact_at(&mut found, 0).unwrap();
        assert!(found == expected, "round {round}");
        drop(file);
        let front_end = fixture.front_end();
        fixture.kill_keeper();
        kill(front_end, Signal::KILL);
        fixture.wait_for_state("left in memory");
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert!(fs::read(fixture.home()).unwrap() == expected);
}

#[test]
fn the_one_file_cannot_be_removed_renamed_or_cut_short() {
    let mut fixture = with_disk();
    fixture.serve();
    let disk = disk(&fixture);
    let names: Vec<_> = fs::read_dir(fixture.mount()).unwrap().flatten().collect();
    assert!(matches!(&*names, [one] if one.path() == disk), "{names:?}");
    drop(names);
    let refusals = [
        fs::remove_file(&disk),
        fs::rename(&disk, fixture.mount().join("other")),
        fs::write(fixture.mount().join("new"), "x"),
        fs::create_dir(fixture.mount().join("new")),
        fs::hard_link(&disk, fixture.mount().join("new")),
        fs::File::options().write(true).open(&disk).unwrap().set_len(DISK_BYTES / 2),
        fs::File::create(&disk).map(drop),
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().raw_os_error(), Some(1));
    }
    let file = fs::File::options().write(true).open(&disk).unwrap();
    let full = file.write_all_at(b"behind", DISK_BYTES).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(28));
    drop(file);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::metadata(fixture.home()).unwrap().len(), DISK_BYTES);
}

#[test]
fn a_disk_that_must_survive_power_has_on_the_logs_disk_what_was_synced() {
    let mut fixture = with_disk();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.serve();
    let file = fs::File::options().write(true).open(disk(&fixture)).unwrap();
    let syncs = || {
        let status = fixture.status();
        assert_eq!(status["verdict"]["class"], "disk", "{status}");
        status["syncs"].as_u64().unwrap()
    };
    for round in 0..5_u8 {
        let before = syncs();
        file.write_all_at(&[round; 4096], 4096).unwrap();
        file.sync_data().unwrap();
        assert!(syncs() > before, "round {round}: the log's disk was not synced");
    }
}

/// The configuration with this home.
fn set_home(fixture: &Fixture, home: &str) {
    let own = format!("{:?}", fixture.home());
    fixture.configure(&fixture.config_text().replace(&own, &format!("{home:?}")));
}

#[test]
fn a_block_device_is_a_home_and_nobody_elses_meanwhile() {
    let mut fixture = with_disk();
    let mut device = Loop::over(&fixture.home());
    set_home(&fixture, &device.device);
    fixture.holdfast(&["serve"]).expect(6, &["is not the home that its log knows"]);
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    fixture.serve();
    let file = fs::File::options().write(true).open(disk(&fixture)).unwrap();
    assert_eq!(file.metadata().unwrap().len(), DISK_BYTES);
    file.write_all_at(&[7; 300_000], 5000).unwrap();
    run("fallocate", &["-p", "-o", "100000", "-l", "50000", disk(&fixture).to_str().unwrap()]);
    drop(file);
    kill(fixture.front_end(), Signal::KILL);
    let point = fixture.path("fs");
    fs::create_dir(&point).unwrap();
    let busy = mount(&device.device, &point, "ext4", MountFlags::empty(), None);
    assert_eq!(busy, Err(rustix::io::Errno::BUSY));
    assert_eq!(fixture.stop(), Some(0));
    let mut expected = vec![0; DISK_BYTES as usize];
    expected[5000..305_000].fill(7);
    expected[100_000..150_000].fill(0);
    assert!(fs::read(fixture.home()).unwrap() == expected, "the device has something else");
    run("mkfs.ext4", &["-q", &device.device]);
    device.mount(point);
    fixture.holdfast(&["serve"]).expect(5, &["home", &device.device, "it is mounted"]);
}

#[test]
fn a_home_that_is_another_volumes_is_refused_whatever_it_is() {
    let mut fixture = with_disk();
    fixture.serve();
    let elsewhere = fixture.config_text().replace("control.sock", "other.sock");
    let (mount, other) = (format!("{:?}", fixture.mount()), format!("{:?}", fixture.path("m2")));
    fs::create_dir(fixture.path("m2")).unwrap();
    fixture.configure(&elsewhere.replace("[volume.v]", "[volume.w]").replace(&mount, &other));
    fixture.holdfast(&["serve"]).expect(5, &["home", "another volume"]);
    fixture.configure(&fixture.config_text());
}

#[test]
fn a_block_device_of_the_machine_needs_a_disk_a_driver_and_a_program_that_knows_it() {
    let with_device = |fixture: &Fixture| {
        let text = fixture.config_text().replace("log =", "ublk = 1048575\nlog =");
        fixture.configure(&text);
    };
    let directory = Fixture::new();
    directory.holdfast(&["volume", "make", NAME]).succeeded();
    with_device(&directory);
    directory.holdfast(&["serve"]).expect(2, &["ublk is set", "is a directory"]);
    if cfg!(feature = "ublk") && Path::new("/dev/ublk-control").exists() {
        return;
    }
    let fixture = with_disk();
    with_device(&fixture);
    let lacking = if cfg!(feature = "ublk") { "modprobe ublk_drv" } else { "--features ublk" };
    fixture.holdfast(&["serve"]).expect(2, &["attaching volume v", lacking]);
}
