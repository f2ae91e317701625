//! What commands that fail say with `--json`, whatever they fail for, and for however much.
//!
//! Standard output has one value or none. Each line of standard error is one value that says what
//! kind it is of, and one of them, the last, is why the command failed, with all causes in it.

use crate::fixture::{Ended, Fixture, NAME};
use crate::seeds::{Random, for_seeds};
use serde_json::Value;
use std::fs;

const SEEDS: u64 = 2;

const COMMANDS: [&[&str]; 19] = [
    &["umount", NAME],
    &["umount", NAME, "--force"],
    &["umount", "none"],
    &["mount", NAME],
    &["mount", "w"],
    &["wait", "none"],
    &["shutdown"],
    &["status"],
    &["volume", "check", NAME],
    &["volume", "check", "w"],
    &["volume", "make", NAME],
    &["volume", "mend", NAME],
    &["volume", "skip", NAME],
    &["volume", "aside", NAME],
    &["volume", "accept", NAME, "--memory-lost"],
    &["volume", "accept", "w", "--keep", "log"],
    &["upgrade", "server"],
    &["log", "verify", "/nowhere"],
    &["snapshot", "list", "disk/none"],
];

/// What keeps a volume from being served, or the configuration from being read.
#[derive(Clone, Copy, Debug)]
enum Obstacle {
    MemoryGone,
    NoHome,
    NoLog,
    CataloguesGone,
    NoRoomForMemory,
    TwoFaults,
}

const OBSTACLES: [Obstacle; 6] = [
    Obstacle::MemoryGone,
    Obstacle::NoHome,
    Obstacle::NoLog,
    Obstacle::CataloguesGone,
    Obstacle::NoRoomForMemory,
    Obstacle::TwoFaults,
];

/// Two volumes that nobody serves, the first of which was left in memory.
fn world() -> Fixture {
    let fixture = Fixture::left_in_memory();
    let second = format!(
        "\n[volume.w]\nhome = {:?}\nlog = {:?}\nmount = {:?}\n\
         memory = {{ medium = \"private\", size = \"8MiB\" }}\n",
        fixture.path("home-w"),
        fixture.path("log-w"),
        fixture.path("mount-w"),
    );
    fixture.configure(&(fixture.config_text() + &second));
    fixture
}

impl Obstacle {
    fn put(self, fixture: &Fixture) {
        let log = fixture.log();
        match self {
            Obstacle::MemoryGone => drop(fs::remove_file(&fixture.region)),
            Obstacle::NoHome => drop(fs::rename(fixture.home(), fixture.path("home-away"))),
            Obstacle::NoLog => drop(fs::rename(&log, fixture.path("log-away"))),
            Obstacle::CataloguesGone => {
                for name in ["catalogue", "catalogue.copy"] {
                    let _ = fs::remove_file(log.join(name));
                }
            }
            Obstacle::NoRoomForMemory => fixture.reconfigure("8MiB", "64KiB"),
            Obstacle::TwoFaults => fixture.reconfigure("[\"process\"]", "[\"nothing\", 7]"),
        }
    }
}

#[track_caller]
fn is_told_once(of: &str, ended: &Ended) {
    let values: Vec<Result<Value, _>> = ended.err.lines().map(serde_json::from_str).collect();
    let of = format!("{of}: {ended:?}");
    let kinds: Vec<String> = values
        .into_iter()
        .map(|value| {
            let value = value.unwrap_or_else(|error| panic!("{error}: {of}"));
            let kinds: Vec<_> =
                value.as_object().unwrap_or_else(|| panic!("{of}")).keys().collect();
            assert_eq!(kinds.len(), 1, "{of}");
            kinds[0].clone()
        })
        .collect();
    let failures = kinds.iter().filter(|kind| *kind == "failed").count();
    let is_failure = ended.code != Some(0) && ended.out.is_empty();
    assert_eq!(failures, usize::from(is_failure), "{of}");
    assert!(!is_failure || kinds.last().is_some_and(|kind| kind == "failed"), "{of}");
    assert!(kinds.iter().all(|it| ["failed", "progress", "log"].contains(&&**it)), "{of}");
    assert!(ended.out.lines().count() <= 1, "{of}");
    ended.out.lines().for_each(|line| drop(serde_json::from_str::<Value>(line).expect(&of)));
}

#[test]
fn whatever_a_command_fails_for_it_says_so_in_one_value() {
    for_seeds("whatever_a_command_fails_for_it_says_so_in_one_value", SEEDS, |seed| {
        let mut random = Random::new(seed);
        let fixture = world();
        for _ in 0..2 {
            let obstacle = OBSTACLES[random.below(OBSTACLES.len() as u64) as usize];
            obstacle.put(&fixture);
            for _ in 0..8 {
                let words = COMMANDS[random.below(COMMANDS.len() as u64) as usize];
                let ended = fixture.holdfast(&[words, &["--json"]].concat());
                is_told_once(&format!("seed {seed}, {obstacle:?}, {words:?}"), &ended);
            }
        }
    });
}
