//! A store whose log is in the server.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{Log, LogConfig};
use holdfast_memory::{AttachError, Medium, Region, RegionSpec};
use holdfast_server::{LogSpec, Server, ServerSpec};
use holdfast_store::Durability::{self, Disk, Memory};
use holdfast_store::{At, Config, LogPlace, OpenError, RestoreError, Services, Store, restore};

use crate::{kills, support};

/// The log of every test.
pub(crate) const NAME: &str = "ledger";
/// One that is there beside it.
const OTHER: &str = "other";
const RING_BYTES: u64 = 512 << 10;
const CONFIG: LogConfig = LogConfig::in_ring(RING_BYTES, RING_BYTES / 4, 6);
/// Tells a child where its logs are.
const DIRECTORY: &str = "HOLDFAST_STORE_SERVED_IN";

/// Two logs in a directory, and a socket that listens.
struct Machine {
    root: tempfile::TempDir,
    /// Memory, with the rings.
    memory: tempfile::TempDir,
    listener: UnixListener,
    clients_max: u32,
}

/// A server in a thread, stopped in order when this is dropped.
struct Serving {
    stop: Option<UnixStream>,
    _others: (UnixStream, std::io::PipeReader),
    thread: Option<JoinHandle<bool>>,
}

impl Machine {
    fn new() -> Machine {
        let root = tempfile::tempdir().unwrap();
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let listener = UnixListener::bind(root.path().join(kills::SOCKET)).unwrap();
        for (name, identity) in [(NAME, [1; 16]), (OTHER, [2; 16])] {
            fs::create_dir(root.path().join(name)).unwrap();
            let files = RealFiles::open(&root.path().join(name)).unwrap();
            Log::create(&files, identity, &CONFIG).unwrap();
        }
        Machine { root, memory, listener, clients_max: 1 }
    }

    fn serve(&self) -> Serving {
        let server = server(self.root.path(), self.memory.path(), self.clients_max);
        let listener = self.listener.try_clone().unwrap();
        let (stop, stopped) = UnixStream::pair().unwrap();
        let (drain, drained) = UnixStream::pair().unwrap();
        let (reports, keeper) = std::io::pipe().unwrap();
        let serve = move || server.serve(&listener, stopped, drained, keeper).unwrap();
        let thread = Some(std::thread::spawn(serve));
        Serving { stop: Some(stop), _others: (drain, reports), thread }
    }

    /// A server in a process of its own, so that it can be killed.
    fn process(&self) -> Child {
        let directories = [self.root.path(), self.memory.path()].map(|path| path.to_str().unwrap());
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "served::a_server_serves_until_it_is_killed", "--nocapture"])
            .env(DIRECTORY, directories.join(":"))
            .stdin(OwnedFd::from(self.listener.try_clone().unwrap()))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn config(&self, name: &str) -> Config {
        let log = LogPlace::Served { socket: self.at(kills::SOCKET), name: name.to_owned() };
        Config { log, services: Services::Threads, ..support::config() }
    }

    fn open(&self) -> Store {
        Store::open(&self.at("store"), &self.config(NAME)).unwrap().0
    }

    fn refusal(&self, store: &str, log: &str) -> OpenError {
        Store::open(&self.at(store), &self.config(log)).unwrap_err()
    }

    /// What a power cut leaves of the memory.
    fn lose_memory(&self) {
        for name in [NAME, OTHER] {
            fs::remove_file(self.memory.path().join(name)).unwrap();
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        drop(self.stop.take());
        self.thread.take().unwrap().join().unwrap();
    }
}

/// A server of the logs in `root`, with their rings in `memory`.
fn server(root: &Path, memory: &Path, clients_max: u32) -> Server {
    let spec = |(name, identity)| {
        let medium = Medium::Shm { path: memory.join(name) };
        let region = match Region::attach(&medium) {
            Err(AttachError::Missing) => {
                let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 64 << 10, identity };
                Region::create(&medium, &spec).unwrap()
            }
            attached => attached.unwrap(),
        };
        LogSpec {
            service: format!("log/{name}"),
            files: Arc::new(RealFiles::open(&root.join(name)).unwrap()),
            region: Arc::new(region),
            clock: Arc::new(RealClock),
            config: CONFIG,
            is_written_through: false,
            allow_uids: vec![fs::metadata(root).unwrap().uid()],
            clients_max,
        }
    };
    let logs = [(NAME, [1; 16]), (OTHER, [2; 16])].map(spec).into();
    let (server, errors) = Server::open(ServerSpec { logs, clients_max: 32 });
    assert!(errors.is_empty(), "{errors:?}");
    server
}

/// What a child does: serves, on the socket that is its standard input.
#[test]
fn a_server_serves_until_it_is_killed() {
    let Ok(directories) = std::env::var(DIRECTORY) else { return };
    let (root, memory) = directories.split_once(':').unwrap();
    let listener: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let server = server(root.as_ref(), memory.as_ref(), 1);
    let (_stop, told) = UnixStream::pair().unwrap();
    server.serve(&UnixListener::from(listener), &told, &told, &told).unwrap();
}

fn put(store: &Store, key: u32, value: &[u8], durability: Durability) {
    let tree = store.tree("accounts").unwrap();
    let mut one = store.begin();
    one.put(&tree, &key.to_be_bytes(), value).unwrap();
    one.commit(durability).unwrap();
}

fn get(store: &Store, key: u32) -> Option<Vec<u8>> {
    store.begin().get(&store.tree("accounts").unwrap(), &key.to_be_bytes()).unwrap()
}

#[test]
fn what_is_stable_outlives_the_process_that_has_the_store() {
    let machine = Machine::new();
    let _server = machine.serve();
    let config = Config { services: Services::Stepped, ..machine.config(NAME) };
    for life in 0..5 {
        let (store, recovery) = Store::open(&machine.at("store"), &config).unwrap();
        assert_eq!(recovery.is_new, life == 0);
        assert!((0..life).all(|key| get(&store, key) == Some(vec![7; 100])), "life {life}");
        put(&store, life, &[7; 100], Memory);
        let mut loser = store.begin();
        loser.put(&store.tree("accounts").unwrap(), b"loser", b"").unwrap();
        std::mem::forget(loser);
    }
    let mut names = fs::read_dir(machine.at("store/log")).unwrap();
    assert_eq!(names.next().unwrap().unwrap().file_name(), "served", "there is no log here");
    assert!(names.next().is_none());
}

#[test]
fn a_store_goes_on_with_the_next_server_as_if_nothing_had_been() {
    let machine = Machine::new();
    let server = machine.serve();
    let store = machine.open();
    put(&store, 1, b"before", Memory);
    drop(server);
    let server = machine.serve();
    put(&store, 2, b"after", Disk);
    drop(server);
    let _server = machine.serve();
    assert_eq!([1, 2].map(|key| get(&store, key).unwrap()), [&b"before"[..], b"after"]);
    store.close().unwrap();
    let store = machine.open();
    assert_eq!([1, 2].map(|key| get(&store, key).unwrap()), [&b"before"[..], b"after"]);
    assert!(store.trouble().is_none());
}

#[test]
fn what_is_durable_is_there_when_memory_is_lost() {
    let machine = Machine::new();
    let server = machine.serve();
    let store = machine.open();
    for key in 0..200 {
        put(&store, key, &[key as u8; 700], if key % 8 == 7 { Disk } else { Memory });
    }
    drop((store, server));
    machine.lose_memory();
    let _server = machine.serve();
    let store = machine.open();
    assert!((0..200).all(|key| get(&store, key) == Some(vec![key as u8; 700])));
    support::sound(&store);
}

#[test]
fn a_store_writes_many_times_what_its_log_holds() {
    let machine = Machine::new();
    let _server = machine.serve();
    for life in 0..3_u8 {
        let store = machine.open();
        for key in 0..2000 {
            put(&store, key, &[life; 700], Memory);
        }
        assert!((0..2000).all(|key| get(&store, key) == Some(vec![life; 700])));
        assert!(store.stat().archived > holdfast_store::Rsn(RING_BYTES));
        store.close().unwrap();
    }
}

#[test]
fn a_log_is_one_stores_and_a_store_has_one_log() {
    let machine = Machine::new();
    let _server = machine.serve();
    machine.open().close().unwrap();
    assert!(matches!(machine.refusal("store", OTHER), OpenError::OtherLog));
    assert!(matches!(machine.refusal("second", NAME), OpenError::TakenLog));
    let embedded = Store::open(&machine.at("store"), &support::config());
    assert!(matches!(embedded, Err(OpenError::OtherLog)), "{embedded:?}");
    let (embedded, _) = Store::open(&machine.at("embedded"), &support::config()).unwrap();
    drop(embedded);
    assert!(matches!(machine.refusal("embedded", OTHER), OpenError::OtherLog));
    assert!(matches!(machine.refusal("third", "none"), OpenError::Server(_)));
    // What was refused has left nothing behind that keeps it from being made.
    Store::open(&machine.at("second"), &machine.config(OTHER)).unwrap();
    machine.open();
}

#[test]
fn a_log_that_others_could_use_too_is_refused() {
    let machine = Machine { clients_max: 2, ..Machine::new() };
    let server = machine.serve();
    assert!(matches!(machine.refusal("store", NAME), OpenError::SharedLog));
    drop(server);
    let machine = Machine { clients_max: 1, ..machine };
    let _server = machine.serve();
    put(&machine.open(), 1, b"1", Disk);
}

#[test]
fn a_store_is_restored_into_a_log_that_is_new() {
    let machine = Machine::new();
    let _server = machine.serve();
    let store = machine.open();
    put(&store, 1, b"1", Disk);
    store.close().unwrap();
    let restored = |log| {
        let (from, to) = (machine.at("store"), machine.at("restored"));
        restore(&from, At::End, &to, &machine.config(log), &mut |_| {})
    };
    let own = restored(NAME);
    assert!(matches!(own, Err(RestoreError::To(OpenError::TakenLog))), "{own:?}");
    restored(OTHER).unwrap();
    let (store, _) = Store::open(&machine.at("restored"), &machine.config(OTHER)).unwrap();
    assert_eq!(get(&store, 1), Some(b"1".to_vec()));
    put(&store, 2, b"2", Disk);
    assert_eq!(get(&machine.open(), 2), None);
}

#[test]
fn nothing_that_was_committed_is_lost_when_the_server_and_the_process_are_killed() {
    let machine = Machine::new();
    let (seed, mut committed) = (1, 0);
    let mut random = Random::new(seed);
    let mut server = machine.process();
    for kill in 0..10 * support::factor() {
        let mut child = kills::child(machine.root.path());
        for _ in 0..random.below(4) {
            std::thread::sleep(Duration::from_millis(random.below(100)));
            server.kill().unwrap();
            server.wait().unwrap();
            server = machine.process();
        }
        std::thread::sleep(Duration::from_millis(20 + random.below(200)));
        child.kill().unwrap();
        committed = kills::last_said(&mut child).max(committed);
        child.wait().unwrap();
        let (store, counters, history) = kills::opened(machine.root.path());
        let found = kills::count(&store, &counters, &history);
        assert!(found >= committed, "kill {kill} of seed {seed}: {found} of {committed}");
    }
    server.kill().unwrap();
    server.wait().unwrap();
    println!("{committed} transactions committed, none lost");
    assert!(committed > 0);
}
