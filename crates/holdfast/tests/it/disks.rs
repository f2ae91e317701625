//! Disks that are full, read-only or gone: a clear error, nothing acknowledged lost, and a way on.

use crate::fixture::{Ended, Fixture, NAME, kill, stop, wait_until, way};
use crate::slow_disk;
use rustix::mount::{MountFlags, UnmountFlags, mount, mount_remount, unmount};
use rustix::process::Signal;
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Duration;

const MIB: usize = 1 << 20;

/// A small disk of its own; gone with the test.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf, size: &str) -> Disk {
        fs::create_dir(&path).unwrap();
        let options = std::ffi::CString::new(format!("size={size}")).unwrap();
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), options.as_c_str()).unwrap();
        Disk(path)
    }

    fn set_read_only(&self, yes: bool) {
        let flags = if yes { MountFlags::RDONLY } else { MountFlags::empty() };
        // Refused while the volume writes.
        let is_done = || mount_remount(&self.0, flags, c"").is_ok();
        wait_until(is_done, || "the disk stays as it is".to_owned());
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

/// A fixture whose home is a directory on a disk of this size. The disk goes first, or the
/// fixture's directory cannot.
fn with_home_on_disk(size: &str) -> (Fixture, Disk) {
    let fixture = Fixture::new();
    let disk = Disk::mount(fixture.path("disk"), size);
    let (plain, home) = (format!("{:?}", fixture.home()), disk.0.join("home"));
    fs::create_dir(&home).unwrap();
    fixture.configure(&fixture.config_text().replace(&plain, &format!("{home:?}")));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    (fixture, disk)
}

fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = fs::File::create_new(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

#[test]
fn a_home_without_space_refuses_writes_at_once_and_keeps_what_it_acknowledged() {
    let (mut fixture, disk) = with_home_on_disk("16m");
    fixture.serve();
    let block = |number: usize| vec![number as u8; MIB];
    let mut written = 0;
    let refused = loop {
        match write_new(&fixture.mount().join(format!("f{written}")), &block(written)) {
            Ok(()) => written += 1,
            Err(error) => break error,
        }
        assert!(written < 17, "sixteen do not fit");
    };
    assert_eq!(refused.kind(), io::ErrorKind::StorageFull);
    // Four are kept free, and what is being applied counts as waiting until all of it is.
    assert!(written >= 5, "{written}");
    for number in 0..written {
        assert!(fs::read(fixture.mount().join(format!("f{number}"))).unwrap() == block(number));
    }
    for number in [written, 0, 1, 2] {
        fs::remove_file(fixture.mount().join(format!("f{number}"))).unwrap();
    }
    // Space comes back when the home has heard of it.
    let again = fixture.mount().join("again");
    let writable = || fs::write(&again, block(99)).is_ok();
    wait_until(writable, || fixture.status().to_string());
    fixture.holdfast(&["umount", NAME]).succeeded();
    for number in 3..written {
        assert!(fs::read(disk.0.join(format!("home/f{number}"))).unwrap() == block(number));
    }
    assert!(fs::read(disk.0.join("home/again")).unwrap() == block(99));
}

#[test]
fn a_home_that_somebody_else_fills_up_is_reported_and_caught_up_with_when_space_returns() {
    let (mut fixture, disk) = with_home_on_disk("16m");
    fixture.serve();
    let filler = disk.0.join("filler");
    // Acknowledged while there was space, applied when there is none.
    let fill = || fs::write(&filler, vec![0; 64 * MIB]).unwrap_err();
    write_new(&fixture.mount().join("f"), &vec![7; 4 * MIB]).unwrap();
    assert_eq!(fill().kind(), io::ErrorKind::StorageFull);
    let _ = write_new(&fixture.mount().join("g"), &vec![8; MIB]);
    assert!(fs::read(fixture.mount().join("f")).unwrap() == vec![7; 4 * MIB]);
    fs::remove_file(&filler).unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert!(fs::read(disk.0.join("home/f")).unwrap() == vec![7; 4 * MIB]);
}

#[test]
fn a_read_only_home_is_reported_and_caught_up_with_when_it_is_writable_again() {
    let (mut fixture, disk) = with_home_on_disk("16m");
    fixture.serve();
    let file = fixture.mount().join("f");
    disk.set_read_only(true);
    // A volume that has just asked its home takes what follows at once, and learns too late.
    while fs::write(&file, b"acknowledged").is_err() {
        disk.set_read_only(false);
        // It learns just as late that the home takes more again.
        let asks = || fs::write(fixture.mount().join("asked"), b"again").is_ok();
        wait_until(asks, || fixture.status().to_string());
        disk.set_read_only(true);
    }
    let reported = || fixture.status()["last_error"].to_string().contains("Read-only");
    wait_until(reported, || fixture.status().to_string());
    let is_told = || fixture.holdfast(&["status"]).code == Some(7);
    wait_until(is_told, || fixture.status().to_string());
    let text = fixture.holdfast(&["status"]).out;
    assert!(text.contains("the home failed (Read-only file system"), "{text}");
    assert_eq!(fs::read(fixture.mount().join("f")).unwrap(), b"acknowledged");
    disk.set_read_only(false);
    let caught_up = || fixture.status()["last_error"].is_null();
    wait_until(caught_up, || fixture.status().to_string());
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(disk.0.join("home/f")).unwrap(), b"acknowledged");
}

#[test]
fn a_log_disk_without_space_makes_no_log_and_a_second_try_succeeds() {
    let fixture = Fixture::new();
    let disk = Disk::mount(fixture.log(), "5m");
    let words = ["making the log", "No space left", "make space"];
    fixture.holdfast(&["volume", "make", NAME]).expect(1, &words);
    assert_eq!(fs::read_dir(fixture.log()).unwrap().count(), 0, "nothing is left half made");
    fixture.holdfast(&["volume", "check", NAME]).expect(2, &["volume make"]);
    mount_remount(&disk.0, MountFlags::empty(), c"size=64m").unwrap();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
}

#[test]
fn a_read_only_log_disk_is_named() {
    let fixture = Fixture::new();
    let disk = Disk::mount(fixture.log(), "64m");
    disk.set_read_only(true);
    let words = ["making the log", "Read-only", "mount it for writing again"];
    fixture.holdfast(&["volume", "make", NAME]).expect(1, &words);
    disk.set_read_only(false);
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    disk.set_read_only(true);
    // A server notes beside the log whose memory it is to take.
    let doing = if way() == "queue" { "noting the memory" } else { "opening the log" };
    fixture.holdfast(&["serve"]).expect(1, &[doing, "Read-only", "mount it for writing again"]);
    assert!(!fixture.is_mounted());
}

/// A modelled disk that can be torn out, and that can stop answering.
pub(crate) struct SlowDisk {
    mount: PathBuf,
    backing: PathBuf,
    options: Vec<String>,
    process: Child,
}

impl SlowDisk {
    pub(crate) fn start(backing: PathBuf, mount: PathBuf) -> SlowDisk {
        fs::create_dir_all(&backing).unwrap();
        fs::create_dir_all(&mount).unwrap();
        let (process, options) = (SlowDisk::spawn(&backing, &mount, &[]), Vec::new());
        let mut disk = SlowDisk { mount, backing, options, process };
        disk.wait();
        disk
    }

    /// One that can lose its power.
    pub(crate) fn start_mortal(backing: PathBuf, mount: PathBuf) -> SlowDisk {
        let mut disk = SlowDisk::start(backing, mount);
        disk.tear_out();
        disk.options = SlowDisk::mortal(1);
        disk.bring_back();
        disk
    }

    fn mortal(seed: u64) -> Vec<String> {
        let seed = (seed >> 1).to_string();
        ["--mb-per-s", "4", "--power-cut-seed", &seed].map(String::from).to_vec()
    }

    /// Of what was not synced, each sector is there or not, as this says. Then it is back.
    pub(crate) fn lose_power(&mut self, seed: u64) {
        kill(self.process.id().cast_signed(), Signal::USR1);
        self.process.wait().unwrap();
        self.options = SlowDisk::mortal(seed);
        self.bring_back();
    }

    fn spawn(backing: &Path, mount: &Path, options: &[String]) -> Child {
        let turns = ["--rpm", "60000"].into_iter();
        let options: Vec<&str> = turns.chain(options.iter().map(String::as_str)).collect();
        slow_disk::command(backing, mount, &options).spawn().unwrap()
    }

    fn wait(&mut self) {
        let mount = self.mount.to_str().unwrap();
        let table = || fs::read_to_string("/proc/self/mountinfo").unwrap();
        wait_until(|| table().contains(mount), || "the slow disk never came up".into());
    }

    /// From here on nothing below the mount is answered, until [`Self::go_on`].
    pub(crate) fn stop(&self) {
        stop(self.process.id().cast_signed());
    }

    pub(crate) fn go_on(&self) {
        kill(self.process.id().cast_signed(), Signal::CONT);
    }

    /// From here on everything below the mount fails.
    fn tear_out(&mut self) {
        kill(self.process.id().cast_signed(), Signal::KILL);
        self.process.wait().unwrap();
    }

    fn bring_back(&mut self) {
        let _ = unmount(&self.mount, UnmountFlags::DETACH);
        self.process = SlowDisk::spawn(&self.backing, &self.mount, &self.options);
        self.wait();
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = unmount(&self.mount, UnmountFlags::DETACH);
    }
}

/// A volume whose log's disk was torn out under load, and how many lines were acknowledged.
fn torn_out() -> (Fixture, SlowDisk, u64) {
    let mut fixture = Fixture::new();
    let mut disk = SlowDisk::start(fixture.path("backing"), fixture.path("slow"));
    let log = format!("{:?}", fixture.log());
    let on_disk = format!("{:?}", fixture.path("slow/log"));
    fixture.configure(&fixture.config_text().replace(&log, &on_disk));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let acknowledged = load_until_it_fails(&fixture, &mut disk);
    assert!(acknowledged > 100, "{acknowledged}");
    (fixture, disk, acknowledged)
}

/// A MiB that no other is like.
fn noise(number: u64) -> Vec<u8> {
    let mut word = number + 1;
    let mut next = || {
        word ^= word << 13;
        word ^= word >> 7;
        word ^= word << 17;
        word.to_le_bytes()
    };
    (0..MIB / 8).flat_map(|_| next()).collect()
}

/// Writes so many MiB of it, each synced, and again if that failed.
fn write_until_taken(path: &Path, count: u64) {
    let file = fs::File::create(path).unwrap();
    for number in 0..count {
        let (bytes, at) = (noise(number), number * MIB as u64);
        while file.write_all_at(&bytes, at).and_then(|()| file.sync_data()).is_err() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn a_log_disk_without_room_goes_on_with_the_files_it_has_and_the_home_is_not_blamed() {
    const COUNT: u64 = 32;
    let mut fixture = Fixture::new();
    let disk = Disk::mount(fixture.path("small"), "24m");
    let (plain, log) = (format!("{:?}", fixture.log()), disk.0.join("log"));
    let text = fixture.config_text().replace(&plain, &format!("{log:?}"));
    // Everything waits for what stands for the log's disk.
    fixture.configure(&(text + "write_through = true\n"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    let filler = disk.0.join("filler");
    fs::write(&filler, vec![1; 24 * MIB]).unwrap_err();
    let path = fixture.mount().join("f");
    let writer = std::thread::spawn(move || write_until_taken(&path, COUNT));
    let is_done = || {
        let told = fixture.status().to_string();
        assert!(!told.contains("home failed") && !told.contains("it fails"), "{told}");
        writer.is_finished()
    };
    wait_until(is_done, || fixture.status().to_string());
    writer.join().unwrap();
    assert_eq!(fixture.stop(), Some(0));
    fs::remove_file(filler).unwrap();
    let home = fs::read(fixture.home().join("f")).unwrap();
    for number in 0..COUNT as usize {
        let is_there = home[number * MIB..][..MIB] == noise(number as u64);
        assert!(is_there, "MiB {number} is at home");
    }
}

#[test]
fn a_front_end_that_dies_with_its_log_disk_gone_leaves_memory_that_can_be_mended() {
    if way() == "queue" {
        return; // the server has the log, and does not die with the front end
    }
    let (mut fixture, mut disk, acknowledged) = torn_out();
    kill(fixture.front_end(), Signal::KILL);
    fixture.wait_for_state("given up");
    // The drain is tried after the volume was given up.
    let problem = || fixture.status()["problem"].to_string();
    wait_until(|| problem().contains("draining"), problem);
    assert!(problem().contains("holdfast volume mend v"), "{}", problem());
    assert_ne!(fixture.holdfast(&["umount", NAME, "--force"]).code, Some(0));
    assert!(fixture.region.exists() && !fixture.is_mounted());
    disk.bring_back();
    fixture.holdfast(&["volume", "mend", NAME]).succeeded();
    fixture.holdfast(&["mount", NAME]).succeeded();
    assert_eq!(lines_in(&fixture.mount().join("f")), acknowledged);
    assert_eq!(fixture.stop(), Some(0));
    assert_eq!(lines_in(&fixture.home().join("f")), acknowledged);
}

#[test]
fn a_log_disk_that_fails_under_load_loses_nothing_and_the_volume_can_be_mended() {
    let (mut fixture, mut disk, acknowledged) = torn_out();
    let status = fixture.status();
    assert_eq!(status["state"], "poisoned", "{status}");
    assert!(status["unapplied_bytes"].as_u64().unwrap() > 0, "{status}");
    let Ended { code, out: text, .. } = fixture.holdfast(&["status"]);
    assert_eq!(code, Some(7), "{text}");
    for word in ["v: poisoned", "answers EIO, the memory is kept", "volume mend"] {
        assert!(text.contains(word), "no {word:?} in {text}");
    }
    // What was acknowledged can be read, from memory and home.
    assert_eq!(lines_in(&fixture.mount().join("f")), acknowledged);

    fixture.holdfast(&["volume", "mend", NAME]).expect(5, &["is mounted", "umount"]);
    fixture.holdfast(&["umount", NAME]).expect(6, &["memory is kept", "holdfast volume mend v"]);
    fixture.let_log_go();
    assert!(fixture.region.exists());
    // As long as the disk is gone, mending fails and changes nothing.
    assert_ne!(fixture.holdfast(&["volume", "mend", NAME]).code, Some(0));
    disk.bring_back();
    // Nobody is told that it is sound, or takes it up, before it is mended.
    fixture.holdfast(&["volume", "check", NAME]).expect(6, &["disk failed", "volume mend v"]);
    if way() != "queue" {
        fixture.holdfast(&["mount", NAME]).expect(6, &["disk failed", "volume mend v"]);
    }
    let mended = fixture.holdfast(&["volume", "mend", NAME]).succeeded().out;
    assert!(mended.contains("is mended") && mended.contains("holdfast mount v"), "{mended}");
    fixture.take_up();
    assert_eq!(fixture.status()["state"], "serving", "{}", fixture.status());
    assert_eq!(lines_in(&fixture.mount().join("f")), acknowledged);
    write_new(&fixture.mount().join("g"), b"goes on").unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert_eq!(lines_in(&fixture.home().join("f")), acknowledged);
    assert_eq!(fs::read(fixture.home().join("g")).unwrap(), b"goes on");
}

/// Appends numbered lines, each synced; tears the disk out on the way. Returns how many lines were
/// acknowledged before the first error, which must be EIO.
fn load_until_it_fails(fixture: &Fixture, disk: &mut SlowDisk) -> u64 {
    let mut file = fs::File::create(fixture.mount().join("f")).unwrap();
    let mut acknowledged = 0;
    loop {
        let done = file.write_all(line(acknowledged).as_bytes()).and_then(|()| file.sync_data());
        match done {
            Ok(()) => acknowledged += 1,
            Err(error) => {
                assert_eq!(error.raw_os_error(), Some(5), "{error}");
                return acknowledged;
            }
        }
        if acknowledged == 200 {
            disk.tear_out();
        }
    }
}

fn line(number: u64) -> String {
    format!("{number:>999}\n")
}

/// How many whole lines a file has, each in its place. One that was not acknowledged may have
/// begun: from the kernel's cache a write comes page by page.
fn lines_in(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let whole = (text.len() / 1000) as u64;
    let lines: String = (0..=whole).map(line).collect();
    assert!(lines.starts_with(&text), "a hole in {}", path.display());
    whole
}
