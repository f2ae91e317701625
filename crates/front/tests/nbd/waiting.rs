//! Flushes that wait for a device, and requests that do not.

use std::ops::Deref;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use crate::answers::Answer;
use crate::memory::MemoryBlocks;
use crate::messages::{DISCONNECT, FLUSH, FUA, READ, request};
use crate::served::{Client, Disk, Server, write_message};

/// Flushes of a disk wait at it.
#[derive(Default)]
struct Gate {
    state: Mutex<State>,
    moved: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    flushes: usize,
}

/// Longer than what is done at once.
const SLOW: Duration = Duration::from_millis(2);

impl Gate {
    fn close(&self) {
        *self.state.lock().unwrap() = State { is_closed: true, flushes: 0 };
    }

    fn open(&self) {
        self.state.lock().unwrap().is_closed = false;
        self.moved.notify_all();
    }

    fn flushes(&self) -> usize {
        self.state.lock().unwrap().flushes
    }

    fn pass(&self) {
        thread::sleep(SLOW);
        let mut state = self.state.lock().unwrap();
        state.flushes += 1;
        drop(self.moved.wait_while(state, |state| state.is_closed).unwrap());
    }
}

/// A gate that opens when a test ends, however it does: else its server would wait for ever.
struct Opens(Arc<Gate>);

impl Deref for Opens {
    type Target = Arc<Gate>;
    fn deref(&self) -> &Arc<Gate> {
        &self.0
    }
}

impl Drop for Opens {
    fn drop(&mut self) {
        self.0.open();
    }
}

/// A server whose disk is known to be slow, a client, and the disk's gate, which is closed.
fn gated() -> (Server, Client<std::os::unix::net::UnixStream>, Opens) {
    let gate = Arc::<Gate>::default();
    let passed = gate.clone();
    let disk = MemoryBlocks::new(1 << 20, 4096).with_flush(move |_| passed.pass());
    let server = Server::unix(Disk::new(Arc::new(disk)));
    let mut client = server.client(true);
    client.send(&request(FLUSH, 0, 99, 0, 0));
    assert_eq!(client.done(), 99);
    gate.close();
    (server, client, Opens(gate))
}

#[test]
fn a_slow_flush_holds_up_nothing_that_follows_it() {
    let (_server, mut client, gate) = gated();
    client.send(&request(FLUSH, 0, 1, 0, 0));
    client.send(&write_message(2, 0, 0, b"x"));
    assert_eq!(client.done(), 2);
    assert_eq!(client.read(0, 1), b"x");
    gate.open();
    assert_eq!(client.done(), 1);
}

#[test]
fn a_durable_write_is_seen_at_once_and_acknowledged_behind_its_flush() {
    let (_server, mut client, gate) = gated();
    client.send(&write_message(1, FUA, 0, b"x"));
    assert_eq!(client.read(0, 1), b"x");
    // Long reads and the late reply do not get into each other.
    for cookie in 2..20 {
        client.send(&request(READ, 0, cookie, 0, 1 << 20));
    }
    gate.open();
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
    let (_server, mut client, gate) = gated();
    for cookie in 1..=10 {
        client.send(&write_message(cookie, FUA, cookie, b"x"));
    }
    assert_eq!(client.read(0, 1), [0], "all have been heard");
    gate.open();
    let mut cookies: Vec<u64> = (0..10).map(|_| client.done()).collect();
    cookies.sort_unstable();
    assert_eq!(cookies, (1..=10).collect::<Vec<_>>());
    assert!((1..=2).contains(&gate.flushes()), "{} flushes", gate.flushes());
}

#[test]
fn more_waiting_requests_than_are_remembered_are_answered_as_well() {
    let (_server, mut client, gate) = gated();
    let all = 3_000_u64;
    let messages: Vec<u8> = (0..all).flat_map(|cookie| request(FLUSH, 0, cookie, 0, 0)).collect();
    let mut sender = Client::of(client.stream.try_clone().unwrap());
    let sent = thread::spawn(move || sender.send(&messages));
    gate.open();
    let mut cookies: Vec<u64> = (0..all).map(|_| client.done()).collect();
    sent.join().unwrap();
    cookies.sort_unstable();
    assert_eq!(cookies, (0..all).collect::<Vec<_>>());
}

#[test]
fn a_client_that_parts_still_gets_what_it_waits_for() {
    let (_server, mut client, gate) = gated();
    client.send(&request(FLUSH, 0, 1, 0, 0));
    client.send(&request(DISCONNECT, 0, 2, 0, 0));
    gate.open();
    assert_eq!(client.done(), 1);
    assert_eq!(client.hear_the_end(), b"");
}

#[test]
fn a_server_that_stops_waits_for_its_flushes_and_hands_their_replies_on() {
    let (server, mut client, gate) = gated();
    client.send(&request(FLUSH, 0, 1, 0, 0));
    assert_eq!(client.read(0, 1), [0], "it has been heard");
    let opener = thread::spawn({
        let gate = gate.clone();
        move || gate.open()
    });
    let sessions = server.stop();
    opener.join().unwrap();
    assert_eq!(sessions.len(), 1);
    let _next =
        Server::start(Vec::new(), sessions, Disk::in_memory(1 << 20), crate::served::CONFIG);
    assert_eq!(client.done(), 1);
}
