//! A store whose log is in the server.

use std::fs;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use holdfast_client::{ConnectError, LogClient};
use holdfast_io::fake::{EIO, Effect, FakeFiles, Fault, Mood, Operation, Random};
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{CommitLog, Log, LogConfig};
use holdfast_memory::{AttachError, Medium, Region, RegionSpec};
use holdfast_server::{LogSpec, Server, ServerSpec};
use holdfast_store::Durability::{self, Disk, Memory};
use holdfast_store::{At, Config, LogPlace, OpenError, RestoreError, Services, Store, restore};
use tempfile::TempDir;

use crate::{kills, support};

/// The log of every test.
pub(crate) const NAME: &str = "ledger";
/// One that is there beside it.
const OTHER: &str = "other";
/// What was taken away.
const KEPT: &str = "kept";
const RING_BYTES: u64 = 512 << 10;
pub(crate) const CONFIG: LogConfig = LogConfig::in_ring(RING_BYTES, RING_BYTES / 4, 6);
/// Tells a child where its logs are.
const DIRECTORY: &str = "HOLDFAST_STORE_SERVED_IN";

/// Who may use the logs.
#[derive(Clone, Copy)]
struct Seats {
    clients_max: u32,
    /// Users, this one among them.
    users: u32,
}

const ONE_SEAT: Seats = Seats { clients_max: 1, users: 1 };

/// Two logs in a directory, and a socket that listens.
pub(crate) struct Machine {
    root: TempDir,
    /// Memory, with the rings.
    memory: TempDir,
    listener: UnixListener,
    seats: Seats,
}

/// A server in a thread, stopped in order when this is dropped.
pub(crate) struct Serving {
    stop: Option<UnixStream>,
    _others: (UnixStream, std::io::PipeReader),
    thread: Option<JoinHandle<bool>>,
}

impl Machine {
    fn new() -> Machine {
        Machine::under(tempfile::tempdir().unwrap())
    }

    /// With a disk that takes no time, for those who want many.
    pub(crate) fn without_disk() -> Machine {
        Machine::under(tempfile::tempdir_in("/dev/shm").unwrap())
    }

    fn under(root: TempDir) -> Machine {
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let listener = UnixListener::bind(root.path().join(kills::SOCKET)).unwrap();
        let machine = Machine { root, memory, listener, seats: ONE_SEAT };
        machine.make_log(NAME, [1; 16]);
        machine.make_log(OTHER, [2; 16]);
        machine
    }

    fn make_log(&self, name: &str, identity: [u8; 16]) {
        fs::create_dir(self.at(name)).unwrap();
        let files = RealFiles::open(&self.at(name)).unwrap();
        Log::create(&files, identity, &CONFIG).unwrap();
    }

    /// Takes a log away with what it has in memory, and makes one of the same name.
    fn remake_log(&self, name: &str) {
        fs::rename(self.at(name), self.at(KEPT)).unwrap();
        fs::rename(self.memory.path().join(name), self.memory.path().join(KEPT)).unwrap();
        self.make_log(name, [3; 16]);
    }

    /// Puts the log back that was taken away.
    fn put_log_back(&self, name: &str) {
        fs::remove_dir_all(self.at(name)).unwrap();
        fs::rename(self.at(KEPT), self.at(name)).unwrap();
        fs::rename(self.memory.path().join(KEPT), self.memory.path().join(name)).unwrap();
    }

    fn serve(&self) -> Serving {
        self.serve_from(server(self.root.path(), self.memory.path(), self.seats))
    }

    /// A server of one log, whose segments are on this disk.
    pub(crate) fn serve_on(&self, disk: &FakeFiles) -> Serving {
        let logs = vec![(NAME, Arc::new(disk.clone()) as _)];
        self.serve_from(server_of(logs, self.memory.path(), self.seats))
    }

    fn serve_from(&self, server: Server) -> Serving {
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

    pub(crate) fn open(&self) -> Store {
        Store::open(&self.at("store"), &self.config(NAME)).unwrap().0
    }

    /// Somebody else at the log, once the one before is gone.
    fn client(&self) -> LogClient {
        let connect = || LogClient::connect(&self.at(kills::SOCKET), NAME);
        for _ in 0..1000 {
            match connect() {
                Err(ConnectError::Refused(_)) => std::thread::sleep(Duration::from_millis(5)),
                connected => return connected.unwrap(),
            }
        }
        connect().unwrap()
    }

    fn refusal(&self, store: &str, log: &str) -> OpenError {
        Store::open(&self.at(store), &self.config(log)).unwrap_err()
    }

    /// What a power cut leaves of the memory.
    pub(crate) fn lose_memory(&self) {
        for ring in fs::read_dir(self.memory.path()).unwrap() {
            fs::remove_file(ring.unwrap().path()).unwrap();
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
fn server(root: &Path, memory: &Path, seats: Seats) -> Server {
    let files = |name| Arc::new(RealFiles::open(&root.join(name)).unwrap());
    let logs = [NAME, OTHER].map(|name| (name, files(name) as _));
    server_of(logs.into(), memory, seats)
}

/// A server of these logs, with their rings in `memory`.
fn server_of(logs: Vec<(&str, Arc<dyn Files>)>, memory: &Path, seats: Seats) -> Server {
    let user = fs::metadata(memory).unwrap().uid();
    let spec = |(name, files): (&str, Arc<dyn Files>)| {
        let (medium, identity) =
            (Medium::Shm { path: memory.join(name) }, Log::identity_of(&*files).unwrap());
        let region = match Region::attach(&medium) {
            Err(AttachError::Missing) => {
                let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 64 << 10, identity };
                Region::create(&medium, &spec).unwrap()
            }
            attached => attached.unwrap(),
        };
        LogSpec {
            service: format!("log/{name}"),
            files,
            region: Arc::new(region),
            clock: Arc::new(RealClock),
            config: CONFIG,
            is_written_through: false,
            allow_uids: (0..seats.users).map(|other| user + other).collect(),
            clients_max: seats.clients_max,
        }
    };
    let logs = logs.into_iter().map(spec).collect();
    let (server, errors) = Server::open(ServerSpec { logs, services: vec![], clients_max: 32 });
    assert!(errors.is_empty(), "{errors:?}");
    server
}

/// What a child does: serves, on the socket that is its standard input.
#[test]
fn a_server_serves_until_it_is_killed() {
    let Ok(directories) = std::env::var(DIRECTORY) else { return };
    let (root, memory) = directories.split_once(':').unwrap();
    let listener: OwnedFd = std::io::stdin().as_fd().try_clone_to_owned().unwrap();
    let server = server(root.as_ref(), memory.as_ref(), ONE_SEAT);
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
    let mut machine = Machine::new();
    // Of two users each has a place of the two: nobody finds a second one, and nobody is alone.
    for users in [1, 2] {
        machine.seats = Seats { clients_max: 2, users };
        let _server = machine.serve();
        assert!(matches!(machine.refusal("store", NAME), OpenError::SharedLog), "{users} users");
    }
    machine.seats = ONE_SEAT;
    let _server = machine.serve();
    put(&machine.open(), 1, b"1", Disk);
}

#[test]
fn a_log_of_one_client_is_never_taken_for_a_shared_one_while_its_server_is_replaced() {
    const LIVES: u64 = 300;
    let machine = Machine::without_disk();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut random = Random::new(1);
            while !is_over.load(Ordering::Relaxed) {
                let _server = machine.serve();
                std::thread::sleep(Duration::from_micros(random.below(5000)));
            }
        });
        let mut opened =
            (0..LIVES).map(|_| Store::open(&machine.at("store"), &machine.config(NAME)).map(drop));
        let refused = opened.position(|it| matches!(it, Err(OpenError::SharedLog)));
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(refused, None, "the life that was refused");
    });
}

#[test]
fn a_log_that_was_made_anew_is_refused_until_the_old_one_is_back() {
    for is_closed in [false, true] {
        let machine = Machine::new();
        let server = machine.serve();
        let store = machine.open();
        put(&store, 1, b"1", Disk);
        if is_closed {
            store.close().unwrap();
        } else {
            drop(store);
        }
        drop(server);
        machine.remake_log(NAME);
        let server = machine.serve();
        // The second time as well: it has not become the store's by being refused.
        for _ in 0..2 {
            assert!(matches!(machine.refusal("store", NAME), OpenError::RemadeLog));
        }
        drop(server);
        machine.put_log_back(NAME);
        let _server = machine.serve();
        assert_eq!(get(&machine.open(), 1), Some(b"1".to_vec()));
    }
}

#[test]
fn what_is_archived_is_restored_into_the_log_that_was_made_anew() {
    let machine = Machine::new();
    let server = machine.serve();
    let store = machine.open();
    (0..1000).for_each(|key| put(&store, key, &[1; 700], Disk));
    let archived = store.stat().archived;
    drop((store, server));
    machine.remake_log(NAME);
    let _server = machine.serve();
    let config = machine.config(NAME);
    let restored =
        |at| restore(&machine.at("store"), at, &machine.at("restored"), &config, &mut |_| {});
    assert!(matches!(restored(At::End), Err(RestoreError::NotClosed)));
    restored(At::Rsn(archived)).unwrap();
    let (store, _) = Store::open(&machine.at("restored"), &config).unwrap();
    assert_eq!(get(&store, 0), Some(vec![1; 700]));
    assert_eq!(get(&store, 999), None, "the last one was in the log alone");
    put(&store, 1000, b"", Disk);
}

#[test]
fn a_log_that_was_made_anew_is_refused_by_a_store_that_has_nothing_in_it() {
    let machine = Machine::new();
    let server = machine.serve();
    let store = machine.open();
    put(&store, 1, b"1", Disk);
    store.close().unwrap();
    let config = machine.config(OTHER);
    restore(&machine.at("store"), At::End, &machine.at("restored"), &config, &mut |_| {}).unwrap();
    drop(server);
    machine.remake_log(OTHER);
    let _server = machine.serve();
    assert!(matches!(machine.refusal("restored", OTHER), OpenError::RemadeLog));
}

#[test]
fn a_power_cut_at_once_is_not_taken_for_a_log_that_was_made_anew() {
    let machine = Machine::new();
    let server = machine.serve();
    drop((machine.open(), server));
    for _ in 0..2 {
        machine.lose_memory();
        let server = machine.serve();
        drop((machine.open(), server));
    }
}

#[test]
fn a_store_whose_making_was_cut_short_anywhere_is_made_by_the_next_open() {
    for (cut, mood) in (1..).flat_map(|cut| [(cut, Mood::LoseAll), (cut, Mood::KeepAll)]) {
        let machine = Machine::without_disk();
        let _server = machine.serve();
        let files = support::machine(cut);
        files.cut_power_at(files.operations() + cut);
        let config = machine.config(NAME);
        let is_through = Store::open_at(support::place(&files), &config).is_ok();
        let files = files.after_power_cut_in(mood, cut);
        let (store, _) = Store::open_at(support::place(&files), &config)
            .unwrap_or_else(|error| panic!("cut {cut}, {mood:?}: {error}"));
        put(&store, 1, b"1", Disk);
        drop(store);
        let (store, _) = Store::open_at(support::place(&files), &config).unwrap();
        assert_eq!(get(&store, 1), Some(b"1".to_vec()), "cut {cut}, {mood:?}");
        if is_through {
            assert!(cut > 10, "making a store has more operations than {cut}");
            break;
        }
    }
}

/// Opens a store whose making was cut short once its log knew whose it is, and has this frame of
/// the store's identity beside.
fn open_with_frame(frame: impl Fn(&[u8]) -> Vec<u8>) -> Result<(), OpenError> {
    let machine = Machine::new();
    let _server = machine.serve();
    let (files, config) = (support::machine(1), machine.config(NAME));
    files.fail(Fault { operation: Operation::Rename, skip: 0, effect: Effect::Errno(EIO) });
    Store::open_at(support::place(&files), &config).unwrap_err();
    let mut identity = [0; 16];
    let served = files.open(Path::new("log/served"), OpenHow::default()).unwrap();
    served.read_full_at(&mut identity, 16).unwrap();
    machine.client().append(1, &[&frame(&identity)]).unwrap();
    let (store, _) = Store::open_at(support::place(&files), &config)?;
    put(&store, 1, b"1", Disk);
    assert_eq!(get(&store, 1), Some(b"1".to_vec()));
    Ok(())
}

#[test]
fn a_frame_that_a_making_left_is_the_stores_and_any_other_is_somebody_elses() {
    open_with_frame(<[u8]>::to_vec).unwrap();
    let opened = open_with_frame(|_| b"somebody else's".to_vec());
    assert!(matches!(opened, Err(OpenError::TakenLog)), "{opened:?}");
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
