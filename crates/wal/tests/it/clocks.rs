//! Clocks that jump: what a log decides does not depend on the time of day.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::Clock;
use holdfast_io::fake::{FakeClock, FakeEntropy, FakeFiles, Mood, Random};
use holdfast_wal::{CheckVerdict, Log, Lsn, Place, verify_at};

use crate::support::{SMALL, WorkLog, factor, place, records, work};

const DAY_NS: i64 = 86_400 * 1_000_000_000;

/// Each look at the time of day is a jump: a second, a day, to the beginning or the end of time.
/// The time since the boot begins anew with each opening, and stands still now and then.
struct Jumping {
    seed: u64,
    looks: AtomicU64,
}

impl Clock for Jumping {
    fn utc_ns(&self) -> i64 {
        let look = self.looks.fetch_add(1, Ordering::Relaxed);
        let mut random = Random::new(self.seed ^ (look << 20));
        let days = random.below(40_000) as i64 * DAY_NS;
        [i64::MIN, i64::MAX, 0, -1, days, -days][random.below(6) as usize]
    }

    fn monotonic_ns(&self) -> u64 {
        self.looks.fetch_add(1, Ordering::Relaxed) / 3
    }
}

/// What came of a life: each position that was given, what each opening found, and how often the
/// machine was asked for something.
#[derive(Debug, PartialEq, Eq)]
struct Told {
    positions: Vec<Lsn>,
    openings: Vec<String>,
    operations: u64,
}

fn step(log: &WorkLog, random: &mut Random, positions: &mut Vec<Lsn>) {
    let ticket = log.append(&work(positions.len() as u32)).unwrap();
    positions.push(ticket.end());
    match random.below(20) {
        0..=4 => ticket.wait().unwrap(),
        5 => log.checkpoint(positions[positions.len() / 2]).unwrap(),
        6 => log.checkpoint(ticket.end()).unwrap(),
        7 if positions.len().is_multiple_of(5) => log.truncate_after(ticket.end()).unwrap(),
        _ => {}
    }
}

fn life(seed: u64, clock: impl Fn(u64) -> Arc<dyn Clock>) -> Told {
    let files = FakeFiles::new(seed);
    let mut random = Random::new(seed);
    let mut told = Told { positions: Vec::new(), openings: Vec::new(), operations: 0 };
    let at = |boot: u64| {
        let files = Arc::new(files.clone());
        Place::modelled(files, clock(boot), Arc::new(FakeEntropy::new(1)))
    };
    WorkLog::create_at(&at(0), &SMALL).unwrap();
    for boot in 1..=4 {
        let (log, recovery) = Log::open_at(at(boot), &SMALL).unwrap();
        let found = records(&log).unwrap();
        told.openings.push(format!("{recovery:?} {found:?}"));
        (0..40 + random.below(300)).for_each(|_| step(&log, &mut random, &mut told.positions));
        if random.chance(50) {
            log.close().unwrap();
        }
    }
    told.operations = files.operations();
    let image = files.after_power_cut_in(Mood::LoseAll, seed);
    assert_eq!(verify_at(&place(&image), &mut |_| {}).unwrap().verdict, CheckVerdict::Clean);
    told
}

#[test]
fn a_log_whose_clocks_jump_does_what_one_does_whose_clocks_stand_still() {
    let mut jumps = 0;
    for seed in 0..12 * factor() {
        let still = life(seed, |_| Arc::new(FakeClock::default()));
        let jumping = |boot| Jumping { seed: seed ^ boot, looks: AtomicU64::new(0) };
        let jumped = life(seed, |boot| Arc::new(jumping(boot)));
        assert!(still == jumped, "seed {seed}: {still:?}\n{jumped:?}");
        jumps += still.positions.len();
    }
    println!("{jumps} appends, and a jump of the clock before each: nothing changed");
}
