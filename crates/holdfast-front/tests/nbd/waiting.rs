//! Flushes that wait for a device, and requests that do not.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use holdfast_io::{Blocks, BlocksError};

use crate::answers::Answer;
use crate::memory::MemoryBlocks;
use crate::messages::{DISCONNECT, FLUSH, FUA, READ, request};
use crate::served::{Client, Disk, Server, write_message};

/// A disk whose flush waits at a gate.
struct Gated {
    disk: MemoryBlocks,
    gate: Mutex<Gate>,
    moved: Condvar,
}

#[derive(Default)]
struct Gate {
    is_closed: bool,
    flushes: usize,
}

/// Longer than what is done at once.
const SLOW: Duration = Duration::from_millis(2);

impl Gated {
    fn new() -> Arc<Gated> {
        let disk = MemoryBlocks::new(1 << 20, 4096);
        Arc::new(Gated { disk, gate: Mutex::default(), moved: Condvar::new() })
    }

    fn close(&self) {
        *self.gate.lock().unwrap() = Gate { is_closed: true, flushes: 0 };
    }

    fn open(&self) {
        self.gate.lock().unwrap().is_closed = false;
        self.moved.notify_all();
    }

    fn flushes(&self) -> usize {
        self.gate.lock().unwrap().flushes
    }
}

impl Blocks for Gated {
    fn size_bytes(&self) -> u64 {
        self.disk.size_bytes()
    }
    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.disk.read(into, offset)
    }
    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.disk.write(from, offset)
    }
    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.disk.write_zeroes(offset, bytes)
    }
    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.disk.discard(offset, bytes)
    }
    fn flush(&self) -> Result<(), BlocksError> {
        thread::sleep(SLOW);
        let mut gate = self.gate.lock().unwrap();
        gate.flushes += 1;
        drop(self.moved.wait_while(gate, |gate| gate.is_closed).unwrap());
        Ok(())
    }
    fn atomic_bytes_max(&self) -> usize {
        self.disk.atomic_bytes_max()
    }
}

/// A gate that opens when a test ends, however it does: else its server would wait for ever.
struct Opens(Arc<Gated>);

impl Deref for Opens {
    type Target = Arc<Gated>;
    fn deref(&self) -> &Arc<Gated> {
        &self.0
    }
}

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A server whose disk is known to be slow, a client, and the disk with its gate closed.
fn gated() -> (Server, Client<std::os::unix::net::UnixStream>, Opens) {
    let disk = Gated::new();
    let server = Server::unix(Disk::new(disk.clone()));
    let mut client = server.client(true);
    client.send(&request(FLUSH, 0, 99, 0, 0));
    assert_eq!(client.done(), 99);
    disk.close();
    (server, client, Opens(disk))
}

#[test]
fn a_slow_flush_holds_up_nothing_that_follows_it() {
    let (_server, mut client, disk) = gated();
    client.send(&request(FLUSH, 0, 1, 0, 0));
    client.send(&write_message(2, 0, 0, b"x"));
    assert_eq!(client.done(), 2);
    assert_eq!(client.read(0, 1), b"x");
    disk.open();
    assert_eq!(client.done(), 1);
}

#[test]
fn a_durable_write_is_seen_at_once_and_acknowledged_behind_its_flush() {
    let (_server, mut client, disk) = gated();
    client.send(&write_message(1, FUA, 0, b"x"));
    assert_eq!(client.read(0, 1), b"x");
    // Long reads and the late reply do not get into each other.
    for cookie in 2..20 {
        client.send(&request(READ, 0, cookie, 0, 1 << 20));
    }
    disk.open();
    let mut cookies: Vec<u64> = Vec::new();
    while cookies.len() < 19 {
        let answer = client.answer();
        if matches!(answer, Answer::Simple { .. } | Answer::Chunk { is_last: true, .. }) {
            cookies.push(answer.cookie());
        }
    }
    cookies.sort_unstable();
    assert_eq!(cookies, (1..20).collect::<Vec<_>>());
}

#[test]
fn requests_that_wait_share_a_flush() {
    let (_server, mut client, disk) = gated();
    for cookie in 1..=10 {
        client.send(&write_message(cookie, FUA, cookie, b"x"));
    }
    assert_eq!(client.read(0, 1), [0], "all have been heard");
    disk.open();
    let mut cookies: Vec<u64> = (0..10).map(|_| client.done()).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (1..=10).collect::<Vec<_>>());
    assert!((1..=2).contains(&disk.flushes()), "{} flushes", disk.flushes());
}

#[test]
fn more_waiting_requests_than_are_remembered_are_answered_as_well() {
    let (_server, mut client, disk) = gated();
    let all = 3_000_u64;
    let messages: Vec<u8> = (0..all).flat_map(|cookie| request(FLUSH, 0, cookie, 0, 0)).collect();
    let mut sender = Client::of(client.stream.try_clone().unwrap());
    let sent = thread::spawn(move || sender.send(&messages));
    disk.open();
    let mut cookies: Vec<u64> = (0..all).map(|_| client.done()).collect();
    sent.join().unwrap();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..all).collect::<Vec<_>>());
}

#[test]
fn a_client_that_parts_still_gets_what_it_waits_for() {
    let (_server, mut client, disk) = gated();
    client.send(&request(FLUSH, 0, 1, 0, 0));
    client.send(&request(DISCONNECT, 0, 2, 0, 0));
    disk.open();
    assert_eq!(client.done(), 1);
    assert_eq!(client.hear_the_end(), b"");
}

#[test]
fn a_server_that_stops_waits_for_its_flushes_and_hands_their_replies_on() {
    let (server, mut client, disk) = gated();
    client.send(&request(FLUSH, 0, 1, 0, 0));
    assert_eq!(client.read(0, 1), [0], "it has been heard");
    let opener = thread::spawn({
        let disk = disk.clone();
        move || disk.open()
    });
    let sessions = server.stop();
    opener.join().unwrap();
    assert_eq!(sessions.len(), 1);
    let _next = Server::start(Vec::new(), sessions, Disk::new(disk.clone()), crate::served::CONFIG);
    assert_eq!(client.done(), 1);
}
