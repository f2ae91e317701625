//! A bit of the memory turns over while a volume serves: what comes home is right, or nobody says
//! that it is complete.

use crate::fixture::{Fixture, NAME};
use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const BYTES: usize = 1 << 20;
/// In how many lives of a volume of each class.
const LIVES: u32 = 3;

/// Another text in each life, none of it twice.
fn text(life: u32) -> Vec<u8> {
    let mut state = u64::from(life) + 1;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    };
    (0..BYTES).map(next).collect()
}

/// Turns a bit over where the region has the middle of these bytes.
fn turn_over(fixture: &Fixture, written: &[u8]) {
    let mut region = File::options().read(true).write(true).open(&fixture.region).unwrap();
    let needle = &written[777_777..777_777 + 64];
    let mut found = Vec::new();
    region.seek(SeekFrom::Start(0)).unwrap();
    region.read_to_end(&mut found).unwrap();
    let at = found.windows(64).position(|it| it == needle).expect("the ring keeps what it had");
    region.write_all_at(&[found[at + 5] ^ 4], (at + 5) as u64).unwrap();
}

/// A file is written and synced, then memory damages it. Whether it came home before that.
fn lived(fixture: &mut Fixture, life: u32) {
    let written = text(life);
    let path = fixture.mount().join(format!("f{life}"));
    fs::write(&path, &written).unwrap();
    File::open(&path).unwrap().sync_all().unwrap();
    turn_over(fixture, &written);
    let deadline = Instant::now() + Duration::from_secs(20);
    let is_right =
        || fs::read(fixture.home().join(format!("f{life}"))).unwrap_or_default() == written;
    while !is_right() && Instant::now() < deadline && !is_told(fixture) {
        std::thread::sleep(Duration::from_millis(20));
    }
    if !is_right() {
        let told = fixture.holdfast(&["status"]);
        assert!(told.out.contains("memory has damaged"), "life {life}: {}", told.out);
        assert_ne!(told.code, Some(0), "{}", told.out);
    }
}

fn is_told(fixture: &Fixture) -> bool {
    fixture.holdfast(&["status"]).out.contains("memory has damaged")
}

#[test]
fn in_class_disk_what_memory_damages_comes_home_from_the_logs_disk_and_is_told() {
    let mut fixture = Fixture::new();
    fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.serve();
    (0..LIVES).for_each(|life| lived(&mut fixture, life));
    let told = fixture.holdfast(&["status"]).out;
    fixture.holdfast(&["umount", NAME]).succeeded();
    for life in 0..LIVES {
        assert!(fs::read(fixture.home().join(format!("f{life}"))).unwrap() == text(life), "{told}");
    }
    assert_eq!(fixture.stop(), Some(0));
}

#[test]
fn in_class_memory_what_memory_damages_never_comes_home_without_a_word() {
    for life in 0..LIVES {
        let mut fixture = Fixture::made();
        fixture.serve();
        lived(&mut fixture, life);
        fixture.kill_all();
    }
}
