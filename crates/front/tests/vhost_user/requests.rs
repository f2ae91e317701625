//! What a driver asks for, and what it is answered.

use std::os::unix::net::UnixStream;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_front::vhost_user::{VhostUserConfig, converse};
use holdfast_io::Blocks;
use vhost::VhostBackend;
use vhost::vhost_user::VhostUserFrontend;
use vhost::vhost_user::message::VhostUserConfigFlags;

use crate::disks::FileBlocks;
use crate::guest::{
    Answer, DISCARD, Data, FLUSH, GET_ID, Guest, IO_ERROR, OK, PATIENCE, READ, UNSUPPORTED, WRITE,
    WRITE_ZEROES,
};

pub(crate) const DISK_BYTES: u64 = (8 << 20) + 700;
const SECTORS: u64 = DISK_BYTES / 512;

pub(crate) fn config() -> VhostUserConfig {
    VhostUserConfig { name: "a disk with more than twenty letters".into(), queues_max: 4 }
}

pub(crate) fn disk() -> FileBlocks {
    FileBlocks::new(tempfile::tempfile().unwrap(), DISK_BYTES)
}

/// Runs a guest against a device, until the guest is done.
pub(crate) fn with_guest(guest: &mut Guest, blocks: &dyn Blocks, run: impl FnOnce(&mut Guest)) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    thread::scope(|scope| {
        scope.spawn(|| converse(theirs, blocks, &config()));
        let result = catch_unwind(AssertUnwindSafe(|| {
            guest.connect(ours);
            run(guest);
        }));
        // Else the device would wait for a guest that has failed.
        guest.disconnect();
        result.unwrap_or_else(|failure| resume_unwind(failure));
    });
}

#[test]
fn what_is_written_is_read_and_lies_on_the_disk() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        let data: Vec<u8> = (0..8192_u32).map(|at| (at % 251) as u8).collect();
        assert_eq!(guest.do_one(WRITE, 7, Data::Given(&data)), OK);
        let slot = guest.ask(0, READ, 7, Data::Room(8192));
        let answer = guest.next(0);
        assert_eq!((answer.slot, answer.status, answer.bytes), (slot, OK, 8193));
        assert_eq!(guest.given(0, slot, 8192), data);
        let mut there = vec![0; 8192];
        disk.read(&mut there, 7 * 512).unwrap();
        assert_eq!(there, data);
        assert_eq!(guest.do_one(FLUSH, u64::MAX, Data::Room(0)), OK);
        assert_eq!(disk.flushes(), 1);
    });
}

#[test]
fn the_device_says_that_it_has_a_write_cache() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        let config = guest.config(0, 60);
        assert_eq!(config[..8], SECTORS.to_le_bytes());
        assert_eq!(config[20..24], 512_u32.to_le_bytes());
        assert_eq!(config[32], 1, "the write cache is not reported");
        assert_eq!(config[34..36], 4_u16.to_le_bytes());
    });
}

#[test]
fn a_write_is_not_flushed_and_a_flush_is_every_time() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        for round in 1..=5 {
            assert_eq!(guest.do_one(WRITE, round, Data::Given(&[1; 512])), OK);
            assert_eq!(disk.flushes() as u64, round - 1);
            assert_eq!(guest.do_one(FLUSH, 0, Data::Room(0)), OK);
            assert_eq!(disk.flushes() as u64, round);
        }
    });
}

#[test]
fn a_guest_that_switches_the_cache_off_has_every_change_flushed_and_so_has_it_at_the_next_device() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        guest.frontend().set_config(32, VhostUserConfigFlags::WRITABLE, &[0]).unwrap();
        let before = disk.flushes();
        assert_eq!(guest.config(32, 1), [0]);
        assert_eq!(guest.do_one(WRITE, 1, Data::Given(&[1; 512])), OK);
        assert_eq!(disk.flushes(), before + 1);
        assert_eq!(guest.do_one(READ, 1, Data::Room(512)), OK);
        assert_eq!(disk.flushes(), before + 1, "a read was flushed");
    });
    let before = disk.flushes();
    with_guest(&mut guest, &disk, |guest| {
        assert_eq!(guest.config(32, 1), [0]);
        assert_eq!(guest.do_one(DISCARD, 0, Data::Given(&range(0, 1, 0))), OK);
        assert_eq!(disk.flushes(), before + 1);
    });
}

#[test]
fn a_driver_that_cannot_flush_has_every_write_flushed() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    guest.features = 1 << 32;
    with_guest(&mut guest, &disk, |guest| {
        assert_eq!(guest.do_one(WRITE, 1, Data::Given(&[1; 512])), OK);
        assert_eq!(disk.flushes(), 1);
    });
}

#[test]
fn discarded_and_zeroed_ranges_read_as_zeros_and_no_other() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        for kind in [DISCARD, WRITE_ZEROES] {
            assert_eq!(guest.do_one(WRITE, 0, Data::Given(&[9; 8 * 512])), OK);
            let ranges = [range(1, 2, 0), range(5, 1, 0)].concat();
            assert_eq!(guest.do_one(kind, 0, Data::Given(&ranges)), OK);
            let slot = guest.ask(0, READ, 0, Data::Room(8 * 512));
            assert_eq!(guest.next(0).status, OK);
            let sectors = guest.given(0, slot, 8 * 512);
            let zeros: Vec<usize> = (0..8).filter(|at| sectors[at * 512] == 0).collect();
            assert_eq!(zeros, [1, 2, 5]);
        }
    });
}

#[test]
fn a_list_with_one_bad_range_does_nothing() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        assert_eq!(guest.do_one(WRITE, 0, Data::Given(&[9; 512])), OK);
        let bad = [range(SECTORS, 1, 0), range(0, 1, 2), range(u64::MAX, 1, 0)];
        for (bad, status) in bad.iter().zip([IO_ERROR, UNSUPPORTED, IO_ERROR]) {
            let list = [range(0, 1, 0), bad.clone()].concat();
            assert_eq!(guest.do_one(WRITE_ZEROES, 0, Data::Given(&list)), status);
        }
        assert_eq!(guest.do_one(DISCARD, 0, Data::Given(&range(0, 1, 1))), UNSUPPORTED);
        let slot = guest.ask(0, READ, 0, Data::Room(512));
        assert_eq!(guest.next(0).status, OK);
        assert_eq!(guest.given(0, slot, 512), [9; 512]);
    });
}

#[test]
fn the_disk_has_the_first_twenty_bytes_of_its_name() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        let slot = guest.ask(0, GET_ID, 0, Data::Room(20));
        assert_eq!(guest.next(0).status, OK);
        assert_eq!(guest.given(0, slot, 20), b"a disk with more tha");
    });
}

#[test]
fn a_request_that_cannot_be_done_fails_alone() {
    let (mut disk, mut guest) = (disk(), Guest::new(1));
    disk.flaw = Some(100);
    with_guest(&mut guest, &disk, |guest| {
        let full = Data::Given(&[1; 1024]);
        let cases = [
            ("behind the end", READ, SECTORS, Data::Room(512), IO_ERROR),
            ("over the end", WRITE, SECTORS - 1, full, IO_ERROR),
            ("a sector that is no number of bytes", READ, u64::MAX, Data::Room(512), IO_ERROR),
            ("half a sector", READ, 0, Data::Room(100), IO_ERROR),
            ("a sector and a half", WRITE, 0, Data::Given(&[1; 700]), IO_ERROR),
            ("an unknown kind", 77, 0, Data::Room(512), UNSUPPORTED),
            ("no range", DISCARD, 0, Data::Room(0), IO_ERROR),
            ("half a range", DISCARD, 0, Data::Given(&[0; 24]), IO_ERROR),
            ("too many ranges", DISCARD, 0, Data::Given(&[0; 33 * 16]), IO_ERROR),
            ("a broken sector", READ, 99, Data::Room(1024), IO_ERROR),
            ("a broken sector", WRITE, 100, full, IO_ERROR),
            ("the last sector", READ, SECTORS - 1, Data::Room(512), OK),
        ];
        for (name, kind, sector, data, status) in cases {
            assert_eq!(guest.do_one(kind, sector, data), status, "{name}");
            assert_eq!(guest.do_one(WRITE, 5, full), OK, "after {name}");
        }
    });
}

#[test]
fn requests_go_on_while_a_slow_flush_is_waited_for() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        take_long(&disk, guest);
        let closed = disk.gate.close();
        let flush = guest.ask(0, FLUSH, 0, Data::Room(0));
        for sector in 0..100 {
            assert_eq!(guest.do_one(WRITE, sector, Data::Given(&[1; 512])), OK);
        }
        drop(closed);
        assert_eq!(guest.next(0), Answer { slot: flush, status: OK, bytes: 1 });
    });
}

#[test]
fn every_queue_has_all_its_answers() {
    let (disk, mut guest) = (disk(), Guest::new(4));
    with_guest(&mut guest, &disk, |guest| {
        for round in 0..200_u64 {
            for queue in 0..4 {
                let data = [queue as u8 + 1; 512];
                guest.ask(queue, WRITE, round * 4 + queue as u64, Data::Given(&data));
            }
            for queue in 0..4 {
                assert_eq!(guest.next(queue).status, OK);
            }
        }
        let slot = guest.ask(2, READ, 0, Data::Room(128 * 512));
        assert_eq!(guest.next(2).status, OK);
        let sectors = guest.given(2, slot, 128 * 512);
        assert!((0..128).all(|at| sectors[at * 512 + 511] == at as u8 % 4 + 1));
    });
}

#[test]
fn a_guest_without_notification_by_index_and_one_without_features_are_served() {
    for features in [1 << 32 | 1 << 9, 0] {
        let (disk, mut guest) = (disk(), Guest::new(1));
        guest.features = features;
        with_guest(&mut guest, &disk, |guest| {
            for sector in 0..50 {
                assert_eq!(guest.do_one(WRITE, sector, Data::Given(&[1; 512])), OK);
            }
        });
    }
}

/// One flush that takes long, which shows the device that flushes do.
pub(crate) fn take_long(disk: &FileBlocks, guest: &mut Guest) {
    let closed = disk.gate.close();
    guest.ask(0, FLUSH, 0, Data::Room(0));
    closed.wait_for_one();
    thread::sleep(Duration::from_millis(5));
    drop(closed);
    assert_eq!(guest.next(0).status, OK);
}

/// A range of a discard, or of a write of zeros.
fn range(sector: u64, sectors: u32, flags: u32) -> Vec<u8> {
    [&sector.to_le_bytes()[..], &sectors.to_le_bytes(), &flags.to_le_bytes()].concat()
}

#[test]
fn an_answer_of_which_a_device_did_not_tell_any_more_is_told_of_by_the_next() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        guest.ask(0, WRITE, 0, Data::Given(&[1; 512]));
        while guest.queues[0].used_index(&guest.memory) == 0 {
            thread::sleep(Duration::from_millis(1));
        }
        // What the device told is lost, as if it had died before.
        thread::sleep(Duration::from_millis(5));
        guest.is_told(0);
    });
    with_guest(&mut guest, &disk, |guest| {
        let deadline = Instant::now() + PATIENCE;
        while !guest.is_told(0) {
            assert!(Instant::now() < deadline, "not told");
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(guest.next(0).status, OK);
    });
}

#[test]
fn a_device_that_ends_in_good_order_has_answered_what_it_took() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        take_long(&disk, guest);
        let closed = disk.gate.close();
        guest.ask(0, FLUSH, 0, Data::Room(0));
        guest.ask(0, WRITE, 3, Data::Given(&[3; 512]));
        assert_eq!(guest.next(0).status, OK);
        // The flush is under way; the frontend asks where to go on, and opens the gate meanwhile.
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(10));
                drop(closed);
            });
            assert_eq!(guest.frontend().get_vring_base(0).unwrap(), 3);
        });
        assert_eq!(guest.answer(0).map(|answer| answer.status), Some(OK));
        assert_eq!(guest.answer(0), None);
    });
}

#[test]
fn memory_that_comes_and_goes_is_used_and_let_go() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        assert_eq!(guest.do_one(WRITE, 0, Data::Given(&[1; 512])), OK);
        assert!(guest.frontend().get_max_mem_slots().unwrap() >= 8);
        let mut second = guest.region();
        second.guest_phys_addr = 1 << 32;
        second.userspace_addr += 1 << 32;
        guest.frontend().add_mem_region(&second).unwrap();
        assert_eq!(guest.do_one(WRITE, 0, Data::Given(&[2; 512])), OK);
        guest.frontend().remove_mem_region(&second).unwrap();
        assert_eq!(guest.do_one(WRITE, 0, Data::Given(&[3; 512])), OK);
        second.memory_size += 4096;
        guest.frontend().add_mem_region(&second).unwrap_err();
    });
}
