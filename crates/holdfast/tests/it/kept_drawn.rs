//! What a service manager kept of a volume, and a configuration that was changed while nobody
//! served it, drawn from a seed: what is killed, what is changed, and whether that is put back.
//!
//! Whatever is drawn, a program with a file open writes on without an error, or it waits until the
//! configuration is put back and the keeper started again, and then writes on; the mount is over
//! its place all the time, and what was written is in the home in the end.

use crate::fixture::{Fixture, NAME, kill, wait_until, way};
use crate::seeds::{Random, for_seeds};
use crate::service_manager::Manager;
use rustix::mount::{UnmountFlags, unmount};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

const SEEDS: u64 = 8;
const ROUNDS: u32 = 2;

/// What may be changed in the configuration of the volume.
const CHANGES: [&str; 11] = [
    "way",
    "mount",
    "no mount",
    "home",
    "log",
    "memory.path",
    "memory.size",
    "write_through",
    "removed",
    "renamed to an earlier name",
    "renamed to a later name",
];

/// A program that writes to a file that it has open, one number after the other, as if nothing
/// could ever happen.
struct Program {
    written: Arc<AtomicU64>,
    is_to_end: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<()>>,
}

impl Program {
    fn start(path: PathBuf) -> Program {
        let file = File::create(path).unwrap();
        let (written, is_to_end) = (Arc::<AtomicU64>::default(), Arc::<AtomicBool>::default());
        let (count, end) = (written.clone(), is_to_end.clone());
        let write = move || {
            while !end.load(Ordering::Relaxed) {
                let number = count.load(Ordering::Relaxed);
                file.write_all_at(&number.to_le_bytes(), number * 8)?;
                count.store(number + 1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(1));
            }
            Ok(())
        };
        Program { written, is_to_end, thread: std::thread::spawn(write) }
    }

    fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    fn has_failed(&self) -> bool {
        self.thread.is_finished()
    }

    /// So many numbers were written.
    fn end(self) -> u64 {
        self.is_to_end.store(true, Ordering::Relaxed);
        self.thread.join().unwrap().expect("it writes on");
        self.written.load(Ordering::Relaxed)
    }
}

struct World {
    fixture: Fixture,
    manager: Manager,
    /// The configuration with which everything began.
    text: String,
}

impl World {
    fn new() -> World {
        let mut fixture = Fixture::made();
        let (manager, text) = (Manager::of(&fixture), fixture.config_text());
        for name in ["other-mount", "other-home"] {
            fs::create_dir(fixture.path(name)).unwrap();
        }
        manager.start(&mut fixture);
        World { fixture, manager, text }
    }

    /// The configuration with one thing changed.
    fn changed(&self, what: &str, text: &str) -> String {
        let place = |of: PathBuf, to: &str| {
            text.replace(&format!("= {of:?}"), &format!("= {:?}", self.fixture.path(to)))
        };
        let named = |name: &str| text.replace("[volume.v]", &format!("[volume.{name}]"));
        match what {
            "way" => text.replace(&format!("way = {:?}", way()), &format!("way = {:?}", other())),
            "mount" => place(self.fixture.mount(), "other-mount"),
            "no mount" => text.replace(&format!("mount = {:?}\n", self.fixture.mount()), ""),
            "home" => place(self.fixture.home(), "other-home"),
            "log" => place(self.fixture.log(), "other-log"),
            "memory.path" => {
                let (is, other) = (&self.fixture.region, self.fixture.block_cache());
                text.replace(&format!("{is:?}"), &format!("{other:?}"))
            }
            "memory.size" => text.replace("\"8MiB\"", "\"16MiB\""),
            "write_through" => format!("{text}write_through = true\n"),
            "removed" => text.split_once("[volume.").map_or(text, |(before, _)| before).to_owned(),
            "renamed to an earlier name" => named("a"),
            _ => named("w"),
        }
    }

    /// The keeper, and perhaps what it had started, die in any order.
    fn kill(&mut self, random: &mut Random) {
        let mut pids = Vec::from_iter(self.fixture.server());
        pids.push(self.fixture.front_end());
        pids.retain(|_| random.below(3) > 0);
        if random.below(2) == 0 {
            pids.reverse();
        }
        let keeper = self.fixture.keeper_pid();
        // It is to start none of them anew.
        kill(keeper, Signal::STOP);
        pids.into_iter().for_each(|pid| kill(pid, Signal::KILL));
        self.fixture.kill_keeper();
    }

    /// Until the program has written on, or the keeper has said why it does not: true if it has.
    fn goes_on(&mut self, program: &Program) -> bool {
        let before = program.written() + 3;
        let is_on = || program.written() > before;
        let says = |word: &str| self.fixture.keeper_log().contains(word);
        let ends = || self.fixture.keeper_log().lines().any(|line| line.starts_with("Error"));
        // Where the volume goes on as it was, that is what is refused which is in its way.
        let refused = || ends() || says("ERROR") && !says("volume v is taken up as it was kept");
        let is_decided = || {
            assert!(!program.has_failed(), "an error, with\n{}", self.fixture.keeper_log());
            assert!(self.fixture.is_mounted(), "bare, with\n{}", self.fixture.keeper_log());
            is_on() || self.fixture.has_ended() || refused()
        };
        wait_until(is_decided, || self.fixture.keeper_log());
        // One that serves may have said something before.
        std::thread::sleep(Duration::from_millis(500));
        assert!(!program.has_failed(), "an error, with\n{}", self.fixture.keeper_log());
        is_on()
    }

    /// The keeper that does not serve as it is configured says so, with what to do.
    fn check_told(&self, what: &str, goes_on: bool) {
        if what == "no mount" {
            // Such a configuration is refused whatever is kept.
            let is_told = || self.fixture.keeper_log().contains("neither mount nor");
            wait_until(is_told, || self.fixture.keeper_log());
            return;
        }
        assert!(goes_on, "{what} could have been served:\n{}", self.fixture.keeper_log());
        let told = || self.fixture.status_of(NAME)["problem"].as_str().unwrap_or("").to_owned();
        wait_until(|| told().contains("`holdfast "), || format!("{what}: {}", told()));
    }

    fn round(&mut self, random: &mut Random) {
        let program = Program::start(self.fixture.mount().join("f"));
        wait_until(|| program.written() > 5, || self.fixture.keeper_log());
        self.kill(random);
        let what = CHANGES[random.below(CHANGES.len() as u64) as usize];
        println!("  changed: {what}");
        let changed = self.changed(what, &self.text);
        assert_ne!(changed, self.text, "{what}");
        self.fixture.configure(&changed);
        self.manager.begin(&mut self.fixture);
        let goes_on = self.goes_on(&program);
        self.check_told(what, goes_on);
        // A front end that lives on serves without a keeper, too.
        let is_kept = goes_on && !self.fixture.has_ended();
        let is_given_back = is_kept && random.below(2) == 0;
        if !is_given_back {
            self.put_back(random, &program);
        }
        self.give_back(program);
        self.fixture.configure(&self.text);
        self.manager.start(&mut self.fixture);
    }

    fn put_back(&mut self, random: &mut Random, program: &Program) {
        self.fixture.configure(&self.text);
        match self.fixture.has_ended() {
            true => drop(self.fixture.reap()),
            false => self.kill(random),
        }
        self.manager.start(&mut self.fixture);
        let before = program.written();
        wait_until(|| program.written() > before + 3, || self.fixture.keeper_log());
    }

    /// What was written is in the home, and nothing is kept any more.
    fn give_back(&mut self, program: Program) {
        let written = program.end();
        self.fixture.stop();
        let found = fs::read(self.fixture.home().join("f")).unwrap();
        let expected: Vec<u8> = (0..written).flat_map(u64::to_le_bytes).collect();
        assert!(found == expected, "{} of {} bytes", found.len(), expected.len());
        let names = || self.manager.names();
        wait_until(|| names().is_empty(), || format!("kept: {:?}", names()));
        assert!(!self.fixture.is_mounted());
    }
}

impl Drop for World {
    /// A program that still waits would have this process wait for it, which keeps what it waits
    /// for.
    fn drop(&mut self) {
        let _may_be_gone = unmount(self.fixture.mount(), UnmountFlags::FORCE);
    }
}

fn other() -> &'static str {
    if way() == "queue" { "direct" } else { "queue" }
}

#[test]
fn a_program_on_a_volume_whose_configuration_was_changed_while_nobody_served_it_sees_a_pause() {
    for_seeds("sees_a_pause", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let mut world = World::new();
        for round in 1..=ROUNDS {
            println!("seed {seed}, round {round}");
            world.round(&mut random);
        }
    });
}
