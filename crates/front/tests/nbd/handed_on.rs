//! Connections that are served by one server after another, and clients that do not notice.

use std::collections::HashMap;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use holdfast_front::nbd::{Listener, Session};

use crate::answers::{self, Answer};
use crate::memory::MemoryBlocks;
use crate::messages::{
    BLOCK_STATUS, FUA, LIST, READ, SET_CONTEXTS, STRUCTURED_REPLY, contexts, hello, info, option,
    request,
};
use crate::random::{Random, for_seeds};
use crate::served::{CONFIG, Client, Disk, Server, write_message};

const SIZE: usize = 3 << 20;

/// Servers that follow each other.
const SERVERS: usize = 40;

/// What another process would get: descriptors and bytes.
fn carried(sessions: Vec<Session>) -> Vec<Session> {
    let carry = |session: Session| {
        let (socket, bytes) = session.into_parts();
        Session::adopt(socket, &bytes).unwrap()
    };
    sessions.into_iter().map(carry).collect()
}

fn next_server(server: Server, disks: &[Disk]) -> Server {
    let sessions = carried(server.stop());
    Server::start(Vec::new(), sessions, disks.to_vec(), CONFIG)
}

/// Random requests, several under way, whose answers are compared with a copy of the disk.
fn work(mut client: Client<UnixStream>, mut random: Random, done: &AtomicBool) {
    let mut model = vec![0_u8; SIZE];
    while !done.load(Ordering::Relaxed) {
        let mut messages = Vec::new();
        let mut expected = HashMap::new();
        for cookie in 0..1 + random.below(12) {
            let bytes = [9, 4096, 90_000, 1_100_000][random.below(4) as usize];
            let offset = random.below((SIZE - bytes) as u64) as usize;
            let range = &mut model[offset..offset + bytes];
            if random.below(2) == 0 {
                range.fill(random.next() as u8);
                let flags = if random.below(2) == 0 { FUA } else { 0 };
                messages.extend(write_message(cookie, flags, offset as u64, range));
                expected.insert(cookie, Some(Vec::new()));
            } else {
                messages.extend(request(READ, 0, cookie, offset as u64, bytes as u32));
                expected.insert(cookie, Some(range.to_vec()));
            }
        }
        let mut sender = Client::of(client.stream.try_clone().unwrap());
        let sent = thread::spawn(move || sender.send(&messages));
        // What is to be durable may be answered behind what follows it.
        while expected.values().any(Option::is_some) {
            let answer = client.answer();
            let waiting = expected.get_mut(&answer.cookie()).and_then(Option::as_mut).unwrap();
            let is_last = match &answer {
                Answer::Simple { error: 0, .. } => waiting.is_empty(),
                Answer::Chunk { is_last, kind: 1, payload, .. } => {
                    assert!(payload[8..] == *waiting, "a read sees what was written before it");
                    *is_last
                }
                Answer::Chunk { is_last: true, kind: 0, .. } => true,
                other => panic!("{other:?}"),
            };
            if is_last {
                expected.insert(answer.cookie(), None);
            }
        }
        sent.join().unwrap();
    }
}

#[test]
fn clients_under_load_do_not_notice_that_servers_follow_each_other() {
    let [mut copied, mut sent] = Disk::of_every_kind(SIZE);
    // A disk for each client, so that each knows what it has to read.
    let done = Arc::new(AtomicBool::new(false));
    let serve = |(disk, seed): (Disk, u64)| {
        let (near, far) = UnixStream::pair().unwrap();
        let sessions = vec![Session::new(far.into())];
        let server = Server::start(Vec::new(), sessions, vec![disk.clone()], CONFIG);
        let (client, done) = (Client::open(near, true), done.clone());
        let client = thread::spawn(move || work(client, Random::seeded(seed), &done));
        (disk, server, client)
    };
    let mut served: Vec<_> =
        [(copied.remove(0), 1), (sent.remove(0), 2)].into_iter().map(serve).collect();
    let mut random = Random::seeded(3);
    for _ in 0..SERVERS {
        thread::sleep(Duration::from_micros(random.below(4_000)));
        let next = |(disk, server, client)| {
            let server = next_server(server, std::slice::from_ref(&disk));
            (disk, server, client)
        };
        served = served.into_iter().map(next).collect();
    }
    done.store(true, Ordering::Relaxed);
    for (_, _server, client) in served {
        client.join().unwrap();
    }
}

#[test]
fn a_conversation_goes_on_wherever_it_was_handed_on() {
    for_seeds("a_conversation_goes_on", 8, |random| {
        let disks = Disk::of_every_kind(SIZE)[random.below(2) as usize].clone();
        let (mut near, far) = UnixStream::pair().unwrap();
        let sessions = vec![Session::new(far.into())];
        let mut server = Server::start(Vec::new(), sessions, disks.clone(), CONFIG);
        let long = vec![5; 1_500_000];
        // Blocks that can be received where they will lie.
        let whole: Vec<u8> = (0..1_500_000 / 4096 * 4096).map(|at| (at / 11) as u8).collect();
        // Each message, and how much of it comes between two servers at most.
        let messages = [
            (hello(), 3),
            (option(STRUCTURED_REPLY, b""), 12),
            (option(999, &vec![0; 70_000]), 60_000),
            (option(LIST, b""), 40),
            (option(SET_CONTEXTS, &contexts(b"disk", &[b"base:allocation"])), 40),
            (option(crate::messages::GO, &info(b"disk", &[3])), 12),
            (write_message(1, 0, 7, &long), 700_000),
            (write_message(2, 0, SIZE as u64, b"this is refused"), 12),
            (request(READ, 0, 3, 7, 1_500_000), 20),
            (request(BLOCK_STATUS, 0, 4, 0, 512), 20),
            (write_message(5, 0, 1 << 20, &whole), 300_000),
            (request(READ, 0, 6, 1 << 20, whole.len() as u32), 20),
        ];
        let mut hearer = Client::of(near.try_clone().unwrap());
        let heard = thread::spawn(move || hearer.hear_the_end());
        for (message, most) in messages {
            let mut rest = message.as_slice();
            while !rest.is_empty() {
                let bytes = rest.len().min(1 + random.below(most) as usize);
                near.write_all(&rest[..bytes]).unwrap();
                rest = &rest[bytes..];
                if random.below(2) == 0 {
                    server = next_server(server, &disks);
                }
            }
        }
        near.write_all(&request(crate::messages::DISCONNECT, 0, 0, 0, 0)).unwrap();
        let heard = heard.join().unwrap();
        let mut rest = heard.strip_prefix(answers::GREETING).unwrap();
        while answers::take_option(&mut rest).is_some() {}
        let answers = answers::take_all(rest).expect("whole answers");
        assert_eq!(answers[0], Answer::Simple { cookie: 1, error: 0 });
        assert!(matches!(&answers[1], Answer::Chunk { cookie: 2, kind: 0x8001, .. }));
        assert!(matches!(&answers[2], Answer::Chunk { cookie: 3, kind: 1, payload, .. }
            if payload[8..] == long));
        assert!(matches!(&answers[4], Answer::Chunk { cookie: 4, kind: 5, .. }));
        assert_eq!(answers[5], Answer::Simple { cookie: 5, error: 0 });
        assert!(matches!(&answers[6], Answer::Chunk { cookie: 6, kind: 1, payload, .. }
            if payload[8..] == whole));
        assert_eq!(answers.len(), 8);
        drop(server);
    });
}

#[test]
fn replies_that_a_client_does_not_take_wait_for_it_in_the_session() {
    Disk::of_every_kind(SIZE).iter().for_each(|disks| replies_wait(disks));
}

fn replies_wait(disks: &[Disk]) {
    let (near, far) = UnixStream::pair().unwrap();
    let sessions = vec![Session::new(far.into())];
    let mut server = Server::start(Vec::new(), sessions, disks.to_vec(), CONFIG);
    let mut client = Client::open(near, true);
    client.send(&write_message(0, 0, 0, &vec![7; 1 << 20]));
    assert_eq!(client.done(), 0);
    for cookie in 1..20 {
        client.send(&request(READ, 0, cookie, 0, 1 << 20));
    }
    for _ in 0..5 {
        server = next_server(server, disks);
    }
    for expected in 1..20 {
        let Answer::Chunk { cookie, payload, .. } = client.answer() else { panic!() };
        assert_eq!(cookie, expected);
        assert!(payload[8..].iter().all(|&byte| byte == 7) && payload.len() == (1 << 20) + 8);
        assert!(matches!(client.answer(), Answer::Chunk { kind: 0, .. }));
    }
}

#[test]
fn a_connection_to_an_export_that_changed_is_closed_and_the_others_go_on() {
    let disks = Disk::in_memory(SIZE);
    for changed in [
        Disk::in_memory(SIZE + 1).remove(0),
        Disk { read_only: true, ..disks[0].clone() },
        Disk { name: "another", ..disks[0].clone() },
    ] {
        let (near, far) = UnixStream::pair().unwrap();
        let sessions = vec![Session::new(far.into())];
        let server = Server::start(Vec::new(), sessions, disks.clone(), CONFIG);
        let mut client = Client::open(near, true);
        let _next = next_server(server, &[changed]);
        assert_eq!(client.hear_the_end(), b"");
    }
}

#[test]
fn listeners_go_on_while_connections_are_handed_over() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nbd");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let disks = Disk::new(Arc::new(MemoryBlocks::new(SIZE, 4096)));
    let start = |sessions| {
        let listener = Listener::new(listener.try_clone().unwrap()).unwrap();
        Server::start(vec![listener], sessions, disks.clone(), CONFIG)
    };
    let server = start(Vec::new());
    let mut early = Client::open(UnixStream::connect(&path).unwrap(), true);
    let sessions = carried(server.stop());
    assert_eq!(sessions.len(), 1);
    let waiting = UnixStream::connect(&path).unwrap();
    let _next = start(sessions);
    let mut late = Client::open(waiting, true);
    early.send(&write_message(1, 0, 0, b"here"));
    assert_eq!(early.done(), 1);
    assert_eq!(late.read(0, 4), b"here");
}
