//! Clients and disks that do what they should not, and who pays for it.

use std::io::{self, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use holdfast_front::nbd::{Listener, NbdConfig};
use holdfast_io::{Blocks, BlocksError};
use tracing_subscriber::fmt::MakeWriter;

use crate::answers::Answer;
use crate::memory::MemoryBlocks;
use crate::messages::{CACHE, DISCONNECT, FLUSH, READ, hello, opening, request};
use crate::random::{Random, for_seeds};
use crate::served::{CONFIG, Client, Disk, HOPELESS, Server, write_message};

const SIZE: usize = 1 << 20;

/// All lines that servers of this process have logged.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Log;
    fn make_writer(&'a self) -> Log {
        self.clone()
    }
}

impl Log {
    /// The log, from the first use on.
    fn of_this_process() -> &'static Log {
        static LOG: OnceLock<Log> = OnceLock::new();
        LOG.get_or_init(|| {
            let log = Log::default();
            let written = tracing_subscriber::fmt().with_ansi(false).with_writer(log.clone());
            tracing::subscriber::set_global_default(written.finish()).unwrap();
            log
        })
    }

    fn lines_with(&self, text: &str) -> usize {
        let log = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        log.lines().filter(|line| line.contains(text)).count()
    }
}

/// A client that works all the time, beside the one that misbehaves.
fn assert_unharmed(client: &mut Client<UnixStream>, mark: u8) {
    client.send(&write_message(9, 0, 500_000, &[mark; 100]));
    assert_eq!(client.done(), 9);
    assert_eq!(client.read(500_000, 100), [mark; 100]);
}

#[test]
fn a_client_that_breaks_the_protocol_is_cut_off_alone_and_stands_in_the_log() {
    let log = Log::of_this_process();
    let server = Server::unix(Disk::in_memory(SIZE));
    let mut good = server.client(true);
    let mut bad = server.client(true);
    bad.send(&write_message(1, 0, 0, b"kept"));
    assert_eq!(bad.done(), 1);
    bad.send(&[0xab; 28]);
    assert_eq!(bad.hear_the_end(), b"");
    assert_eq!(log.lines_with("a request starts with 0xabababab"), 1);
    assert_unharmed(&mut good, 1);
    assert_eq!(good.read(0, 4), b"kept", "what was acknowledged is not lost");

    let mut bad = Client::of(UnixStream::connect(server.path()).unwrap());
    bad.send(&[0x5a; 4]);
    bad.hear_the_end();
    assert_eq!(log.lines_with("its flags are 0x5a5a5a5a"), 1);
    assert_unharmed(&mut good, 2);
}

#[test]
fn requests_out_of_range_are_refused_and_logged_but_do_not_fill_the_log() {
    let log = Log::of_this_process();
    let server = Server::unix(Disk::in_memory(SIZE));
    let mut client = server.client(true);
    // No other test of this process leaves out as many lines: one with random clients does 87 at
    // times.
    for cookie in 0..5_003 {
        client.send(&request(READ, 0, cookie, 0x00c0_ffee_0000, 4096));
        assert!(matches!(client.answer(), Answer::Chunk { kind: 0x8001, is_last: true, .. }));
    }
    assert_unharmed(&mut client, 3);
    client.send(&request(DISCONNECT, 0, 0, 0, 0));
    client.hear_the_end();
    // Its last line is written when its connection is gone.
    drop(server.stop());
    assert_eq!(log.lines_with(&format!("{}", 0x00c0_ffee_0000_u64)), 16);
    assert_eq!(log.lines_with("4987 more lines about clients"), 1);
}

#[test]
fn a_client_that_stops_reading_costs_only_itself() {
    for disks in Disk::of_every_kind(SIZE) {
        let server = Server::unix(disks);
        let (mut good, mut bad) = (server.client(true), server.client(true));
        for cookie in 0..200 {
            bad.send(&request(READ, 0, cookie, 0, SIZE as u32));
        }
        for mark in 0..100 {
            assert_unharmed(&mut good, mark);
        }
        assert_eq!(server.stop().len(), 2, "and it does not keep the server from stopping");
    }
}

#[test]
fn a_client_that_dies_in_the_middle_of_a_write_leaves_the_disk_alone() {
    for disks in Disk::of_every_kind(SIZE) {
        let disk = disks[0].blocks.clone();
        let server = Server::unix(disks);
        let mut good = server.client(true);
        for (whole, sent) in [(4096, 4000), (4096, 29), (SIZE, 0), (SIZE, 1), (SIZE, 27)]
            .into_iter()
            .chain([28, 29, 5000, SIZE / 2, SIZE + 27].map(|sent| (SIZE, sent)))
        {
            let mut bad = server.client(true);
            bad.send(&write_message(1, 0, 0, &vec![0xee; whole])[..sent]);
            drop(bad);
            assert_unharmed(&mut good, 7);
        }
        server.stop();
        let mut contents = vec![0; SIZE];
        disk.read(&mut contents, 0).unwrap();
        assert!(!contents.contains(&0xee));
    }
}

#[test]
fn clients_that_stop_in_the_middle_of_long_writes_keep_nobody_from_writing() {
    const CLIENTS: usize = 6;
    for disks in Disk::of_every_kind((CLIENTS + 1) * SIZE) {
        let server = Server::unix(disks);
        let mut good = server.client(true);
        let mark = |index: usize| 0x80 + index as u8;
        let message =
            |index: usize| write_message(1, 0, ((index + 1) * SIZE) as u64, &[mark(index); SIZE]);
        let mut slow: Vec<_> = (0..CLIENTS).map(|_| server.client(true)).collect();
        for (index, client) in slow.iter_mut().enumerate() {
            client.send(&message(index)[..SIZE / 2]);
        }
        for round in 0..10 {
            good.send(&write_message(round, 0, 0, &[7; SIZE]));
            assert_eq!(good.done(), round);
        }
        for (index, client) in slow.iter_mut().enumerate() {
            let ends = [(index + 1) * SIZE, (index + 2) * SIZE - 4096];
            let mut read = || ends.map(|at| good.read(at as u64, 4096)).concat();
            assert!(!read().contains(&mark(index)));
            client.send(&message(index)[SIZE / 2..]);
            assert_eq!(client.done(), 1);
            assert!(read().iter().all(|byte| *byte == mark(index)));
        }
        server.stop();
    }
}

#[test]
fn a_client_that_dies_in_the_middle_of_a_message_stands_in_the_log() {
    let log = Log::of_this_process();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let listeners = vec![Listener::new(listener).unwrap()];
    // The first piece of a long write is used; of a short one nothing is.
    let disks = Disk::new(Arc::new(MemoryBlocks::new(SIZE, 4096)));
    let server = Server::start(listeners, Vec::new(), disks, CONFIG);
    let mut clients = Vec::new();
    for bytes in [27, 300, 28 + 262_144] {
        let mut bad = Client::open(TcpStream::connect(address).unwrap(), true);
        clients.push(bad.stream.local_addr().unwrap());
        bad.send(&write_message(1, 0, 0, &vec![0xdd; 1 << 19])[..bytes]);
        drop(bad);
    }
    let mut good = Client::open(TcpStream::connect(address).unwrap(), true);
    let unsuspicious = good.stream.local_addr().unwrap();
    good.send(&request(DISCONNECT, 0, 0, 0, 0));
    good.hear_the_end();
    for client in clients {
        let line = client.to_string();
        let waiting = Instant::now();
        while log.lines_with(&line) == 0 {
            assert!(waiting.elapsed() < HOPELESS, "{line} is not in the log");
            std::thread::yield_now();
        }
    }
    drop(server.stop());
    assert_eq!(log.lines_with(&unsuspicious.to_string()), 0);
}

#[test]
fn a_client_that_chooses_no_export_in_time_loses_its_place() {
    let log = Log::of_this_process();
    let negotiation_patience = Duration::from_millis(100);
    let config = NbdConfig { negotiation_patience, ..CONFIG };
    let server = Server::unix_with(Disk::in_memory(SIZE), config);
    let mut chosen = server.client(true);
    let before = log.lines_with("it chose no export in time");
    for said in [Vec::new(), hello(), opening(b"disk", true)[..40].to_vec()] {
        let mut silent = Client::of(UnixStream::connect(server.path()).unwrap());
        silent.send(&said);
        silent.hear_the_end();
    }
    // One that never stops talking, but never comes to the point.
    let mut talker = Client::of(UnixStream::connect(server.path()).unwrap());
    talker.send(&hello());
    while talker.stream.write_all(&crate::messages::option(4711, b"")).is_ok() {}
    assert_unharmed(&mut chosen, 1);
    assert_eq!(log.lines_with("it chose no export in time") - before, 4);
}

#[test]
fn random_bytes_over_sockets_end_in_errors_and_nothing_else() {
    let server = Server::unix(Disk::in_memory(SIZE));
    let mut good = server.client(true);
    for_seeds("random_bytes_over_sockets", 40, |random: &mut Random| {
        let mut bad = Client::of(UnixStream::connect(server.path()).unwrap());
        let mut bytes = opening(b"disk", random.below(2) == 0);
        for _ in 0..20 {
            // Reads, mostly: the disk is the other client's, too.
            let command = [READ, READ, FLUSH, 8, 77][random.below(5) as usize];
            let flags = random.next() as u16 & 7;
            bytes.extend(request(command, flags, 1, random.below(1 << 21), random.next() as u32));
        }
        let at = random.below(bytes.len() as u64) as usize;
        bytes[at] = random.next() as u8;
        // It may be cut off, and is not listening.
        let _ = bad.stream.write_all(&bytes);
        drop(bad);
        assert_unharmed(&mut good, random.next() as u8);
    });
}

#[test]
fn an_error_of_the_disk_is_told_logged_and_survived() {
    let log = Log::of_this_process();
    let server = Server::unix(Disk::new(Arc::new(Broken { panics: false })));
    let mut client = server.client(true);
    client.send(&request(READ, 0, 1, 0, 512));
    assert!(matches!(client.answer(), Answer::Chunk { cookie: 1, kind: 0x8001, .. }));
    client.send(&write_message(2, 0, 0, b"x"));
    assert!(matches!(client.answer(), Answer::Chunk { cookie: 2, kind: 0x8001, .. }));
    assert_eq!(log.lines_with("the spindle is bent"), 2);
}

/// A disk that cannot be used.
struct Broken {
    panics: bool,
}

impl Broken {
    fn fail(&self) -> Result<(), BlocksError> {
        assert!(!self.panics, "a mistake in a disk");
        Err(BlocksError::Failed(io::Error::other("the spindle is bent")))
    }
}

impl Blocks for Broken {
    fn size_bytes(&self) -> u64 {
        SIZE as u64
    }
    fn read(&self, _: &mut [u8], _: u64) -> Result<(), BlocksError> {
        self.fail()
    }
    fn write(&self, _: &[u8], _: u64) -> Result<(), BlocksError> {
        self.fail()
    }
    fn write_zeroes(&self, _: u64, _: u64) -> Result<(), BlocksError> {
        self.fail()
    }
    fn discard(&self, _: u64, _: u64) -> Result<(), BlocksError> {
        self.fail()
    }
    fn flush(&self) -> Result<(), BlocksError> {
        self.fail()
    }
    fn atomic_bytes_max(&self) -> usize {
        4096
    }
}

/// Set for a process whose disk panics.
const PANICS: &str = "HOLDFAST_TEST_PANICS";

#[test]
fn a_panic_in_a_disk_ends_the_process() {
    if std::env::var_os(PANICS).is_some() {
        let server = Server::unix(Disk::new(Arc::new(Broken { panics: true })));
        let mut client = server.client(true);
        client.send(&request(CACHE, 0, 1, 0, 9));
        assert_eq!(client.done(), 1, "requests that do not reach the disk are answered");
        client.send(&request(FLUSH, 0, 1, 0, 0));
        let _ = client.answer();
        return;
    }
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "misbehaviour::a_panic_in_a_disk_ends_the_process"]);
    let ended = command.env(PANICS, "1").output().unwrap();
    const SIGABRT: i32 = 6;
    assert_eq!(ended.status.signal(), Some(SIGABRT), "{ended:?}");
}
