//! Keepers that come after one that was killed, while users of what it served, or strangers, have
//! some of it still, drawn from a seed: which, in which order they end, and what happens meanwhile.
//!
//! Whatever is drawn, once the last of them has ended everything is served by the keeper that runs,
//! and nobody had to ask for it; meanwhile status names nobody who is gone.

use crate::fixture::{Fixture, wait_until};
use crate::nbd::Client;
use crate::seeds::{Random, for_seeds};
use holdfast_client::{LogClient, ResponderClient};
use holdfast_log::CommitLog;
use rustix::mount::{UnmountFlags, unmount};
use serde_json::Value;
use std::fs::{self, File};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::time::Duration;

const SEEDS: u64 = 3;
const ROUNDS: u32 = 3;

/// So many of the strangers' holds at a time: a process that may be ending is waited for.
const HOLDS_MAX: u64 = 2;

/// What may happen while somebody has something.
const KILLED: &str = "the keeper is killed";

/// Who has something of what the next keeper is to serve. It ends when it is dropped.
#[expect(dead_code, reason = "it is had, and let go of")]
enum User {
    Log(Box<LogClient>),
    Table(ResponderClient),
    Nbd(Client<UnixStream>),
    Open(File),
    Mount(Unmounted),
    Locked(File),
    Listening(Removed, UnixListener),
}

/// Unmounts when it is dropped, as somebody does by hand.
struct Unmounted(PathBuf);

/// Removes a name when it is dropped.
struct Removed(PathBuf);

impl Drop for Unmounted {
    fn drop(&mut self) {
        // A keeper that was killed just then may not have mounted it.
        let _ = unmount(&self.0, UnmountFlags::empty());
    }
}

impl Drop for Removed {
    fn drop(&mut self) {
        let _may_be_the_keepers = fs::remove_file(&self.0);
    }
}

struct World {
    fixture: Fixture,
}

impl World {
    fn new() -> World {
        let world = World { fixture: Fixture::new() };
        fs::create_dir(world.disk_mount()).unwrap();
        let [log, disk, alone, table, shots] =
            ["log", "disk", "alone", "table", "shots"].map(|name| world.memory(name));
        let [ledger, store] = ["ledger", "store"].map(|name| world.fixture.path(name));
        let must = "must_survive = [\"process\"]";
        let text = format!(
            "[log.ledger]\nlog = {ledger:?}\n{must}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {log:?} }}\n\
             [disk.shared]\nsize = \"32MiB\"\n{must}\nmount = {:?}\nnbd = [\"unix:{}\"]\n\
             memory = {{ medium = \"shm\", path = {disk:?} }}\n\
             [disk.alone]\nsize = \"32MiB\"\n{must}\nway = \"direct\"\nnbd = [\"unix:{}\"]\n\
             memory = {{ medium = \"shm\", path = {alone:?} }}\n\
             [table.rows]\nstore = {store:?}\n{must}\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {table:?} }}\n\
             [snapshot.shots]\nsize = \"16MiB\"\n{must}\n\
             memory = {{ medium = \"shm\", path = {shots:?} }}\n",
            world.disk_mount(),
            world.socket("shared").display(),
            world.socket("alone").display(),
        );
        world.fixture.configure(&(world.fixture.config_text() + &text));
        let made = [
            ["volume", "make", "v"],
            ["log", "make", "ledger"],
            ["disk", "make", "shared"],
            ["disk", "make", "alone"],
            ["table", "make", "rows"],
            ["snapshot", "make", "shots"],
        ];
        made.iter().for_each(|command| drop(world.fixture.holdfast(command).succeeded()));
        world
    }

    fn memory(&self, name: &str) -> PathBuf {
        let mut path = self.fixture.region.clone().into_os_string();
        path.push(format!("-{name}"));
        path.into()
    }

    fn disk_mount(&self) -> PathBuf {
        self.fixture.path("disk-mount")
    }

    fn socket(&self, name: &str) -> PathBuf {
        self.fixture.path(&format!("{name}.sock"))
    }

    fn server(&self) -> PathBuf {
        self.fixture.path("run/server.sock")
    }

    fn report(&self) -> Value {
        serde_json::from_str(&self.fixture.holdfast(&["status", "--json"]).out).unwrap_or_default()
    }

    fn nbd(&self, name: &str) -> Client<UnixStream> {
        Client::new(UnixStream::connect(self.socket(name)).unwrap()).unwrap()
    }

    /// Until all is served, by a keeper that nobody asks for anything. One that could serve nothing
    /// at all has ended, and a service manager starts another. What somebody unmounted by hand when
    /// this keeper had it already stays so until he wants it; the keeper may hear of that late.
    fn wait_until_served(&mut self) {
        for attempt in 0.. {
            self.fixture.serve_again_if_ended();
            let report = self.report();
            if report["health"] == "serving" {
                return;
            }
            if report["volumes"][0]["state"] == "detached" {
                self.fixture.holdfast(&["mount", "v"]);
            }
            assert!(attempt < 600, "{}\n{}", report["troubles"], self.fixture.keeper_log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// All of it can be used.
    fn check_use(&self) {
        LogClient::connect(&self.server(), "ledger").unwrap().append(1, &[b"x"]).unwrap();
        for service in ["table/rows", "snapshot/shots"] {
            drop(ResponderClient::connect(&self.server(), service).unwrap());
        }
        for name in ["shared", "alone"] {
            self.nbd(name).write(&[7; 4096], 4096).unwrap();
            assert_eq!(self.nbd(name).read(4096, 4096).unwrap(), [7; 4096], "{name}");
        }
        assert_eq!(fs::read(self.disk_mount().join("shared")).unwrap()[4096], 7);
        fs::write(self.fixture.mount().join("f"), "x").unwrap();
    }

    /// Some who use what is served, and go on when the keeper is killed.
    fn users(&self, random: &mut Random) -> Vec<User> {
        let user = |which: u64| match which {
            0 => User::Log(Box::new(LogClient::connect(&self.server(), "ledger").unwrap())),
            1 => User::Table(ResponderClient::connect(&self.server(), "table/rows").unwrap()),
            2 => User::Nbd(self.nbd("shared")),
            3 => User::Open(File::open(self.disk_mount().join("shared")).unwrap()),
            4 => User::Nbd(self.nbd("alone")),
            _ => User::Mount(Unmounted(self.fixture.mount())),
        };
        // Without a keeper the volume's front end goes on until it is unmounted.
        (0..6).filter(|which| *which == 5 || random.below(2) == 0).map(user).collect()
    }

    /// Some strangers who have what the next keeper needs, of which nobody else has anything.
    fn strangers(&self, random: &mut Random) -> Vec<User> {
        let locked = |path: PathBuf| {
            let file = File::open(&path).unwrap();
            file.lock().unwrap_or_else(|error| panic!("{path:?}: {error}"));
            User::Locked(file)
        };
        let hold = |which: u64| match which {
            0 => locked(self.memory("log")),
            1 => locked(self.memory("disk")),
            2 => locked(self.memory("alone")),
            3 => locked(self.memory("table")),
            4 => locked(self.memory("shots")),
            5 => locked(self.fixture.path("ledger")),
            6 => locked(self.fixture.path("store")),
            7 => locked(self.fixture.log()),
            8 => locked(self.fixture.home()),
            9 | 10 => {
                let path = self.socket(if which == 9 { "shared" } else { "alone" });
                let listener = UnixListener::bind(&path).unwrap();
                User::Listening(Removed(path), listener)
            }
            _ => {
                let at = self.disk_mount();
                let mounted = std::process::Command::new("mount");
                let mounted = { mounted }.args(["-t", "tmpfs", "none"]).arg(&at).status().unwrap();
                assert!(mounted.success());
                User::Mount(Unmounted(at))
            }
        };
        let first = random.below(12);
        let more = 1 + random.below(HOLDS_MAX);
        (0..more).map(|it| hold((first + it * (1 + random.below(3))) % 12)).collect()
    }

    /// One in whose place another is to come, and who still has what it had.
    fn end_keeper(&mut self, random: &mut Random) -> Vec<User> {
        if random.below(2) == 0 {
            let users = self.users(random);
            self.fixture.kill_keeper();
            return users;
        }
        self.fixture.holdfast(&["shutdown"]).succeeded();
        self.fixture.reap();
        self.strangers(random)
    }

    fn meanwhile(&mut self, random: &mut Random) -> &'static str {
        match random.below(8) {
            0 => {
                self.fixture.serve_again_if_ended();
                self.fixture.kill_keeper();
                KILLED
            }
            1 => {
                self.fixture.holdfast(&["upgrade", "server"]);
                "the server is upgraded"
            }
            2 => {
                self.fixture.holdfast(&["upgrade", "disk", "shared"]);
                "a front end is upgraded"
            }
            _ => "nothing",
        }
    }

    /// Nobody who is gone is named for long.
    fn check_names(&self) {
        let named = || {
            let report = self.report();
            let text = format!("{} {}", report["troubles"], report["disks"]);
            let words: Vec<&str> = text.split(|it: char| !it.is_alphanumeric()).collect();
            let pids = words.windows(2).filter(|it| ["process", "pid"].contains(&it[0]));
            let pids: Vec<u32> = pids.filter_map(|it| it[1].parse().ok()).collect();
            (pids, text)
        };
        let is_there = |pid: &u32| fs::exists(format!("/proc/{pid}")).unwrap();
        wait_until(|| named().0.iter().all(is_there), || named().1);
    }

    fn round(&mut self, random: &mut Random) {
        let pause = |random: &mut Random, most: u64| {
            std::thread::sleep(Duration::from_millis(random.below(most)));
        };
        let mut users = self.end_keeper(random);
        pause(random, 300);
        self.fixture.begin_to_serve();
        pause(random, 4000);
        while !users.is_empty() {
            let user = users.swap_remove(random.below(users.len() as u64) as usize);
            drop(user);
            pause(random, 600);
            let what = self.meanwhile(random);
            if what == KILLED {
                // Its front end goes on until somebody unmounts it.
                users.push(User::Mount(Unmounted(self.fixture.mount())));
            }
            println!("  {} users are left; {what}", users.len());
            self.fixture.serve_again_if_ended();
            if random.below(3) == 0 {
                self.check_names();
            }
        }
        self.wait_until_served();
        self.check_use();
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.fixture.end_keepers_and_what_serves();
        let _ = unmount(self.disk_mount(), UnmountFlags::DETACH);
        for name in ["log", "disk", "alone", "table", "shots"] {
            let _ = fs::remove_file(self.memory(name));
        }
    }
}

#[test]
fn whoever_still_has_something_of_what_a_keeper_is_to_serve_it_serves_all_once_they_are_gone() {
    for_seeds("it_serves_all_once_they_are_gone", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new();
        world.fixture.begin_to_serve();
        world.wait_until_served();
        for round in 1..=ROUNDS {
            println!("seed {seed}, round {round}");
            world.round(&mut random);
        }
    });
}
