//! Peers that come only to cost something: silent, slow, many, gone with what they were given.
//!
//! The server is a process of its own, so that all it holds can be counted from outside.

use crate::raw::{Raw, connect, hello};
use crate::support::{NAME, Numbers, Place, log_spec, seed, seeds_factor};
use holdfast_client::LogClient;
use holdfast_client::protocol::HELLO_BYTES;
use holdfast_log::CommitLog;
use holdfast_peers::{LINES_OF_PEER, PEERS_MAX, SPAN};
use holdfast_server::{Server, ServerSpec, words};
use rustix::process::Uid;
use rustix::thread::set_thread_res_uid;
use std::fs::{File, Permissions, set_permissions};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(crate) const OTHER: &str = "other";
const PLACE: &str = "HOLDFAST_TEST_STRANGERS";

/// Users of the log `other`; the tests' own user is the one of the first.
pub(crate) const USERS: [u32; 3] = [40_001, 40_002, 40_003];
pub(crate) const NOBODY: u32 = 40_404;

const CLIENTS_MAX: u32 = 12;
/// As many as may hesitate: see the server's `door`.
const HESITANT_MAX: usize = 64;
/// Descriptors that are open for a moment: one that is refused, one that is sent.
const PASSING_MAX: usize = 8;

/// Not a test: the server of the tests below. The socket is its standard input.
#[test]
#[ignore = "a process of other tests"]
fn a_server_of_strangers() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let paths: Vec<_> = place.split(':').collect();
    let &[log, region, other_log, other_region] = &paths[..] else { panic!("{place}") };
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let mut other = log_spec(OTHER, other_log.as_ref(), other_region.as_ref());
    other.allow_uids = USERS.to_vec();
    let logs = vec![log_spec(NAME, log.as_ref(), region.as_ref()), other];
    let spec = ServerSpec { logs, services: vec![], clients_max: CLIENTS_MAX };
    let (server, errors) = Server::open(spec);
    assert!(errors.is_empty(), "{errors:?}");
    let listener: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let (_stop, told) = UnixStream::pair().unwrap();
    server.serve(&UnixListener::from(listener), &told, &told, &told).unwrap();
}

/// A server process, and what it has cost so far.
pub(crate) struct Guarded {
    pub(crate) place: Place,
    pub(crate) process: Child,
    lines: File,
    began: Instant,
    descriptors: usize,
    threads: usize,
}

impl Guarded {
    pub(crate) fn start() -> Guarded {
        let place = Place::with_logs(&[NAME, OTHER]);
        let folder = place.socket().parent().unwrap().to_owned();
        set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
        set_permissions(place.socket(), Permissions::from_mode(0o666)).unwrap();
        let lines = tempfile::tempfile().unwrap();
        let paths = [place.log(NAME), place.region(NAME), place.log(OTHER), place.region(OTHER)];
        let paths: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
        let process = Command::new(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", "strangers::a_server_of_strangers", "--nocapture"])
            .env(PLACE, paths.join(":"))
            .stdin(OwnedFd::from(place.listener.try_clone().unwrap()))
            .stdout(Stdio::null())
            .stderr(lines.try_clone().unwrap())
            .spawn()
            .unwrap();
        let began = Instant::now();
        let mut guarded = Guarded { place, process, lines, began, descriptors: 0, threads: 0 };
        guarded.serve_good_client();
        guarded.wait_for_clients(0, 0);
        (guarded.descriptors, guarded.threads) = (guarded.count("fd"), guarded.count("task"));
        guarded
    }

    fn count(&self, what: &str) -> usize {
        std::fs::read_dir(format!("/proc/{}/{what}", self.process.id())).unwrap().count()
    }

    /// Complaints, or what they are bounded by.
    fn lines(&self) -> usize {
        let mut text = String::new();
        File::open(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&self.lines)))
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        text.lines().filter(|line| line.contains("WARN")).count()
    }

    fn lines_max(&self) -> usize {
        let spans = 2 + (self.began.elapsed().as_secs() / SPAN.as_secs()) as usize;
        spans * ((PEERS_MAX + 1) * LINES_OF_PEER as usize + 1)
    }

    /// A client that keeps to the protocol is served at its first attempt.
    #[track_caller]
    pub(crate) fn serve_good_client(&self) {
        let client = LogClient::connect(&self.place.socket(), NAME).expect("a good client");
        let tail = client.append(1, &[b"good"]).unwrap().end;
        client.commit(tail).unwrap();
        client.mark(tail).unwrap();
        client.release(tail);
    }

    /// The server sees by itself that clients have gone; this only waits for it.
    pub(crate) fn wait_for_clients(&self, of_first: u64, of_other: u64) {
        let held = || [NAME, OTHER].map(|name| self.place.word(name, words::CLIENTS));
        while held() != [of_first, of_other] {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    #[track_caller]
    pub(crate) fn check(&self, about: &str) {
        let descriptors = self.count("fd");
        let bound = self.descriptors + HESITANT_MAX + CLIENTS_MAX as usize + PASSING_MAX;
        assert!(descriptors <= bound, "{about}: {descriptors} descriptors, of {bound}");
        let (threads, bound) = (self.count("task"), self.threads + CLIENTS_MAX as usize);
        assert!(threads <= bound, "{about}: {threads} threads, of {bound}");
        let (lines, bound) = (self.lines(), self.lines_max());
        assert!(lines <= bound, "{about}: {lines} lines, of {bound}");
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

/// Does something as another user. Only this thread becomes that user.
pub(crate) fn as_user<T: Send>(uid: u32, act: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            set_thread_res_uid(None, Some(Uid::from_raw(uid)), None).unwrap();
            act()
        });
        thread.join().unwrap()
    })
}

fn knock(place: &Place, uid: u32) -> UnixStream {
    as_user(uid, || UnixStream::connect(place.socket()).unwrap())
}

pub(crate) fn session(place: &Place, uid: u32, client: u64) -> Option<Raw> {
    let mut id = [7; 16];
    id[..8].copy_from_slice(&client.to_le_bytes());
    as_user(uid, || connect(place, id, &format!("log/{OTHER}")))
}

/// Bytes that a memory takes of the machine.
fn bytes_of(memory: &File) -> u64 {
    memory.metadata().unwrap().blocks() * 512
}

#[test]
fn memory_that_a_client_keeps_behind_its_session_is_no_memory() {
    let server = Guarded::start();
    let mut kept = Vec::new();
    for number in 0..40 {
        let raw = session(&server.place, USERS[0], number).unwrap();
        assert!(bytes_of(&raw.file) > 4096, "a session has memory");
        kept.push((raw.file, raw.memory));
        drop(raw.stream);
        server.wait_for_clients(0, 0);
    }
    let bytes: u64 = kept.iter().map(|(file, _)| bytes_of(file)).sum();
    assert_eq!(bytes, 0, "40 sessions that ended");
    server.check("at the end");
}

#[test]
fn one_user_leaves_a_place_for_each_other_user() {
    let server = Guarded::start();
    let taken: Vec<_> = (0..30).map_while(|it| session(&server.place, USERS[0], it)).collect();
    // One is the tests' own user's, one each for the other two.
    assert_eq!(taken.len(), CLIENTS_MAX as usize - 3);
    let others = USERS[1..].iter().zip(100..);
    let others: Vec<_> =
        others.map(|(uid, it)| session(&server.place, *uid, it).unwrap()).collect();
    server.serve_good_client();
    assert!(session(&server.place, USERS[1], 200).is_none(), "there are no more");
    drop(others);
}

#[test]
fn a_hello_that_comes_byte_by_byte_has_one_deadline_for_all_of_it() {
    let server = Guarded::start();
    let mut slow = knock(&server.place, USERS[0]);
    slow.set_nonblocking(true).unwrap();
    let (hello, mut sent) = (hello([1; 16], &format!("log/{OTHER}")), 0);
    let ended = |slow: &mut UnixStream| {
        let read = slow.read(&mut [0; 1]);
        !read.is_err_and(|error| error.kind() == ErrorKind::WouldBlock)
    };
    while sent < HELLO_BYTES && !ended(&mut slow) && slow.write_all(&hello[sent..=sent]).is_ok() {
        sent += 1;
        std::thread::sleep(Duration::from_millis(50));
    }
    assert!(sent < HELLO_BYTES, "a byte every 50 ms has to be too slow");
}

#[test]
fn slow_and_silent_peers_shut_nobody_out() {
    let server = Guarded::start();
    let mut peers = Vec::new();
    for number in 0..200 {
        let mut peer = knock(&server.place, USERS[number % USERS.len()]);
        if number % 2 == 0 {
            let _ = peer.write_all(&[0; 3]);
        }
        peers.push(peer);
        server.check("silent peers");
        if number % 20 == 19 {
            server.serve_good_client();
        }
    }
}

#[test]
fn a_user_that_no_service_allows_cannot_fill_the_log() {
    let server = Guarded::start();
    as_user(NOBODY, || {
        for _ in 0..3000 {
            drop(UnixStream::connect(server.place.socket()).unwrap());
        }
    });
    server.serve_good_client();
    server.check("a flood");
    assert!(server.lines() > 0, "it is said");
    assert_eq!(
        server.place.word(NAME, words::REFUSED),
        0,
        "nobody asked this service for anything"
    );
}

/// What the generated peers hold.
#[derive(Default)]
struct Held {
    knocks: Vec<UnixStream>,
    sessions: Vec<Raw>,
    /// What is left of sessions that ended.
    kept: Vec<(File, holdfast_memory::SessionMemory)>,
}

impl Held {
    /// Does one thing that no good client does; returns what it was.
    fn act(&mut self, server: &Guarded, numbers: &mut Numbers, step: u64) -> &'static str {
        let uid = USERS[numbers.below(USERS.len() as u64) as usize];
        let any = |numbers: &mut Numbers, of: usize| numbers.below(of.max(1) as u64) as usize;
        match numbers.below(9) {
            0 | 1 => {
                self.knocks.push(knock(&server.place, uid));
                "silence"
            }
            2 => {
                let mut peer = knock(&server.place, uid);
                let hello = hello([1; 16], &format!("log/{OTHER}"));
                let _ = peer.write_all(&hello[..numbers.below(HELLO_BYTES as u64) as usize]);
                self.knocks.push(peer);
                "part of a hello"
            }
            3 => {
                let at = any(numbers, self.knocks.len());
                if let Some(peer) = self.knocks.get_mut(at) {
                    let _ = peer.write_all(&[numbers.next() as u8]);
                }
                "one byte more"
            }
            4 => {
                (0..20).for_each(|_| self.knocks.push(knock(&server.place, uid)));
                "many at once"
            }
            5 => {
                as_user(NOBODY, || {
                    for _ in 0..50 {
                        let _ = UnixStream::connect(server.place.socket());
                    }
                });
                "a flood from a user that may not"
            }
            6 => {
                self.sessions.extend(session(&server.place, uid, step));
                "a session"
            }
            7 if !self.sessions.is_empty() => {
                let at = any(numbers, self.sessions.len());
                let Raw { stream, file, memory, .. } = self.sessions.swap_remove(at);
                match numbers.below(2) {
                    0 => drop(stream),
                    _ => stream.shutdown(Shutdown::Write).unwrap(),
                }
                self.kept.push((file, memory));
                "an end that keeps the memory"
            }
            _ => {
                let at = any(numbers, self.knocks.len());
                if let Some(peer) = self.knocks.get(at) {
                    let _ = peer.shutdown(Shutdown::Write);
                }
                "half an end"
            }
        }
    }

    fn check(&self, about: &str) {
        let kept: u64 = self.kept.iter().map(|(file, _)| bytes_of(file)).sum();
        assert_eq!(kept, 0, "{about}: {} ended sessions hold memory", self.kept.len());
    }
}

#[test]
fn whatever_strangers_do_what_they_hold_is_bounded_and_a_good_client_is_served() {
    let first = seed("strangers::whatever_strangers_do");
    for seed in (0..2 * seeds_factor()).map(|more| first + more) {
        let (server, mut held, mut numbers) = (Guarded::start(), Held::default(), Numbers(seed));
        for step in 0..150 {
            let what = held.act(&server, &mut numbers, step);
            let about = format!("seed {seed}, step {step}, {what}");
            server.wait_for_clients(0, held.sessions.len() as u64);
            held.check(&about);
            server.check(&about);
            if numbers.below(4) == 0 {
                println!("{about}: a good client comes");
                server.serve_good_client();
                server.wait_for_clients(0, held.sessions.len() as u64);
            }
        }
    }
}
