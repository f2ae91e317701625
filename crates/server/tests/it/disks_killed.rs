//! A server that is killed again and again while several clients share its disk: no operation
//! fails, and every byte that was acknowledged is there.

use crate::support::{Numbers, Place, disk_spec, seed, seeds_factor};
use holdfast_client::BlocksClient;
use holdfast_io::Blocks;
use holdfast_server::{Server, ServerSpec};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const DISK: &str = "ram";
const CLIENTS: usize = 3;
const THREADS: usize = 2 * CLIENTS;
/// What one thread has for itself.
const OWN_BYTES: u64 = 3 << 20;
/// Blocks behind those, which all threads write.
const SHARED_BLOCKS: u64 = 16;
const BLOCK_BYTES: usize = 4096;
const SHARED_AT: u64 = THREADS as u64 * OWN_BYTES;
const DISK_BYTES: u64 = SHARED_AT + SHARED_BLOCKS * BLOCK_BYTES as u64;

/// Tells the child which region is its.
const REGION: &str = "HOLDFAST_TEST_REGION";

/// Not a test: what the test below starts and kills. The socket is its standard input.
#[test]
#[ignore = "a process of another test"]
fn a_disk_server_process() {
    let Ok(region) = std::env::var(REGION) else { return };
    let listener: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let services = vec![disk_spec(DISK, region.as_ref(), DISK_BYTES)];
    let (server, _) = Server::open(ServerSpec { logs: vec![], services, clients_max: 32 });
    let (_stop, told) = UnixStream::pair().unwrap();
    server.serve(&UnixListener::from(listener), &told, &told, &told).unwrap();
}

fn start(place: &Place) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "disks_killed::a_disk_server_process"])
        .env(REGION, place.region(DISK))
        .stdin(OwnedFd::from(place.listener.try_clone().unwrap()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

/// One thread and what its own part of the disk should hold.
struct Writer {
    at: u64,
    own: Vec<u8>,
    numbers: Numbers,
    operations: u64,
    longest: Duration,
}

impl Writer {
    fn new(thread: usize, numbers: Numbers) -> Writer {
        let (at, own) = (thread as u64 * OWN_BYTES, vec![0; OWN_BYTES as usize]);
        Writer { at, own, numbers, operations: 0, longest: Duration::ZERO }
    }

    fn work(mut self, disk: &BlocksClient, stop: &AtomicBool) -> Writer {
        while !stop.load(Ordering::Relaxed) {
            let began = Instant::now();
            match self.numbers.below(8) {
                0..=3 => self.write(disk),
                4 => self.empty(disk),
                5 => self.read(disk),
                6 => write_shared(disk, &mut self.numbers),
                _ => read_shared(disk, &mut self.numbers),
            }
            self.longest = self.longest.max(began.elapsed());
            self.operations += 1;
        }
        self
    }

    /// A range of its own: mostly short, now and then longer than one request takes.
    fn range(&mut self) -> (usize, usize) {
        let bytes_max = [512, 20_000, OWN_BYTES][self.numbers.below(3) as usize];
        let from = self.numbers.below(OWN_BYTES) as usize;
        let bytes = 1 + self.numbers.below(bytes_max) as usize;
        (from, bytes.min(OWN_BYTES as usize - from))
    }

    fn write(&mut self, disk: &BlocksClient) {
        let (from, bytes) = self.range();
        let value = self.numbers.next().to_le_bytes();
        let wanted: Vec<u8> = value.into_iter().cycle().take(bytes).collect();
        disk.write(&wanted, self.at + from as u64).unwrap();
        self.own[from..from + bytes].copy_from_slice(&wanted);
    }

    fn empty(&mut self, disk: &BlocksClient) {
        let (from, bytes) = self.range();
        let emptied = match self.numbers.below(2) {
            0 => disk.discard(self.at + from as u64, bytes as u64),
            _ => disk.write_zeroes(self.at + from as u64, bytes as u64),
        };
        emptied.and_then(|()| disk.flush()).unwrap();
        self.own[from..from + bytes].fill(0);
    }

    fn read(&mut self, disk: &BlocksClient) {
        let (from, bytes) = self.range();
        let mut found = vec![0; bytes];
        disk.read(&mut found, self.at + from as u64).unwrap();
        assert_eq!(first_difference(&self.own[from..from + bytes], &found), None);
    }
}

fn shared_block(numbers: &mut Numbers) -> u64 {
    SHARED_AT + numbers.below(SHARED_BLOCKS) * BLOCK_BYTES as u64
}

fn write_shared(disk: &BlocksClient, numbers: &mut Numbers) {
    let value = numbers.next().to_le_bytes();
    disk.write(&value.repeat(BLOCK_BYTES / 8), shared_block(numbers)).unwrap();
}

fn read_shared(disk: &BlocksClient, numbers: &mut Numbers) {
    let mut found = [0; BLOCK_BYTES];
    disk.read(&mut found, shared_block(numbers)).unwrap();
    assert!(is_of_one_write(&found), "a block is neither of one write nor of another");
}

fn is_of_one_write(block: &[u8]) -> bool {
    block.chunks(8).all(|word| word == &block[..8])
}

fn first_difference(wanted: &[u8], found: &[u8]) -> Option<usize> {
    wanted.iter().zip(found).position(|(wanted, found)| wanted != found)
}

#[test]
fn no_operation_fails_and_no_byte_is_lost_when_the_server_is_killed() {
    let mut numbers = Numbers(seed("no_operation_fails_and_no_byte"));
    let kills = if seeds_factor() == 1 { 20 } else { 125 * seeds_factor() };
    let place = Place::with_logs(&[]);
    let mut server = start(&place);
    let connect = || BlocksClient::connect(&place.socket(), DISK).unwrap();
    let clients: Vec<BlocksClient> = (0..CLIENTS).map(|_| connect()).collect();
    let stop = AtomicBool::new(false);
    let writers: Vec<Writer> = std::thread::scope(|scope| {
        let start_thread = |thread: usize| {
            let writer = Writer::new(thread, Numbers(numbers.next()));
            let (client, stop) = (&clients[thread % CLIENTS], &stop);
            scope.spawn(move || writer.work(client, stop))
        };
        let threads: Vec<_> = (0..THREADS).map(start_thread).collect();
        let reader = connect();
        for _ in 0..kills {
            // Answered by the server that is to be killed next.
            reader.flush().unwrap();
            std::thread::sleep(Duration::from_micros(numbers.below(20_000)));
            server.kill().unwrap();
            server.wait().unwrap();
            server = start(&place);
        }
        stop.store(true, Ordering::Relaxed);
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let reader = connect();
    for (thread, writer) in writers.iter().enumerate() {
        let mut found = vec![0; OWN_BYTES as usize];
        reader.read(&mut found, writer.at).unwrap();
        assert_eq!(first_difference(&writer.own, &found), None, "thread {thread}");
        assert!(writer.operations > 0, "thread {thread} got something done");
    }
    let operations: u64 = writers.iter().map(|writer| writer.operations).sum();
    let longest = writers.iter().map(|writer| writer.longest).max().unwrap();
    println!("{kills} kills, {operations} operations, no error, longest wait {longest:?}");
    server.kill().unwrap();
    server.wait().unwrap();
}

#[test]
fn a_lost_byte_and_a_torn_block_are_found() {
    let mut block = [7; BLOCK_BYTES];
    assert!(is_of_one_write(&block));
    assert_eq!(first_difference(&[7; BLOCK_BYTES], &block), None);
    block[BLOCK_BYTES - 1] = 8;
    assert!(!is_of_one_write(&block), "the canary of the search for torn blocks");
    assert_eq!(first_difference(&[7; BLOCK_BYTES], &block), Some(BLOCK_BYTES - 1));
}
