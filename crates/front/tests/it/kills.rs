//! A server dies at any instruction; the programs on its mount do not notice.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use holdfast_front::fuse::parse::{Operation, parse};
use holdfast_front::fuse::reply::{HEADER_BYTES, encode};
use holdfast_front::fuse::{
    Answered, Answers, Cache, ListenConfig, Server, Session, Unmount, unmount,
};
use holdfast_io::tree::{
    Allocate, Asker, Attributes, Errno, Kind, Listed, NodeId, SetAttributes, Space, Tree,
};

use crate::memory_tree::MemoryTree;
use crate::mounted::mount_point;

const KILLS: usize = 30;
const BLOCK: usize = 8192;
const BLOCKS: u64 = 4096;
/// Names the file that outlives the servers, for a process that is one.
const STORE: &str = "HOLDFAST_TEST_STORE";
/// Set for a server that dies of its first write.
const DIES: &str = "HOLDFAST_TEST_DIES";

/// One file, `data`, kept in a file of the system.
struct OneFile {
    file: File,
    dies: bool,
}

const DATA: NodeId = NodeId(2);
const NOT_HERE: Errno = Errno(1);

impl OneFile {
    fn attributes_of(&self, node: NodeId) -> Attributes {
        let is_data = node == DATA;
        Attributes {
            node,
            kind: if is_data { Kind::File } else { Kind::Directory },
            mode: 0o755,
            uid: 0,
            gid: 0,
            size_bytes: if is_data { self.file.metadata().unwrap().len() } else { 0 },
            allocated_bytes: 0,
            links: 1,
            rdev: 0,
            accessed_ns: 0,
            modified_ns: 0,
            changed_ns: 0,
        }
    }
}

impl Tree for OneFile {
    fn lookup(&self, _: NodeId, name: &[u8]) -> Result<Attributes, Errno> {
        if name == b"data" { Ok(self.attributes_of(DATA)) } else { Err(Errno(2)) }
    }
    fn attributes(&self, node: NodeId) -> Result<Attributes, Errno> {
        Ok(self.attributes_of(node))
    }
    fn set_attributes(&self, _: NodeId, _: &SetAttributes) -> Result<Attributes, Errno> {
        Err(NOT_HERE)
    }
    fn read(&self, _: NodeId, into: &mut [u8], offset: u64) -> Result<usize, Errno> {
        Ok(self.file.read_at(into, offset).unwrap())
    }
    fn write(&self, _: NodeId, from: &[u8], offset: u64, _: bool) -> Result<(), Errno> {
        assert!(!self.dies, "a write that kills its server");
        self.file.write_all_at(from, offset).unwrap();
        Ok(())
    }
    fn allocate(&self, _: NodeId, _: Allocate, _: u64, _: u64) -> Result<(), Errno> {
        Err(NOT_HERE)
    }
    fn sync(&self, _: NodeId) -> Result<(), Errno> {
        Ok(())
    }
    fn sync_is_needed(&self) -> bool {
        true
    }
    fn list(&self, _: NodeId, _: u64, _: &mut dyn FnMut(Listed<'_>) -> bool) -> Result<(), Errno> {
        Ok(())
    }
    fn space(&self) -> Result<Space, Errno> {
        Err(NOT_HERE)
    }
    fn remember_for(&self) -> Duration {
        Duration::from_secs(3600)
    }
}

/// Not a test of its own: the process that the tests below start and kill. Its standard input is
/// the descriptor of the mount; every repeated request leaves a byte in the file `STORE.resent`.
#[test]
fn a_server_in_a_process_of_its_own() {
    let Ok(store) = std::env::var(STORE) else {
        return;
    };
    let file = File::options().read(true).write(true).open(&store).unwrap();
    let resent = OpenOptions::new().append(true).create(true).open(store + ".resent").unwrap();
    let tree = OneFile { file, dies: std::env::var(DIES).is_ok() };
    let session = Session::adopt(std::io::stdin().as_fd().try_clone_to_owned().unwrap());
    session.resend().unwrap();
    let server = Server::new(&tree, Cache::Direct, || 0);
    session.listen(&ListenConfig { threads: 2 }, &Counting { server, resent }).unwrap();
}

/// Answers, and writes a byte for each repeated request.
struct Counting<'t> {
    server: Server<'t>,
    resent: File,
}

impl Answers for Counting<'_> {
    fn answer(&self, _asker: Asker, message: &[u8], answer: &mut [u8]) -> Answered {
        let request = parse(message).unwrap();
        if request.resent {
            (&self.resent).write_all(b".").unwrap();
        }
        let reply = self.server.serve(&request, &mut answer[HEADER_BYTES..]);
        Answered::of(encode(&reply, request.unique, answer))
    }
}

/// The part of the keeper: owns the descriptor and the store.
struct Keeper {
    mountpoint: tempfile::TempDir,
    device: OwnedFd,
    store: PathBuf,
    _store: tempfile::TempDir,
}

impl Keeper {
    fn new() -> Self {
        let (mountpoint, device) = mount_point();
        let directory = tempfile::tempdir_in("/dev/shm").unwrap();
        let store = directory.path().join("store");
        File::create(&store).unwrap().set_len(BLOCKS * BLOCK as u64).unwrap();
        Self { mountpoint, device, store, _store: directory }
    }

    fn start(&self, dies: bool) -> Child {
        let mut server = Command::new(std::env::current_exe().unwrap());
        server.args(["--exact", "kills::a_server_in_a_process_of_its_own"]);
        server.env(STORE, &self.store).stdin(Stdio::from(self.device.try_clone().unwrap()));
        server.stdout(Stdio::null());
        if dies {
            server.env(DIES, "1");
        }
        server.spawn().unwrap()
    }

    /// The file on the mount, by which the kernel has learnt that closing needs no answer. A
    /// process started from here closes what this one has open on the mount before it becomes a
    /// server, and would wait for itself. (A real keeper has nothing open there.)
    fn data(&self) -> PathBuf {
        let path = self.mountpoint.path().join("data");
        drop(File::open(&path).unwrap());
        path
    }

    fn resent(&self) -> u64 {
        fs::metadata(self.store.with_extension("resent")).map_or(0, |found| found.len())
    }

    fn end(self, mut server: Child) {
        unmount(self.mountpoint.path(), Unmount::Detach).unwrap();
        assert!(server.wait().unwrap().success());
    }
}

fn block(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK / 8)
}

/// Writes block after block, round and round, until told to stop; tells how many.
fn write_until(stop: &AtomicBool, path: &Path) -> u64 {
    let file = File::options().write(true).open(path).unwrap();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        file.write_all_at(&block(number), number % BLOCKS * BLOCK as u64).unwrap();
        file.sync_data().unwrap();
        number += 1;
    }
    number
}

fn assert_last_round_is_there(store: &Path, written: u64) {
    let file = File::open(store).unwrap();
    for number in written.saturating_sub(BLOCKS)..written {
        let mut found = vec![0; BLOCK];
        file.read_exact_at(&mut found, number % BLOCKS * BLOCK as u64).unwrap();
        assert!(found == block(number), "block {number} of {written} is lost");
    }
}

#[test]
fn no_write_fails_and_none_is_lost_when_servers_are_killed() {
    let keeper = Keeper::new();
    let mut server = keeper.start(false);
    let (path, stop) = (keeper.data(), AtomicBool::new(false));
    let written = thread::scope(|scope| {
        let writer = scope.spawn(|| write_until(&stop, &path));
        for kill in 0..KILLS {
            thread::sleep(Duration::from_millis(40 + (kill as u64 * 37) % 61));
            server.kill().unwrap();
            server.wait().unwrap();
            server = keeper.start(false);
        }
        stop.store(true, Ordering::Relaxed);
        writer.join().unwrap()
    });
    println!("{written} writes, {KILLS} kills, {} requests sent again", keeper.resent());
    assert_last_round_is_there(&keeper.store, written);
    keeper.end(server);
}

#[test]
fn a_request_that_killed_its_server_is_answered_by_the_next() {
    let keeper = Keeper::new();
    let mut first = keeper.start(true);
    let path = keeper.data();
    let writer = thread::spawn(move || {
        let file = File::options().write(true).open(path).unwrap();
        file.write_all_at(b"stubborn", 0).unwrap();
    });
    assert!(!first.wait().unwrap().success());
    let next = keeper.start(false);
    writer.join().unwrap();
    assert_eq!(keeper.resent(), 1);
    assert_eq!(fs::read(&keeper.store).unwrap()[..8], *b"stubborn");
    keeper.end(next);
}

/// Canary for the two above, and the kernel's rule that they stand on.
#[test]
fn the_answer_to_a_repeated_request_must_carry_its_mark() {
    let (mountpoint, device) = mount_point();
    let session = Session::adopt(device.try_clone().unwrap());
    let tree = MemoryTree::new(true);
    let server = Server::new(&tree, Cache::Direct, || 0);
    let mut buffer = vec![0; 2 << 20];
    let mut answer = vec![0; 1 << 16];
    let mut next = |mask: u64, send: bool| {
        let bytes = rustix::io::read(&device, &mut buffer).unwrap();
        let request = parse(&buffer[..bytes]).unwrap();
        let reply = server.serve(&request, &mut answer[HEADER_BYTES..]);
        let bytes = encode(&reply, request.unique & mask, &mut answer);
        let sent = send.then(|| rustix::io::write(&device, &answer[..bytes]));
        (request.resent, matches!(request.operation, Operation::Init(_)), sent)
    };
    assert!(matches!(next(u64::MAX, true), (false, true, Some(Ok(_)))));
    let path = mountpoint.path().to_owned();
    let asker = thread::spawn(move || rustix::fs::statvfs(&path).map(drop));
    assert!(matches!(next(0, false), (false, false, None)));
    session.resend().unwrap();
    let (resent, _, refused) = next(u64::MAX >> 1, true);
    assert_eq!((resent, refused), (true, Some(Err(rustix::io::Errno::NOENT))));
    session.resend().unwrap();
    assert!(matches!(next(u64::MAX, true), (true, false, Some(Ok(_)))));
    asker.join().unwrap().unwrap();
    unmount(mountpoint.path(), Unmount::Detach).unwrap();
}
