//! Hypervisors that take memory away which a device uses.

use std::cell::RefCell;
use std::os::unix::net::UnixStream;
use std::thread;

use holdfast_front::vhost_user::converse;
use holdfast_io::Blocks;

use crate::disks::FileBlocks;
use crate::guest::{Data, Guest, OK, WRITE};
use crate::log;
use crate::requests::{config, disk};
use crate::seeds::{Random, for_seeds};

/// Behind the available ring: less, and a driver that shares a process with its device dies of it.
const RINGS_BYTES: u64 = 0x2000;
const PAGE_BYTES: u64 = 4096;
/// Behind everything that the request below touches.
const TOUCHED_BYTES: u64 = 0x10000 + 512;

/// Takes memory away behind `kept` bytes, then has the device touch it.
fn take_away(guest: &mut Guest, kept: u64) {
    guest.describe(0, WRITE, 0, Data::Given(&[0xdd; 512]));
    guest.shrink_to(kept);
    match kept < RINGS_BYTES {
        true => guest.queues[0].kick(),
        false => guest.publish(0, 0),
    }
}

/// One hypervisor that takes its memory away behind `kept` bytes; its connection ends.
fn attack(disk: &FileBlocks, kept: u64) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let mut bad = Guest::new(1);
    thread::scope(|scope| {
        let served = scope.spawn(|| converse(theirs, disk, &config()));
        bad.connect(ours);
        take_away(&mut bad, kept);
        if kept >= TOUCHED_BYTES {
            assert_eq!(bad.next(0).status, OK, "what it touches is there");
            bad.disconnect();
        }
        served.join().unwrap();
    });
}

#[test]
fn a_frontend_that_takes_its_memory_away_ends_its_own_connection_and_writes_nothing() {
    log::keep();
    let (disk, good) = (disk(), RefCell::new(Guest::new(1)));
    let write = || good.borrow_mut().do_one(WRITE, 0, Data::Given(&[0xee; 512]));
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| converse(theirs, &disk, &config()));
        good.borrow_mut().connect(ours);
        for_seeds("taken_away::a_frontend_that_takes_its_memory_away", 60, |seed| {
            let mut random = Random::new(seed);
            let kept = random.below(2 + TOUCHED_BYTES / PAGE_BYTES) * PAGE_BYTES;
            assert_eq!(write(), OK);
            attack(&disk, kept);
            let mut first = [0; 512];
            disk.read(&mut first, 0).unwrap();
            let expected = if kept >= TOUCHED_BYTES { 0xdd } else { 0xee };
            assert_eq!(first, [expected; 512], "{kept} bytes kept");
            assert_eq!(write(), OK, "the other one is served");
        });
        good.borrow_mut().disconnect();
    });
    assert!(log::count("memory that") > 0, "it stands in the log");
}
