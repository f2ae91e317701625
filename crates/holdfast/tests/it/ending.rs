//! The end of a keeper while something is waited for: who has what it needs, or stands still, drawn
//! from a seed.
//!
//! Asked to end, a keeper starts nothing anew and waits for nothing that it only wanted to begin;
//! asked twice it ends whatever else it waits for. Either way nothing that was acknowledged is
//! lost.

use crate::fixture::{Fixture, NAME, kill, way};
use crate::seeds::{Random, for_seeds};
use rustix::process::Signal;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

const SEEDS: u64 = 6;

/// Longer than any of these ends takes: who is not heard of by then does not end.
const WATCH: Duration = Duration::from_secs(120);

/// A volume, and tables in the same configuration.
fn with_tables() -> Fixture {
    let mut fixture = Fixture::new();
    let tables = format!(
        "[table.bank]\nstore = {:?}\nmust_survive = [\"process\"]\n\
         memory = {{ medium = \"shm\", size = \"8MiB\", path = \"{}-bank\" }}\n",
        fixture.path("store"),
        fixture.region.display(),
    );
    fixture.configure(&(fixture.config_text() + &tables));
    fixture.holdfast(&["volume", "make", NAME]).succeeded();
    fixture.holdfast(&["table", "make", "bank"]).succeeded();
    fixture.watch_for(WATCH);
    fixture
}

fn pause(random: &mut Random) {
    std::thread::sleep(Duration::from_millis(random.below(1500)));
}

/// Has the tables' region go with the test.
struct Tables(PathBuf);

impl Tables {
    fn of(fixture: &Fixture) -> Tables {
        Tables(format!("{}-bank", fixture.region.display()).into())
    }
}

impl Drop for Tables {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[test]
fn a_keeper_that_waits_for_what_somebody_has_ends_when_it_is_asked_to_once() {
    for_seeds("a_keeper_that_waits_for_what_somebody_has_ends", SEEDS, |seed| {
        let random = &mut Random::new(seed);
        let mut fixture = with_tables();
        let _tables = Tables::of(&fixture);
        let places = [fixture.path("store"), fixture.log(), fixture.home()];
        let place = &places[random.below(places.len() as u64) as usize];
        println!("seed {seed}: somebody has {}", place.display());
        let held = fs::File::open(place).unwrap();
        held.lock().unwrap();
        fixture.begin_to_serve();
        pause(random);
        kill(fixture.keeper_pid(), Signal::TERM);
        fixture.reap();
        let report = fixture.take_watchdog_report();
        assert!(report.is_none(), "{report:?}\n{}", fixture.keeper_log());
        drop(held);
        fixture.serve();
        assert_eq!(fixture.stop(), Some(0));
        fixture.assert_given_back();
    });
}

/// What is stopped: the front end of the volume, or the server.
fn stand_still(fixture: &Fixture, random: &mut Random) -> i32 {
    let stopped = match fixture.server().filter(|_| random.below(2) == 0) {
        Some(server) => server,
        None => fixture.front_end(),
    };
    kill(stopped, Signal::STOP);
    stopped
}

#[test]
fn a_keeper_that_is_asked_twice_ends_whatever_stands_still_and_loses_nothing() {
    for_seeds("a_keeper_that_is_asked_twice_ends", SEEDS / 2, |seed| {
        let random = &mut Random::new(seed);
        let mut fixture = with_tables();
        let _tables = Tables::of(&fixture);
        fixture.serve();
        fs::write(fixture.mount().join("f"), "x").unwrap();
        let stopped = stand_still(&fixture, random);
        println!("seed {seed}: process {stopped} is stopped, way {}", way());
        for _ in 0..2 {
            pause(random);
            kill(fixture.keeper_pid(), Signal::TERM);
        }
        fixture.reap();
        let report = fixture.take_watchdog_report();
        assert!(report.is_none(), "{report:?}\n{}", fixture.keeper_log());
        kill(stopped, Signal::CONT);
        fixture.holdfast(&["umount", NAME]).succeeded();
        assert_eq!(fs::read(fixture.home().join("f")).unwrap(), b"x");
    });
}
