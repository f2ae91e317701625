//! A source that a test writes, followed as a keeper would.

use super::*;
use crate::source::Kind;
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Instant;

const EVERY: Duration = Duration::from_millis(10);
const PATIENCE: Duration = Duration::from_secs(60);
const GOOD: &str = "ups.status: OL CHRG\nbattery.runtime: 600\n";

const TERMS: Terms = Terms {
    hold_up_ms: None,
    reserve_ms: 1000,
    drain_ms_min: 100,
    fresh_ms: 2000,
    settle_ms: 50,
    drill_ms: 1000,
};

#[derive(Debug, Default)]
struct Owner {
    is_drained: AtomicBool,
    states: Mutex<Vec<State>>,
}

impl Concerned for Owner {
    fn drilled(&self) -> Option<Shown> {
        Some(Shown { ago_ms: 0, drain_ms: 200_000, bytes_per_s: 7 })
    }

    fn is_drained(&self, _: u64) -> bool {
        self.is_drained.load(Ordering::Relaxed)
    }

    fn sharers(&self) -> u64 {
        2
    }

    fn changed(&self, report: &Report) {
        self.states.lock().unwrap().push(report.state);
    }
}

struct World {
    directory: tempfile::TempDir,
    owner: Arc<Owner>,
    monitor: Monitor,
    writes: u64,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("reading"), GOOD).unwrap();
        let kind = Kind::File(directory.path().join("reading"));
        let owner = Arc::new(Owner::default());
        let source = Source::new(kind, PATIENCE);
        let monitor = Monitor::start(source, TERMS, EVERY, owner.clone()).unwrap();
        World { directory, owner, monitor, writes: 0 }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Writes this until the power stands there.
    fn wait_for(&mut self, state: State, text: Option<&str>) -> Report {
        let begun = Instant::now();
        loop {
            self.writes += 1;
            let line = |text| format!("{text}written: {}\n", self.writes);
            if let Some(text) = text.map(line) {
                fs::write(self.path("next"), text).unwrap();
                fs::rename(self.path("next"), self.path("reading")).unwrap();
            }
            let report = self.monitor.report();
            if report.state == state {
                return report;
            }
            assert!(begun.elapsed() < PATIENCE, "{report:?}");
            thread::sleep(EVERY);
        }
    }
}

#[test]
fn a_source_that_is_well_gives_a_lease_and_one_bad_word_takes_it_back() {
    let mut world = World::new();
    assert!(!world.monitor.page().is_held());
    let armed = world.wait_for(State::Armed, Some(GOOD));
    assert_eq!((armed.drain_ms, armed.taken_back), (200_000, 0));
    let lease = world.monitor.page().read();
    assert_eq!((lease.drain_ms, lease.sharers, lease.bytes_per_s_max), (200_000, 2, 7));
    let failed = world.wait_for(State::OnBattery, Some("ups.status: OB\nbattery.runtime: 600\n"));
    assert!(!world.monitor.page().is_held());
    assert_eq!((failed.taken_back, failed.why), (1, Some(Why::MainsFailed)));
    world.wait_for(State::Draining, Some("ups.status: OB LB\n"));
    world.owner.is_drained.store(true, Ordering::Relaxed);
    world.wait_for(State::Safe, Some("ups.status: OB LB\n"));
    world.wait_for(State::Armed, Some(GOOD));
    let states = world.owner.states.lock().unwrap().clone();
    let serious = states.iter().filter(|it| !matches!(it, State::Stale | State::Charging));
    let mut serious: Vec<State> = serious.copied().collect();
    serious.dedup();
    let expected = [State::Armed, State::OnBattery, State::Draining, State::Safe, State::Armed];
    assert!(is_within(&expected, &serious), "{states:?}");
}

/// Whether these come in this order among others.
fn is_within(these: &[State], all: &[State]) -> bool {
    let mut all = all.iter();
    these.iter().all(|it| all.any(|other| other == it))
}

#[test]
fn a_notice_has_taken_the_lease_back_when_it_returns_until_the_source_tells_of_the_mains() {
    let mut world = World::new();
    world.wait_for(State::Armed, Some(GOOD));
    for times in 1..=20 {
        world.monitor.notice();
        assert!(!world.monitor.page().is_held());
        let noticed = world.monitor.report();
        assert_eq!((noticed.state, noticed.taken_back), (State::Draining, times));
        assert_eq!(noticed.why, Some(Why::Noticed));
        world.wait_for(State::Armed, Some(GOOD));
    }
}

#[test]
fn who_was_drained_while_memory_acknowledged_is_not_when_it_ends() {
    let mut world = World::new();
    world.owner.is_drained.store(true, Ordering::Relaxed);
    world.wait_for(State::Armed, Some(GOOD));
    world.monitor.notice();
    let lease = world.monitor.page().read();
    let states = world.owner.states.lock().unwrap().clone();
    assert_eq!(states.last(), Some(&State::Draining), "{states:?}");
    assert!(lease.is_hurried(now_ms()), "{lease:?}");
    world.wait_for(State::Safe, Some("ups.status: OB LB\n"));
    assert!(!world.monitor.page().read().is_hurried(now_ms()));
}

#[test]
fn what_was_written_before_a_notice_does_not_end_it() {
    let mut world = World::new();
    for _ in 0..20 {
        world.wait_for(State::Armed, Some(GOOD));
        fs::write(world.path("reading"), format!("{GOOD}written: before\n")).unwrap();
        world.monitor.notice();
        thread::sleep(5 * EVERY);
        assert_eq!(world.monitor.report().state, State::Draining);
    }
}

#[test]
fn a_notice_lasts_while_the_source_is_silent() {
    let mut world = World::new();
    world.wait_for(State::Armed, Some(GOOD));
    world.monitor.notice();
    thread::sleep(Duration::from_millis(TERMS.fresh_ms + 100));
    assert_eq!(world.monitor.report().state, State::Draining);
    world.owner.is_drained.store(true, Ordering::Relaxed);
    world.wait_for(State::Safe, None);
}

#[test]
fn a_source_that_falls_silent_loses_the_lease_by_itself() {
    let mut world = World::new();
    world.wait_for(State::Armed, Some(GOOD));
    let stale = world.wait_for(State::Stale, None);
    assert!(!world.monitor.page().is_held());
    assert!(matches!(stale.why, Some(Why::ToldLongAgo(_))), "{stale:?}");
    fs::remove_file(world.path("reading")).unwrap();
    let begun = Instant::now();
    while world.monitor.report().trouble.is_none() {
        assert!(begun.elapsed() < PATIENCE);
        thread::sleep(EVERY);
    }
}

#[test]
fn a_drill_takes_the_lease_back_and_gives_it_again() {
    let mut world = World::new();
    world.wait_for(State::Armed, Some(GOOD));
    world.monitor.drill(true);
    world.wait_for(State::Testing, Some(GOOD));
    assert!(!world.monitor.page().is_held());
    world.monitor.drill(false);
    world.wait_for(State::Armed, Some(GOOD));
}

#[test]
fn an_answer_that_took_its_time_is_as_old_as_the_question() {
    let script = format!("sleep 2.5; printf '{GOOD}'");
    let kind = Kind::Command(["/bin/sh", "-c", &script].map(String::from).to_vec());
    let owner = Arc::new(Owner::default());
    let monitor = Monitor::start(Source::new(kind, PATIENCE), TERMS, EVERY, owner).unwrap();
    let begun = Instant::now();
    while monitor.report().told.is_none() {
        assert!(begun.elapsed() < PATIENCE);
        thread::sleep(EVERY);
    }
    assert_eq!(monitor.report().state, State::Stale, "{:?}", monitor.report());
}
