//! Disks that are full while nothing on them comes free: a small ext4 of its own, of which a filler
//! has what is left.

use crate::block::Loop;
use crate::fixture::{Ended, Fixture, NAME, wait_until};
use holdfast_store::{CommitError, Config, Durability, Store};
use std::fs::{self, File, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

const MIB: usize = 1 << 20;

/// An ext4 of this size in a file of the fixture's; it goes before the fixture does.
struct Small {
    _device: Loop,
    point: PathBuf,
}

impl Small {
    fn new(fixture: &Fixture, mib: usize) -> Small {
        let (image, point) = (fixture.path("image"), fixture.path("small"));
        File::create(&image).unwrap().set_len((mib * MIB) as u64).unwrap();
        let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(&image).status().unwrap();
        assert!(made.success());
        let mut device = Loop::over(&image);
        device.mount(point.clone());
        Small { _device: device, point }
    }

    fn filler(&self) -> PathBuf {
        self.point.join("filler")
    }

    /// Takes what is free, to the last block.
    fn fill(&self) {
        let mut file = File::options().create(true).append(true).open(self.filler()).unwrap();
        for bytes in [MIB, 4096, 512] {
            while let Ok(written) = file.write(&vec![1; bytes]) {
                assert!(written > 0);
            }
        }
        let full = file.write_all(&[1; 4096]).unwrap_err();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
    }

    fn make_room(&self) {
        fs::remove_file(self.filler()).unwrap();
    }
}

/// A volume, made but not served, whose log has such a disk for itself, and where that log is.
fn log_on_a_small_disk(fixture: &mut Fixture) -> (Small, PathBuf) {
    let small = Small::new(fixture, 96);
    let log = small.point.join("log");
    fixture.reconfigure(&format!("{:?}", fixture.log()), &format!("{log:?}"));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    (small, log)
}

fn noise(number: u64) -> Vec<u8> {
    let mut word = number + 1;
    let mut next = || {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (word >> 33) as u8
    };
    (0..MIB).map(|_| next()).collect()
}

/// Memory is larger than the log was made for, and the home takes nothing, so the log needs more
/// files than it has and none comes free.
#[test]
fn a_log_whose_disk_is_full_says_where_to_make_room_and_goes_on_by_itself_when_there_is_some() {
    let mut fixture = Fixture::new();
    let (small, log) = log_on_a_small_disk(&mut fixture);
    let text = fs::read_to_string(fixture.config()).unwrap();
    fixture.configure(&text.replace("8MiB", "64MiB"));
    fixture.serve();
    let (mount, home) = (fixture.mount(), fixture.home());
    let told = || fixture.status().to_string();
    fs::create_dir(mount.join("d")).unwrap();
    fs::write(mount.join("d/f"), "old").unwrap();
    wait_until(|| fs::read(home.join("d/f")).is_ok_and(|bytes| bytes == b"old"), told);
    wait_until(|| fixture.status()["unapplied_bytes"].as_u64() < Some(65536), told);
    fs::rename(home.join("d"), home.join("away")).unwrap();
    fs::set_permissions(mount.join("d/f"), Permissions::from_mode(0o600)).unwrap();
    wait_until(|| fixture.status()["stuck"].is_string(), told);
    small.fill();
    let file = |number: u64| format!("n{number}");
    (0..24).for_each(|number| fs::write(mount.join(file(number)), noise(number)).unwrap());
    let words = ["takes no more (No space left on device", "make space on the file system of"];
    let says = |text: &str| words.iter().all(|word| text.contains(word));
    wait_until(|| says(&fixture.status()["last_error"].to_string()), told);
    assert!(fixture.status()["last_error"].to_string().contains(log.to_str().unwrap()));
    let ended = || fixture.holdfast(&["status"]);
    let is_told = |it: Ended| it.code == Some(7) && it.out.contains("the log's disk takes no more");
    wait_until(|| is_told(ended()), || format!("{:?}", ended()));
    small.make_room();
    wait_until(|| !says(&fixture.status()["last_error"].to_string()), told);
    fs::rename(home.join("away"), home.join("d")).unwrap();
    fixture.holdfast(&["umount", NAME]).succeeded();
    let found = fs::metadata(home.join("d/f")).unwrap().permissions().mode();
    assert_eq!(found & 0o777, 0o600);
    (0..24).for_each(|number| assert!(fs::read(home.join(file(number))).unwrap() == noise(number)));
    fixture.let_log_go();
}

/// What the cleaner is stuck at, the order to go on and the record itself have room beside the log.
#[test]
fn what_the_home_never_takes_is_put_aside_although_the_logs_disk_is_full() {
    let mut fixture = Fixture::new();
    let (small, _) = log_on_a_small_disk(&mut fixture);
    fixture.serve();
    let (mount, home) = (fixture.mount(), fixture.home());
    let told = || fixture.status().to_string();
    fs::create_dir(mount.join("d")).unwrap();
    let has = |name: &str, wanted: &[u8]| fs::read(home.join(name)).is_ok_and(|it| it == wanted);
    for round in 0..3 {
        let old = noise(round);
        fs::write(mount.join("d/f"), &old).unwrap();
        wait_until(|| has("d/f", &old), told);
        wait_until(|| fixture.status()["unapplied_bytes"].as_u64() < Some(65536), told);
        small.fill();
        fs::rename(home.join("d"), home.join("away")).unwrap();
        fs::set_permissions(mount.join("d/f"), Permissions::from_mode(0o600)).unwrap();
        let other = format!("other{round}");
        fs::write(mount.join(&other), "later").unwrap();
        wait_until(|| fixture.status()["stuck"].is_string(), told);
        let goes_on = || {
            if fixture.status()["stuck"].is_string() {
                fixture.holdfast(&["volume", "skip", NAME]).succeeded();
            }
            has(&other, b"later")
        };
        wait_until(goes_on, told);
        let aside = fixture.holdfast(&["volume", "aside", NAME]).succeeded().out;
        assert!(aside.contains("d/f"), "{aside}");
        fs::rename(home.join("away"), home.join("d")).unwrap();
        small.make_room();
        let has_room = || fixture.status()["put_aside"].as_u64() > Some(round);
        wait_until(has_room, told);
        fixture.holdfast(&["umount", NAME]).succeeded();
        fixture.holdfast(&["mount", NAME]).succeeded();
    }
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.let_log_go();
}

/// Whoever attaches it or gives it back has something to note beside the log.
#[test]
fn a_volume_whose_logs_disk_is_full_is_attached_after_a_kill_and_given_back() {
    let mut fixture = Fixture::new();
    let (small, _) = log_on_a_small_disk(&mut fixture);
    fixture.serve();
    let file = |number: u64| format!("n{number}");
    (0..20).for_each(|it| fs::write(fixture.mount().join(file(it)), [7; 5000]).unwrap());
    small.fill();
    fixture.kill_all();
    fixture.take_mounts_away();
    fixture.serve();
    (0..20).for_each(|it| assert_eq!(fs::read(fixture.mount().join(file(it))).unwrap(), [7; 5000]));
    fixture.holdfast(&["umount", NAME]).succeeded();
    (0..20).for_each(|it| assert_eq!(fs::read(fixture.home().join(file(it))).unwrap(), [7; 5000]));
    fixture.holdfast(&["mount", NAME]).succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
    small.make_room();
    fixture.let_log_go();
}

fn key(number: u32) -> [u8; 4] {
    number.to_be_bytes()
}

fn has(place: &Path, count: u32) -> bool {
    let (store, _) = Store::open(place, &Config::default()).unwrap();
    let tree = store.tree("main").unwrap();
    let mut reading = store.begin();
    let found =
        (0..count).all(|number| reading.get(&tree, &key(number)).unwrap() == Some(vec![7; 2000]));
    drop(reading);
    store.close().unwrap();
    found
}

#[test]
fn a_store_on_a_full_disk_says_what_is_committed_and_not_durable_and_loses_nothing_of_it() {
    let fixture = Fixture::new();
    let small = Small::new(&fixture, 128);
    let place = small.point.join("store");
    let (store, _) = Store::open(&place, &Config::default()).unwrap();
    let tree = store.tree("main").unwrap();
    let put = |number: u32| {
        let mut one = store.begin();
        one.put(&tree, &key(number), &[7; 2000]).unwrap();
        one.commit(Durability::Disk)
    };
    put(0).unwrap();
    small.fill();
    let (last, refused) = (1..100_000).find_map(|it| put(it).err().map(|why| (it, why))).unwrap();
    assert!(matches!(refused, CommitError::NotDurable(_)), "{refused:?}");
    let text = refused.to_string();
    assert!(text.contains("then sync") && text.contains("No space left"), "{text}");
    small.make_room();
    // Whoever waits while the disk is found full for the last time hears of that.
    let is_synced = || store.sync().is_ok();
    wait_until(is_synced, || "there is room".to_owned());
    put(last + 1).unwrap();
    drop(store);
    assert!(has(&place, last + 2));
}

#[test]
fn a_home_is_not_kept_while_there_is_no_room_for_a_second_log_and_all_stays_as_it_was() {
    let mut fixture = Fixture::new();
    let (small, log) = log_on_a_small_disk(&mut fixture);
    fixture.serve();
    fixture.kill_all_after(|mount| fs::write(mount.join("f"), "kept").unwrap());
    small.fill();
    let beside = |path: &Path| {
        let start = path.to_str().unwrap().to_owned();
        let all = fs::read_dir(path.parent().unwrap()).unwrap().map(|it| it.unwrap().path());
        let mut all: Vec<_> = all.filter(|it| it.to_str().unwrap().starts_with(&start)).collect();
        all.sort();
        all
    };
    let keep = |side| fixture.holdfast(&["volume", "accept", NAME, "--keep", side]);
    let (was, ino) = (beside(&log), fs::metadata(&log).unwrap().ino());
    let memory = fs::read(&fixture.region).unwrap();
    keep("home").expect(1, &["No space left", "nothing was changed"]);
    assert_eq!((beside(&log), fs::metadata(&log).unwrap().ino()), (was, ino));
    assert_eq!(beside(&fixture.region), [fixture.region.clone()]);
    assert!(fs::read(&fixture.region).unwrap() == memory, "memory is as it was");
    // The other choice is still there, and so is this one.
    keep("log").succeeded();
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"kept");
    small.make_room();
    keep("home").succeeded();
    fixture.holdfast(&["volume", "check", NAME]).succeeded();
}
