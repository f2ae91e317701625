//! A server with sockets, the clients that tests need, and what both do when nothing goes wrong.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use holdfast_blocks::{Vdisk, VdiskSpec};
use holdfast_front::nbd::{self, Export, Listener, NbdConfig, Session};
use holdfast_io::Blocks;
use holdfast_memory::Medium;
use tempfile::TempDir;

use crate::answers::{self, Answer};
use crate::memory::MemoryBlocks;
use crate::messages::{DISCONNECT, FLUSH, FUA, READ, WRITE, opening, request};
use crate::random::Random;

/// A test that waits longer than this for a client or server has failed.
pub(crate) const HOPELESS: Duration = Duration::from_secs(30);

/// A disk under a name.
#[derive(Clone)]
pub(crate) struct Disk {
    pub(crate) name: &'static str,
    pub(crate) blocks: Arc<dyn Blocks>,
    pub(crate) read_only: bool,
}

impl Disk {
    pub(crate) fn new(blocks: Arc<dyn Blocks>) -> Vec<Disk> {
        vec![Disk { name: "disk", blocks, read_only: false }]
    }

    fn export(&self) -> Export<'_> {
        Export { name: self.name, blocks: &*self.blocks, read_only: self.read_only }
    }

    pub(crate) fn in_memory(bytes: usize) -> Vec<Disk> {
        Disk::new(Arc::new(MemoryBlocks::new(bytes, 1 << 20)))
    }

    /// One that sends what is read of it.
    pub(crate) fn that_sends(bytes: usize) -> Vec<Disk> {
        let spec = VdiskSpec { size_bytes: bytes as u64, identity: *b"a disk that send" };
        Disk::new(Arc::new(Vdisk::create(&Medium::Private, &spec).unwrap()))
    }

    /// One of each kind.
    pub(crate) fn of_every_kind(bytes: usize) -> [Vec<Disk>; 2] {
        [Disk::in_memory(bytes), Disk::that_sends(bytes)]
    }
}

pub(crate) const CONFIG: NbdConfig =
    NbdConfig { connections_max: 16, negotiation_patience: HOPELESS, tls: None };

/// A server on a thread.
pub(crate) struct Server {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Vec<Session>>>,
    directory: Option<TempDir>,
}

impl Server {
    pub(crate) fn start(
        listeners: Vec<Listener>,
        sessions: Vec<Session>,
        disks: Vec<Disk>,
        config: NbdConfig,
    ) -> Server {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = thread::spawn(move || {
            let exports: Vec<Export<'_>> = disks.iter().map(Disk::export).collect();
            nbd::serve(listeners, sessions, &exports, &config, &stopped).unwrap()
        });
        Server { stop, thread: Some(thread), directory: None }
    }

    /// A server at a socket in a directory of its own.
    pub(crate) fn unix(disks: Vec<Disk>) -> Server {
        Server::unix_with(disks, CONFIG)
    }

    pub(crate) fn unix_with(disks: Vec<Disk>, config: NbdConfig) -> Server {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("nbd")).unwrap();
        let listener = Listener::new(listener).unwrap();
        let mut server = Server::start(vec![listener], Vec::new(), disks, config);
        server.directory = Some(directory);
        server
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.directory.as_ref().unwrap().path().join("nbd")
    }

    pub(crate) fn client(&self, structured: bool) -> Client<UnixStream> {
        Client::open(UnixStream::connect(self.path()).unwrap(), structured)
    }

    pub(crate) fn stop(mut self) -> Vec<Session> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A stream that gives up in the end.
pub(crate) trait Patient: Read + Write {
    fn limit_patience(&self) -> io::Result<()>;
}

impl Patient for UnixStream {
    fn limit_patience(&self) -> io::Result<()> {
        self.set_read_timeout(Some(HOPELESS))?;
        self.set_write_timeout(Some(HOPELESS))
    }
}

impl Patient for TcpStream {
    fn limit_patience(&self) -> io::Result<()> {
        self.set_read_timeout(Some(HOPELESS))?;
        self.set_write_timeout(Some(HOPELESS))
    }
}

/// A client that sends what it is told and reads one answer at a time.
pub(crate) struct Client<S> {
    pub(crate) stream: S,
    received: Vec<u8>,
}

impl<S: Patient> Client<S> {
    /// Chooses `disk`.
    pub(crate) fn open(stream: S, structured: bool) -> Self {
        let mut client = Client::of(stream);
        client.send(&opening(b"disk", structured));
        client.receive(answers::GREETING.len());
        client.received.drain(..answers::GREETING.len());
        let mut is_open = false;
        while !is_open {
            let answer = client.take(answers::take_option);
            is_open = (answer.option, answer.kind) == (crate::messages::GO, 1);
        }
        client
    }

    /// A client in the middle of a conversation.
    pub(crate) fn of(stream: S) -> Self {
        stream.limit_patience().unwrap();
        Client { stream, received: Vec::new() }
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next answer, where replies have structure.
    pub(crate) fn answer(&mut self) -> Answer {
        self.take(answers::take)
    }

    /// Waits for the cookie of the next answer, which must be a success without data.
    pub(crate) fn done(&mut self) -> u64 {
        match self.answer() {
            Answer::Simple { cookie, error: 0 } => cookie,
            other => panic!("{other:?}"),
        }
    }

    /// Reads, and says what was read.
    pub(crate) fn read(&mut self, offset: u64, bytes: u32) -> Vec<u8> {
        self.send(&request(READ, 0, 1 << 40, offset, bytes));
        match self.answer() {
            Answer::Chunk { cookie: 0x100_0000_0000, kind: 1, payload, .. } => payload[8..].into(),
            other => panic!("{other:?}"),
        }
    }

    /// The end of the connection, whatever comes before.
    pub(crate) fn hear_the_end(&mut self) -> Vec<u8> {
        let mut rest = std::mem::take(&mut self.received);
        // A server that closes with bytes unread resets the connection.
        let _ = self.stream.read_to_end(&mut rest);
        rest
    }

    /// The next answer to an option.
    pub(crate) fn option(&mut self) -> answers::OptionAnswer {
        self.take(answers::take_option)
    }

    /// So many bytes.
    pub(crate) fn hear(&mut self, bytes: usize) -> Vec<u8> {
        self.receive(bytes);
        self.received.drain(..bytes).collect()
    }

    fn take<A>(&mut self, take: impl Fn(&mut &[u8]) -> Option<A>) -> A {
        loop {
            let mut rest = self.received.as_slice();
            if let Some(answer) = take(&mut rest) {
                self.received = rest.to_vec();
                return answer;
            }
            self.receive(self.received.len() + 1);
        }
    }

    fn receive(&mut self, bytes: usize) {
        while self.received.len() < bytes {
            let mut piece = vec![0; 1 << 16];
            let count = self.stream.read(&mut piece).expect("an answer in time");
            assert!(count > 0, "the server closed the connection");
            self.received.extend(&piece[..count]);
        }
    }
}

pub(crate) fn write_message(cookie: u64, flags: u16, offset: u64, data: &[u8]) -> Vec<u8> {
    [request(WRITE, flags, cookie, offset, data.len() as u32), data.to_vec()].concat()
}

/// Hundreds of requests sent without waiting, while another thread hears the answers.
fn many_at_once<S: Patient + Send + 'static>(stream: S, answers: S) {
    const BLOCK: usize = 4096;
    const BLOCKS: u64 = 64;
    let mut client = Client::open(stream, true);
    let mut random = Random::seeded(7);
    let mut model = vec![0; BLOCK * BLOCKS as usize];
    let mut expected = HashMap::new();
    let mut messages = Vec::new();
    for cookie in 0..2_000 {
        let offset = random.below(BLOCKS) as usize * BLOCK;
        let range = &mut model[offset..offset + BLOCK];
        if random.below(2) == 0 {
            range.fill(random.next() as u8);
            messages.extend(write_message(cookie, 0, offset as u64, range));
        } else {
            messages.extend(request(READ, 0, cookie, offset as u64, BLOCK as u32));
            expected.insert(cookie, range.to_vec());
        }
    }
    let hearer = thread::spawn(move || {
        let mut client = Client::of(answers);
        for turn in 0..2_000 {
            match client.answer() {
                Answer::Simple { cookie, error } => assert_eq!((cookie, error), (turn, 0)),
                Answer::Chunk { cookie, payload, .. } => {
                    assert!(payload[8..] == expected[&cookie], "{cookie} was read before its turn");
                }
            }
        }
    });
    client.send(&messages);
    hearer.join().unwrap();
    client.send(&request(DISCONNECT, 0, 0, 0, 0));
    assert_eq!(client.hear_the_end(), b"");
}

#[test]
fn many_requests_at_once_are_answered_in_their_order_over_a_unix_socket() {
    let server = Server::unix(Disk::in_memory(1 << 20));
    let stream = UnixStream::connect(server.path()).unwrap();
    let answers = stream.try_clone().unwrap();
    many_at_once(stream, answers);
    assert!(server.stop().is_empty());
}

#[test]
fn many_requests_at_once_are_answered_in_their_order_over_tcp() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listeners = vec![Listener::new(listener).unwrap()];
    let server = Server::start(listeners, Vec::new(), Disk::in_memory(1 << 20), CONFIG);
    let stream = TcpStream::connect(address).unwrap();
    let answers = stream.try_clone().unwrap();
    many_at_once(stream, answers);
    assert!(server.stop().is_empty());
}

#[test]
fn a_flush_on_one_connection_makes_durable_what_was_acknowledged_on_another() {
    let (durable, flushes) = (Arc::new(Mutex::default()), Arc::new(AtomicUsize::new(0)));
    let (written, counter) = (durable.clone(), flushes.clone());
    let disk = MemoryBlocks::new(1 << 16, 4096).with_flush(move |disk| {
        counter.fetch_add(1, Ordering::Relaxed);
        *written.lock().unwrap() = disk.contents();
    });
    let server = Server::unix(Disk::new(Arc::new(disk)));
    let (mut writer, mut flusher) = (server.client(true), server.client(true));
    for turn in 0..100_u64 {
        let data = turn.to_be_bytes();
        writer.send(&write_message(turn, 0, turn * 8, &data));
        writer.done();
        if turn % 2 == 0 {
            flusher.send(&request(FLUSH, 0, turn, 0, 0));
        } else {
            flusher.send(&write_message(turn, FUA, 1 << 15, b"x"));
        }
        assert_eq!(flusher.done(), turn);
        let at = turn as usize * 8;
        assert_eq!(durable.lock().unwrap()[at..at + 8], data);
        assert_eq!(flushes.load(Ordering::Relaxed), turn as usize + 1, "n flushes are n");
    }
}

#[test]
fn only_so_many_connections_are_taken_and_a_place_that_is_left_is_given_again() {
    // One user has at most half of them.
    let config = NbdConfig { connections_max: 4, ..CONFIG };
    let server = Server::unix_with(Disk::in_memory(1 << 16), config);
    let (_first, mut second) = (server.client(true), server.client(true));
    let is_served = || {
        let mut client = Client::of(UnixStream::connect(server.path()).unwrap());
        client.send(&opening(b"disk", false));
        client.send(&request(DISCONNECT, 0, 0, 0, 0));
        // Behind the greeting comes what was agreed on, or nothing.
        client.hear_the_end().len() > answers::GREETING.len()
    };
    assert!(!is_served(), "a third one is served");
    second.send(&request(DISCONNECT, 0, 0, 0, 0));
    second.hear_the_end();
    // Its place is free a moment after its connection has ended.
    while !is_served() {}
}

#[test]
fn a_server_without_listeners_ends_with_its_last_session() {
    let (near, far) = UnixStream::pair().unwrap();
    let sessions = vec![Session::new(far.into())];
    let mut server = Server::start(Vec::new(), sessions, Disk::in_memory(1 << 16), CONFIG);
    let mut client = Client::open(near, true);
    assert_eq!(client.read(0, 3), [0; 3]);
    client.send(&request(DISCONNECT, 0, 0, 0, 0));
    assert!(server.thread.take().unwrap().join().unwrap().is_empty());
}
