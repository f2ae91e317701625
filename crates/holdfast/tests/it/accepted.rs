//! Losses that somebody accepts: where there is one, once; where there is none, the order is
//! refused, and changes nothing.

use crate::fixture::{Ended, Fixture, NAME, kill};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SEEDS: u64 = 2;

/// What has a log, and the words that accept the loss of its memory.
#[derive(Clone, Copy, Debug)]
enum Of {
    Volume,
    Log,
    Table,
}

/// What became of it before.
#[derive(Clone, Copy, Debug)]
enum Before {
    NeverServed,
    ServedToTheEnd,
    MemoryIsThere,
    MemoryIsGone,
    RestartTookIt,
}

struct World {
    fixture: Fixture,
    of: Of,
}

impl World {
    fn new(of: Of) -> World {
        let fixture = Fixture::made();
        let memory = |name| format!("{}-{name}", fixture.region.display());
        let lines = format!(
            "\n[log.l]\nlog = {:?}\nmust_survive = [\"process\"]\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n\
             \n[table.t]\nstore = {:?}\nmust_survive = [\"process\"]\n\
             memory = {{ medium = \"shm\", size = \"8MiB\", path = {:?} }}\n",
            fixture.path("log-l"),
            memory("l"),
            fixture.path("store-t"),
            memory("t"),
        );
        fixture.configure(&(fixture.config_text() + &lines));
        fixture.holdfast(&["log", "make", "l"]).succeeded();
        fixture.holdfast(&["table", "make", "t"]).succeeded();
        World { fixture, of }
    }

    fn memory(&self) -> PathBuf {
        let of_volume = self.fixture.region.display();
        match self.of {
            Of::Volume => self.fixture.region.clone(),
            Of::Log => format!("{of_volume}-l").into(),
            Of::Table => format!("{of_volume}-t").into(),
        }
    }

    fn log(&self) -> PathBuf {
        match self.of {
            Of::Volume => self.fixture.log(),
            Of::Log => self.fixture.path("log-l"),
            Of::Table => self.fixture.path("store-t").join("log"),
        }
    }

    fn accept(&self, options: &[&str]) -> Ended {
        let words = match self.of {
            Of::Volume => ["volume", "accept", NAME, "--memory-lost"],
            Of::Log => ["log", "accept", "l", "--memory-lost"],
            Of::Table => ["table", "accept", "t", "--memory-lost"],
        };
        self.fixture.holdfast(&[&words, options].concat())
    }

    /// Nobody serves anything when this returns.
    fn live(&mut self, before: Before) {
        if matches!(before, Before::NeverServed) {
            return;
        }
        self.fixture.serve();
        fs::write(self.fixture.mount().join("f"), "x").unwrap();
        let served = || fs::metadata(self.memory()).is_ok();
        crate::fixture::wait_until(served, || self.fixture.keeper_log());
        match before {
            Before::ServedToTheEnd => assert_eq!(self.fixture.stop(), Some(0)),
            _ => self.die(),
        }
        match before {
            Before::MemoryIsGone => fs::remove_file(self.memory()).unwrap(),
            Before::RestartTookIt => {
                fs::remove_file(self.memory()).unwrap();
                self.fixture.restart();
            }
            _ => {}
        }
    }

    fn die(&mut self) {
        let server = self.fixture.server();
        server.into_iter().for_each(|pid| kill(pid, Signal::STOP));
        self.fixture.kill_all();
        server.into_iter().for_each(|pid| kill(pid, Signal::KILL));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        for name in ["l", "t"] {
            let _ = fs::remove_file(format!("{}-{name}", self.fixture.region.display()));
        }
    }
}

fn files(directory: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let paths = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    let paths = paths.filter(|path| path.is_file());
    paths.map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

#[test]
fn a_loss_is_accepted_once_and_only_where_there_is_one() {
    let befores = [
        Before::NeverServed,
        Before::ServedToTheEnd,
        Before::MemoryIsThere,
        Before::MemoryIsGone,
        Before::RestartTookIt,
    ];
    for_seeds("a_loss_is_accepted_once_and_only_where_there_is_one", SEEDS, |seed| {
        let mut random = Random::new(seed);
        for of in [Of::Volume, Of::Log, Of::Table] {
            let before = befores[random.below(befores.len() as u64) as usize];
            [Before::NeverServed, before].into_iter().for_each(|before| accepts(of, before));
        }
    });
}

fn accepts(of: Of, before: Before) {
    println!("{of:?}, {before:?}");
    let mut world = World::new(of);
    world.live(before);
    if matches!(before, Before::MemoryIsGone) {
        let said = world.accept(&[]).succeeded().out;
        assert!(said.contains("may be lost"), "{said}");
    }
    let was = files(&world.log());
    world.accept(&[]).expect(2, &["nothing was changed", "serve it"]);
    let told = world.accept(&["--json"]);
    assert_eq!((told.code, &*told.out), (Some(2), ""), "{told:?}");
    assert!(files(&world.log()) == was, "{of:?}, {before:?}: what is refused is as it was");
    world.fixture.serve();
    assert_eq!(world.fixture.stop(), Some(0));
}
