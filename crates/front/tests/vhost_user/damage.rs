//! Guests and frontends that do not keep to the protocol.

use std::io::Write;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use holdfast_front::vhost_user::{converse, serve};
use vm_memory::{Bytes, GuestAddress};

use crate::disks::FileBlocks;
use crate::guest::{Data, Descriptor, FLUSH, Guest, MEMORY_BYTES, OK, PATIENCE, QUEUE_SIZE, WRITE};
use crate::log;
use crate::requests::{config, disk, take_long, with_guest};

const NEXT: u16 = 1;
const WRITABLE: u16 = 2;
const INDIRECT: u16 = 4;

/// The first queue breaks with a line that says `why`; the second one goes on.
fn breaks(why: &str, damage: impl FnOnce(&mut Guest)) {
    breaks_on(&disk(), why, damage);
}

/// The same; what `damage` gives is kept until the queue has found the damage.
fn breaks_on<T>(disk: &FileBlocks, why: &str, damage: impl FnOnce(&mut Guest) -> T) {
    log::keep();
    let mut guest = Guest::new(2);
    let line = format!("queue 0 stops: {why}");
    let before = log::count(&line);
    with_guest(&mut guest, disk, |guest| {
        let kept = damage(guest);
        until("a line that says why", || log::count(&line) > before);
        drop(kept);
        until("the end of the queue", || guest.queues[0].error.read().is_ok());
        guest.ask(1, WRITE, 0, Data::Given(&[1; 512]));
        assert_eq!(guest.next(1).status, OK);
    });
}

fn until(what: &str, mut is_there: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_there() {
        assert!(Instant::now() < deadline, "not there: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_damaged_chain_stops_its_queue_and_no_other() {
    let header = 0x4000;
    let whole = |next| (header, 16, NEXT, next);
    let cases: [(&str, u16, &[Descriptor]); 13] = [
        ("a head outside the table: 64", QUEUE_SIZE, &[]),
        ("a descriptor outside its table", 0, &[whole(QUEUE_SIZE)]),
        ("a chain of descriptors without an end", 0, &[whole(0)]),
        ("a chain of descriptors without an end", 0, &[whole(1), whole(0)]),
        ("an address outside the guest's memory", 0, &[(MEMORY_BYTES - 8, 16, 0, 0)]),
        ("an address outside the guest's memory", 0, &[(u64::MAX - 7, 16, 0, 0)]),
        ("an address outside the guest's memory", 0, &[whole(1), (0, u32::MAX, WRITABLE, 0)]),
        ("descriptors in a wrong order", 0, &[(header, 16, NEXT | WRITABLE, 1), whole(2)]),
        ("a request without room for an answer", 0, &[(header, 16, 0, 0)]),
        ("a request without room for an answer", 0, &[whole(1), (header, 0, WRITABLE, 0)]),
        ("a wrong indirect table", 0, &[(header, 15, INDIRECT, 0)]),
        ("a wrong indirect table", 0, &[(header, 32, INDIRECT | NEXT, 1)]),
        ("a wrong indirect table", 0, &[(0, 16, INDIRECT, 0)]),
    ];
    for (why, head, descriptors) in cases {
        breaks(why, |guest| {
            for (index, descriptor) in descriptors.iter().enumerate() {
                guest.queues[0].descriptor(&guest.memory, index, *descriptor);
            }
            guest.queues[0].publish(&guest.memory, head);
        });
    }
}

#[test]
fn an_index_that_runs_ahead_stops_its_queue() {
    breaks("an available ring with a wrong index", |guest| {
        guest.queues[0].available += QUEUE_SIZE + 1;
        guest.queues[0].publish(&guest.memory, 0);
    });
}

#[test]
fn a_head_that_is_given_twice_stops_its_queue() {
    let disk = disk();
    breaks_on(&disk, "a head that waits for its answer already: 3", |guest| {
        take_long(&disk, guest);
        let closed = disk.gate.close();
        let first = guest.ask(0, FLUSH, 0, Data::Room(0));
        let second = guest.ask(0, FLUSH, 0, Data::Room(0));
        assert_eq!((first, second), (0, 1));
        guest.queues[0].publish(&guest.memory, 3);
        closed
    });
}

#[test]
fn indirect_tables_are_followed() {
    let (disk, mut guest) = (disk(), Guest::new(1));
    with_guest(&mut guest, &disk, |guest| {
        // The request that would stand in the table stands in another one.
        let queue = &guest.queues[0];
        let table = GuestAddress(0x6000);
        let header = queue.header_at(0).0;
        let entries: [Descriptor; 3] = [
            (header, 16, NEXT, 2),
            (header + 16, 1, WRITABLE, 0),
            (queue.data_at(0).0, 512, NEXT | WRITABLE, 1),
        ];
        for (index, (address, bytes, flags, next)) in entries.into_iter().enumerate() {
            let at = |offset| GuestAddress(table.0 + index as u64 * 16 + offset);
            guest.memory.write_obj(address, at(0)).unwrap();
            guest.memory.write_obj(bytes, at(8)).unwrap();
            guest.memory.write_obj(flags, at(12)).unwrap();
            guest.memory.write_obj(next, at(14)).unwrap();
        }
        guest.memory.write_slice(&[0; 16], GuestAddress(header)).unwrap();
        queue.descriptor(&guest.memory, 0, (table.0, 48, INDIRECT, 0));
        guest.queues[0].is_waiting[0] = true;
        guest.queues[0].publish(&guest.memory, 0);
        let answer = guest.next(0);
        assert_eq!((answer.slot, answer.status, answer.bytes), (0, OK, 513));
    });
}

#[test]
fn a_frontend_that_sends_rubbish_loses_its_connection_and_the_next_is_served() {
    log::keep();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("socket");
    let listener = UnixListener::bind(&path).unwrap();
    let (disk, stop) = (disk(), AtomicBool::new(false));
    let before = log::count("the connection ends: invalid message");
    thread::scope(|scope| {
        scope.spawn(|| serve(listener, &disk, &config(), &stop).unwrap());
        let mut bad = UnixStream::connect(&path).unwrap();
        bad.write_all(&[0xff; 64]).unwrap();
        let mut guest = Guest::new(1);
        guest.connect(UnixStream::connect(&path).unwrap());
        assert_eq!(guest.do_one(WRITE, 0, Data::Given(&[1; 512])), OK);
        assert!(log::count("the connection ends: invalid message") > before);
        // It is connected still, which keeps nobody from ending.
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn a_guest_that_dies_in_the_middle_of_a_request_loses_nothing_that_was_answered() {
    let disk: FileBlocks = disk();
    for round in 0..20_u64 {
        let mut guest = Guest::new(1);
        let (ours, theirs) = UnixStream::pair().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| converse(theirs, &disk, &config()));
            guest.connect(ours);
            let data = [round as u8 + 1; 512];
            assert_eq!(guest.do_one(WRITE, round, Data::Given(&data)), OK);
            for _ in 0..round {
                guest.ask(0, WRITE, 1000 + round, Data::Given(&data));
            }
            guest.disconnect();
        });
    }
    let mut there = vec![0; 20 * 512];
    holdfast_io::Blocks::read(&disk, &mut there, 0).unwrap();
    assert!((0..20).all(|round| there[round * 512] == round as u8 + 1));
}
