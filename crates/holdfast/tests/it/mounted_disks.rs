//! Disks that are served and mounted: their file, and who has it open while processes end.

use crate::block::{Loop, check_files, contents, run};
use crate::disk_users::HasFrontEnd;
use crate::fixture::{kill, wait_until, way};
use crate::served_disks::WithDisk;
use holdfast_io::Blocks;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

const DISK_BYTES: u64 = 32 << 20;

/// A disk with a mount, which goes with the test.
struct Mounted {
    disk: WithDisk,
    point: tempfile::TempDir,
}

impl Mounted {
    fn served() -> Mounted {
        Mounted::served_by(&way())
    }

    fn served_by(way: &str) -> Mounted {
        let (disk, point) = (WithDisk::new(), tempfile::tempdir().unwrap());
        disk.configure(&format!("way = {way:?}\nmount = {:?}", point.path()));
        let mut mounted = Mounted { disk: disk.make(), point };
        mounted.serve(0);
        mounted
    }

    fn serve(&mut self, restarts: u64) {
        self.disk.served.serve();
        self.disk.wait_for_front_end(restarts);
    }

    fn file(&self) -> PathBuf {
        self.point.path().join("ram")
    }

    fn open(&self) -> File {
        File::options().read(true).write(true).open(self.file()).unwrap()
    }

    fn is_mounted(&self) -> bool {
        let table = fs::read_to_string("/proc/self/mountinfo").unwrap();
        let point = self.point.path().to_str().unwrap();
        table.lines().any(|line| line.split(' ').nth(4) == Some(point))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that failed left it there.
        let _ = unmount(self.point.path(), UnmountFlags::FORCE);
        let _ = unmount(self.point.path(), UnmountFlags::DETACH);
    }
}

#[test]
fn a_disk_is_not_mounted_where_another_keeper_serves_one_of_the_same_name() {
    let mounted = Mounted::served();
    let mut second = WithDisk::new();
    second.configure(&format!("way = {:?}\nmount = {:?}", way(), mounted.point.path()));
    second = second.make();
    second.served.serve();
    let told = || fs::read_to_string(second.served.path("keeper.log")).unwrap();
    wait_until(|| told().contains("serves what is mounted at"), told);
    mounted.open().write_all_at(b"still", 0).unwrap();
    second.served.stop();
    mounted.open().write_all_at(b"here", 0).unwrap();
}

#[test]
fn a_file_system_on_a_mounted_disk_sees_no_death_and_no_replacement() {
    let mut mounted = Mounted::served();
    let point = mounted.disk.served.path("fs");
    {
        let mut device = Loop::over(&mounted.file());
        run("mkfs.ext4", &["-q", &device.device]);
        device.mount(point.clone());
        for number in 0..6 {
            match number % 3 {
                0 => kill(mounted.disk.front_end_pid(), Signal::KILL),
                1 => drop(mounted.disk.holdfast(&["upgrade", "disk", "ram"]).succeeded()),
                _ => kill(mounted.disk.served.server_pid(), Signal::KILL),
            }
            let file = File::create(point.join(format!("f{number}"))).unwrap();
            file.write_all_at(&contents(number), 0).unwrap();
            file.sync_all().unwrap();
            mounted.disk.wait_for_front_end(u64::from(number) / 3 + 1);
        }
        check_files(&point, 6);
    }
    run("e2fsck", &["-f", "-n", mounted.file().to_str().unwrap()]);
    mounted.disk.served.stop();
    assert!(!mounted.is_mounted(), "the mount goes with the keeper");
    mounted.serve(0);
    let mut device = Loop::over(&mounted.file());
    device.mount(point.clone());
    check_files(&point, 6);
}

#[test]
fn the_file_of_a_mounted_disk_has_its_bytes_and_nothing_else_can_be_there() {
    let mounted = Mounted::served_by("queue");
    let (file, native) = (mounted.open(), mounted.disk.client());
    assert_eq!(file.metadata().unwrap().len(), DISK_BYTES);
    native.write(&[7; 9000], 5000).unwrap();
    let mut found = [0; 9000];
    file.read_exact_at(&mut found, 5000).unwrap();
    assert_eq!(found, [7; 9000], "a mount and another client see one disk");
    file.write_all_at(&[8; 300_000], 100_001).unwrap();
    file.sync_all().unwrap();
    run("fallocate", &["-p", "-o", "200000", "-l", "50000", mounted.file().to_str().unwrap()]);
    let (mut found, mut expected) = (vec![1; 300_000], vec![8; 300_000]);
    expected[99_999..149_999].fill(0);
    native.read(&mut found, 100_001).unwrap();
    assert!(found == expected, "what the mount wrote and discarded is not on the disk");
    let names: Vec<_> = fs::read_dir(mounted.point.path()).unwrap().flatten().collect();
    assert!(matches!(&*names, [one] if one.path() == mounted.file()), "{names:?}");
    let other = mounted.point.path().join("other");
    let refusals = [
        fs::remove_file(mounted.file()),
        fs::rename(mounted.file(), &other),
        fs::write(&other, "x"),
        fs::create_dir(&other),
        fs::hard_link(mounted.file(), &other),
        file.set_len(DISK_BYTES / 2),
        File::create(mounted.file()).map(drop),
    ];
    for refusal in refusals {
        assert_eq!(refusal.unwrap_err().raw_os_error(), Some(1));
    }
    file.set_len(DISK_BYTES).unwrap();
    let full = file.write_all_at(b"behind", DISK_BYTES).unwrap_err();
    assert_eq!(full.raw_os_error(), Some(28));
    assert_eq!(file.read_at(&mut found, DISK_BYTES - 10).unwrap(), 10);
    let text = mounted.disk.holdfast(&["status"]).succeeded().out;
    let place = format!("at {}", mounted.point.path().display());
    assert!(text.contains(&place), "no {place:?} in {text}");
}

#[test]
fn without_a_keeper_a_mount_stays_until_its_last_user_has_gone() {
    let mut mounted = Mounted::served();
    let file = mounted.open();
    let (front_end, server) = (mounted.disk.front_end_pid(), mounted.disk.served.server_pid());
    mounted.disk.served.kill_keeper();
    file.write_all_at(&[5; 5000], 100).unwrap();
    assert!(mounted.is_mounted());
    drop(file);
    let is_over = |pid: i32| !fs::exists(format!("/proc/{pid}")).unwrap();
    wait_until(|| is_over(front_end) && is_over(server), || mounted.disk.status().0.to_string());
    assert!(!mounted.is_mounted());
    mounted.serve(0);
    let mut found = [0; 5000];
    mounted.open().read_exact_at(&mut found, 100).unwrap();
    assert_eq!(found, [5; 5000]);
    mounted.disk.served.stop();
}

#[test]
fn a_keeper_that_is_to_end_waits_for_who_uses_a_mount() {
    let mut mounted = Mounted::served();
    let file = mounted.open();
    std::thread::scope(|scope| {
        let served = &mut mounted.disk.served;
        let log = served.path("keeper.log");
        let stopping = scope.spawn(move || served.stop());
        let said = || fs::read_to_string(&log).unwrap();
        wait_until(|| said().contains("a second signal cuts them off"), said);
        file.write_all_at(&[6; 5000], 100).unwrap();
        drop(file);
        stopping.join().unwrap();
    });
    assert!(!mounted.is_mounted());
}
