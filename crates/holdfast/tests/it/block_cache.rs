//! Volumes whose home is read through a block cache.

use crate::block::{DISK_BYTES, Loop, disk, with_disk};
use crate::fixture::{Fixture, NAME, kill, wait_until};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use rustix::process::Signal;
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

const BLOCK: u64 = 4096;
/// What these tests use of the disk. The cache has room for all of it.
const USED_BYTES: u64 = 8 << 20;
const USED_BLOCKS: u64 = USED_BYTES / BLOCK;

fn cache_line(fixture: &Fixture) -> String {
    let path = fixture.block_cache();
    format!("block_cache = {{ medium = \"shm\", size = \"16MiB\", path = {path:?} }}\n")
}

/// A volume with a disk for a home and a cache before it.
fn with_cache() -> Fixture {
    let fixture = with_disk();
    fixture.configure(&(fixture.config_text() + &cache_line(&fixture)));
    fixture
}

fn open(fixture: &Fixture) -> File {
    File::options().read(true).write(true).open(disk(fixture)).unwrap()
}

fn read_used(file: &File) -> Vec<u8> {
    let mut bytes = vec![0; USED_BYTES as usize];
    file.read_exact_at(&mut bytes, 0).unwrap();
    bytes
}

/// Blocks that were found in the cache, blocks that were not, bytes it holds.
fn counts(fixture: &Fixture) -> [u64; 3] {
    let status = fixture.status();
    ["hits", "misses", "held_bytes"].map(|key| status["block_cache"][key].as_u64().unwrap())
}

/// Waits until the home has everything: nothing but the log's own marks is left, and stays.
fn settle(fixture: &Fixture) {
    let unapplied_bytes = || fixture.status()["unapplied_bytes"].as_u64().unwrap();
    let settled = || {
        let before = unapplied_bytes();
        thread::sleep(Duration::from_millis(700));
        before < 64 << 10 && unapplied_bytes() == before
    };
    wait_until(settled, || fixture.status().to_string());
}

/// Fails unless all that is used is read, and found in the cache.
#[track_caller]
fn assert_warm(fixture: &Fixture, expected: &[u8]) {
    let [hits, misses, _] = counts(fixture);
    assert!(read_used(&open(fixture)) == expected, "the disk has something else");
    let after = counts(fixture);
    assert_eq!(after[1], misses, "the home was asked");
    assert!(after[0] > hits, "{hits} hits before, {} after", after[0]);
}

/// Kills the front end and waits for the next one.
fn kill_front_end(fixture: &Fixture) {
    let killed = fixture.front_end();
    kill(killed, Signal::KILL);
    let is_replaced = || {
        let status = fixture.status();
        let next = status["front_end_pid"].as_i64().filter(|pid| *pid != i64::from(killed));
        next.is_some() && status["state"] == "serving"
    };
    wait_until(is_replaced, || fixture.status().to_string());
}

/// Kills keeper and front end; what is acknowledged is in memory then.
fn kill_all(fixture: &mut Fixture) {
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("left in memory");
}

/// A small random number generator, so that a failure has a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % bound
    }
}

/// Reads and writes a part of the disk until told to stop; what must be there then.
fn load(file: &File, from: u64, to: u64, seed: u64, stop: &AtomicBool) -> Vec<u8> {
    let mut model = vec![0; (to - from) as usize];
    file.read_exact_at(&mut model, from).unwrap();
    let mut random = Random(seed);
    while !stop.load(Ordering::Relaxed) {
        let offset = random.below(to - from - 40_000);
        let bytes = 1 + random.below(40_000) as usize;
        let range = offset as usize..offset as usize + bytes;
        if random.below(3) == 0 {
            model[range.clone()].fill(random.below(256) as u8);
            file.write_all_at(&model[range], from + offset).unwrap();
        } else {
            let mut found = vec![0; bytes];
            file.read_exact_at(&mut found, from + offset).unwrap();
            assert!(found == model[range], "seed {seed}: {bytes} bytes at {offset} are others");
        }
    }
    model
}

#[test]
fn front_ends_killed_under_load_leave_the_right_bytes_and_a_warm_cache() {
    let mut fixture = with_cache();
    fixture.serve();
    let (file, half, stop) = (open(&fixture), USED_BYTES / 2, AtomicBool::new(false));
    let expected = thread::scope(|scope| {
        let work = [(0, half), (half, USED_BYTES)].map(|(from, to)| {
            let (file, stop) = (&file, &stop);
            scope.spawn(move || load(file, from, to, 5 + from, stop))
        });
        for _ in 0..8 {
            thread::sleep(Duration::from_millis(150));
            kill_front_end(&fixture);
        }
        stop.store(true, Ordering::Relaxed);
        work.map(|thread| thread.join().unwrap()).concat()
    });
    settle(&fixture);
    assert!(read_used(&file) == expected);
    kill_front_end(&fixture);
    assert_warm(&fixture, &expected);
    drop(file);
    kill_all(&mut fixture);
    fixture.serve();
    assert_warm(&fixture, &expected);
    fixture.holdfast(&["umount", NAME]).succeeded();
    fixture.assert_given_back();
    assert!(fs::read(fixture.home()).unwrap()[..USED_BYTES as usize] == expected);
}

/// A volume whose cache has all that is used of the disk, and that.
fn warm() -> (Fixture, Vec<u8>) {
    let mut fixture = with_cache();
    let bytes: Vec<u8> = (0..USED_BYTES).map(|at| (at / 700) as u8).collect();
    File::options().write(true).open(fixture.home()).unwrap().write_all_at(&bytes, 0).unwrap();
    fixture.serve();
    assert!(read_used(&open(&fixture)) == bytes);
    let [hits, misses, held_bytes] = counts(&fixture);
    // The kernel cuts a read where its buffer's pages end, so some blocks are asked for twice.
    assert!(misses >= USED_BLOCKS && hits < 100, "{misses} misses, {hits} hits");
    assert_eq!(held_bytes, USED_BYTES);
    (fixture, bytes)
}

/// Writes two blocks of sevens, and notes them.
fn write_sevens(file: &File, offset: u64, expected: &mut [u8]) {
    file.write_all_at(&[7; 8192], offset).unwrap();
    expected[offset as usize..][..8192].fill(7);
}

#[test]
fn a_disk_that_nobody_changed_while_detached_is_warm_and_a_changed_one_is_read_again() {
    let (mut fixture, mut expected) = warm();
    write_sevens(&open(&fixture), 40_960, &mut expected);
    assert_eq!(fixture.stop(), Some(0));
    assert!(fixture.block_cache().exists(), "the cache stays");
    fixture.serve();
    assert_warm(&fixture, &expected);
    assert_eq!(fixture.stop(), Some(0));
    write_sevens(&File::options().write(true).open(fixture.home()).unwrap(), 8192, &mut expected);
    fixture.serve();
    assert_eq!(counts(&fixture)[2], 0, "nothing of it is believed");
    assert!(read_used(&open(&fixture)) == expected);
}

#[test]
fn a_cache_that_was_left_out_of_the_configuration_for_a_while_is_not_believed() {
    let (mut fixture, mut expected) = warm();
    kill_all(&mut fixture);
    let with_cache = fs::read_to_string(fixture.config()).unwrap();
    fixture.configure(&fixture.config_text());
    fixture.serve();
    write_sevens(&open(&fixture), 40_960, &mut expected);
    settle(&fixture);
    kill_all(&mut fixture);
    fixture.configure(&with_cache);
    fixture.serve();
    assert!(read_used(&open(&fixture)) == expected);
    kill_all(&mut fixture);
    fixture.serve();
    assert_warm(&fixture, &expected);
}

/// A small file system of its own; gone with the test.
struct Disk(PathBuf);

impl Disk {
    fn mount(path: PathBuf) -> Disk {
        fs::create_dir(&path).unwrap();
        mount("tmpfs", &path, "tmpfs", MountFlags::empty(), c"size=80m").unwrap();
        Disk(path)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let _ = unmount(&self.0, UnmountFlags::DETACH);
    }
}

fn make_image(path: &Path, byte: u8) -> u64 {
    let file = File::create(path).unwrap();
    file.set_len(DISK_BYTES).unwrap();
    file.write_all_at(&vec![byte; USED_BYTES as usize], 0).unwrap();
    file.metadata().unwrap().ino()
}

#[test]
fn another_home_with_the_same_inode_number_finds_nothing_of_the_first() {
    let mut fixture = with_cache();
    let (one, other) = (Disk::mount(fixture.path("one")), Disk::mount(fixture.path("other")));
    let (one, other) = (one.0.join("image"), other.0.join("image"));
    assert_eq!(make_image(&one, 1), make_image(&other, 2), "or this shows nothing");
    let own = format!("{:?}", fixture.home());
    let plain = fixture.config_text() + &cache_line(&fixture);
    fixture.configure(&plain.replace(&own, &format!("{one:?}")));
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    fixture.serve();
    assert!(read_used(&open(&fixture)) == vec![1; USED_BYTES as usize]);
    kill_all(&mut fixture);
    fixture.configure(&plain.replace(&own, &format!("{other:?}")));
    // It takes the mount away that the dead left, and goes no further.
    fixture.holdfast(&["umount", NAME]).expect(6, &["is not the home that its log knows"]);
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    fixture.serve();
    assert!(read_used(&open(&fixture)) == vec![2; USED_BYTES as usize]);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_device_takes_its_cache_along_when_it_is_given_back_and_is_warm_after_a_death() {
    let mut fixture = with_cache();
    let device = Loop::over(&fixture.home());
    let own = format!("{:?}", fixture.home());
    let text = fs::read_to_string(fixture.config()).unwrap();
    fixture.configure(&text.replacen(&own, &format!("{:?}", device.device), 1));
    fixture.holdfast(&["volume", "accept", NAME, "--home"]).succeeded();
    fixture.serve();
    let mut expected = vec![0; USED_BYTES as usize];
    assert!(read_used(&open(&fixture)) == expected);
    write_sevens(&open(&fixture), 40_960, &mut expected);
    kill_all(&mut fixture);
    fixture.serve();
    assert_warm(&fixture, &expected);
    assert_eq!(fixture.stop(), Some(0));
    assert!(!fixture.block_cache().exists(), "nobody could find it warm");
    write_sevens(&File::options().write(true).open(&device.device).unwrap(), 8192, &mut expected);
    fixture.serve();
    assert!(read_used(&open(&fixture)) == expected);
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn a_cache_of_another_size_a_damaged_one_and_an_older_logs_give_way() {
    let (mut fixture, expected) = warm();
    let text = fs::read_to_string(fixture.config()).unwrap();
    assert_eq!(fixture.stop(), Some(0));
    fixture.configure(&text.replace("16MiB", "32MiB"));
    fixture.serve();
    assert!(read_used(&open(&fixture)) == expected);
    assert_eq!(fixture.status()["block_cache"]["size_bytes"], 32 << 20);
    assert_eq!(fixture.stop(), Some(0));
    // Its header lies behind superblock, control page and roster.
    let region = File::options().write(true).open(fixture.block_cache()).unwrap();
    region.write_all_at(&[0xff; 64], 3 * 4096).unwrap();
    fixture.serve();
    assert!(read_used(&open(&fixture)) == expected);
    assert_eq!(fixture.stop(), Some(0));
    fs::remove_dir_all(fixture.log()).unwrap();
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    assert!(!fixture.block_cache().exists(), "it was the removed log's");
    fixture.serve();
    assert!(read_used(&open(&fixture)) == expected);
}

#[test]
fn what_is_no_cache_of_the_volume_is_left_alone_and_named() {
    let mut fixture = with_cache();
    let path = fixture.block_cache();
    fs::write(&path, vec![0x5a; 20_000]).unwrap();
    let name = path.to_str().unwrap().to_owned();
    fixture.holdfast(&["serve"]).expect(2, &["block cache", &name, "correct block_cache"]);
    assert_eq!(fs::read(&path).unwrap(), vec![0x5a; 20_000]);
    fs::remove_file(&path).unwrap();
    // The memory of another volume's log.
    let mut other = Fixture::left_in_memory();
    fs::rename(&other.region, &path).unwrap();
    fixture.holdfast(&["serve"]).expect(2, &["holds no cache", "correct block_cache.path"]);
    fs::rename(&path, &other.region).unwrap();
    other.serve();
    assert_eq!(fs::read(other.mount().join("f")).unwrap(), b"x");
    fixture.serve();
}

#[test]
fn a_directory_has_no_blocks_to_cache() {
    let fixture = Fixture::new();
    fixture.configure(&(fixture.config_text() + &cache_line(&fixture)));
    let words = ["block cache", "is a directory", "name a file or a block device as home"];
    fixture.holdfast(&["volume", "make", NAME]).expect(2, &words);
    fixture.configure(&fixture.config_text());
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.configure(&(fixture.config_text() + &cache_line(&fixture)));
    fixture.holdfast(&["serve"]).expect(2, &words);
    assert!(!fixture.block_cache().exists());
}

#[test]
fn status_says_how_much_is_clean_and_how_much_was_found() {
    let (fixture, expected) = warm();
    assert_warm(&fixture, &expected);
    let cache: Value = fixture.status()["block_cache"].clone();
    let ratio = cache["hit_ratio"].as_f64().unwrap();
    assert!(0.3 < ratio && ratio < 0.7, "{cache}");
    assert_eq!(cache["size_bytes"], 16 << 20);
    assert_eq!(cache["medium"], "shm");
    assert_eq!(cache["damaged"], 0);
    let text = fixture.holdfast(&["status"]).succeeded().out;
    assert!(text.contains("block cache  8.0 MiB of at most 16.0 MiB; "), "{text}");
    assert!(text.contains("blocks were found"), "{text}");
    assert!(text.contains("% of what the memory has room for"), "{text}");
}
