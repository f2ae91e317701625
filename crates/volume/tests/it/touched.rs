//! Whatever step a process dies at, nothing that it did to its home is taken for somebody else's.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use holdfast_io::fake::{Effect, FakeFiles, Fault, Operation, Random};
use holdfast_io::tree::{Allocate, NodeId, ROOT, Tree};
use holdfast_io::{Change, Clock, Files, Kind};
use holdfast_log::Log;
use holdfast_volume::{Class, DirectoryVolume, Told, changed_by_others, touching};

use crate::seeds::for_each_seed;
use crate::world::{World, new_node};

/// What fails in the middle of a window, and is never done to a log.
const FAILING: [Operation; 3] = [Operation::SetLen, Operation::Punch, Operation::Reserve];

/// More operations of the disk than the times of files may be ahead, each a millisecond.
const LATER: usize = 40;

/// The clock that the disk has. To ask it is a change of something of its own.
#[derive(Clone)]
struct DiskClock(FakeFiles);

impl Clock for DiskClock {
    fn utc_ns(&self) -> i64 {
        let probe = Path::new("log");
        self.0.change(probe, &Change { mode: Some(0o755), ..Change::default() }).expect("sound");
        self.0.metadata(probe).expect("sound").changed_ns as i64
    }

    fn monotonic_ns(&self) -> u64 {
        self.utc_ns().cast_unsigned()
    }
}

/// Where a process dies that changes something in the home which no window has.
#[derive(Clone, Copy, Debug)]
enum DiesIn {
    Nothing,
    BeforeIt,
    BehindIt,
}

/// A volume with a file `f` in its home, and the processes that die over it.
struct Home {
    world: World,
    clock: DiskClock,
    /// Whoever died last was at nothing, so that a change by others is told.
    is_told: bool,
}

impl Home {
    fn new(seed: u64) -> Home {
        let world = World::new(seed);
        let clock = DiskClock(world.files.clone());
        Home { world, clock, is_told: true }
    }

    fn open(&self) -> (DirectoryVolume, Arc<Log>) {
        let (log, clock) = (self.world.open_log(), Arc::new(self.clock.clone()));
        let opened = DirectoryVolume::open(self.world.home(), log.clone(), clock, Class::Memory);
        (opened.expect("a sound home").0, log)
    }

    /// Makes `f`, in the home too.
    fn make_file(&self) -> NodeId {
        let (volume, log) = self.open();
        let new = new_node(Kind::File, 0o600);
        let node = volume.make(ROOT, b"f", &new).expect("a free name").node;
        log.commit(log.marks().tail).expect("a sound log");
        volume.clean_step().expect("a sound home");
        node
    }

    fn later(&self) {
        for _ in 0..LATER {
            self.clock.utc_ns();
        }
    }

    /// Somebody serves the volume, and dies with something in the log alone.
    fn serve(&mut self, node: NodeId, random: &mut Random) {
        let (volume, log) = self.open();
        self.is_told = true;
        self.later();
        (0..1 + random.below(4)).for_each(|_| change(&volume, node, random));
        if random.chance(50) {
            half_apply(self, &volume, &log, random);
        }
        if self.is_told {
            change(&volume, node, random);
        }
        drop((volume, log));
        self.later();
    }

    /// What somebody changes of `f`, and what a badge is for a home that is a file.
    fn touch(&self) {
        let change = Change { mode: Some(0o640), ..Change::default() };
        self.world.home().change(Path::new("f"), &change).expect("a sound home");
    }

    fn changed(&self) -> Vec<PathBuf> {
        let told = Told { alone_since_ns: 0, accepted_ns: 0, now_ns: self.clock.utc_ns() };
        let log = self.world.open_log();
        changed_by_others(&*self.world.home(), &*log, told).expect("a sound home")
    }

    /// A process that opens the home dies at the badge, in the bracket or without one.
    fn die_at_badge(&mut self, dies_in: DiesIn, in_bracket: bool) {
        let log = self.world.open_log();
        let touch = || {
            assert!(!matches!(dies_in, DiesIn::BeforeIt), "dies here");
            self.touch();
            assert!(!matches!(dies_in, DiesIn::BehindIt), "dies here");
        };
        let died = catch_unwind(AssertUnwindSafe(|| match in_bracket {
            true => touching(&*log, &self.clock, touch).expect("a sound log"),
            false => touch(),
        }));
        self.is_told &= died.is_ok();
    }
}

/// Applies what it can of one window.
fn half_apply(home: &mut Home, volume: &DirectoryVolume, log: &Log, random: &mut Random) {
    log.commit(log.marks().tail).expect("a sound log");
    let operation = FAILING[random.below(FAILING.len() as u64) as usize];
    let fault = Fault { operation, skip: random.below(3), effect: Effect::Errno(5) };
    home.world.files.fail(fault);
    home.is_told = volume.clean_step().is_ok();
    home.world.files.forget_faults();
}

fn change(volume: &DirectoryVolume, node: NodeId, random: &mut Random) {
    let (offset, bytes) = (random.below(20_000), 1 + random.below(5000));
    let changed = match random.below(4) {
        0 => volume.allocate(node, Allocate::PunchHole, offset, bytes),
        1 => volume.allocate(node, Allocate::Reserve { keep_size: false }, offset, bytes),
        _ => volume.write(node, &vec![random.any() as u8; bytes as usize], offset, false),
    };
    changed.expect("room");
}

fn drawn_badge(random: &mut Random) -> DiesIn {
    [DiesIn::Nothing, DiesIn::BeforeIt, DiesIn::BehindIt][random.below(3) as usize]
}

/// Lives of processes that each die. Returns how often a change by others was told.
fn live(seed: u64) -> u64 {
    let (mut random, mut home, mut told_of) = (Random::new(seed), Home::new(seed), 0);
    let node = home.make_file();
    for life in 0..20 {
        let told = format!("seed {seed}, life {life}");
        home.serve(node, &mut random);
        assert_eq!(home.changed(), [] as [PathBuf; 0], "{told}: nobody did anything");
        home.die_at_badge(drawn_badge(&mut random), true);
        assert_eq!(home.changed(), [] as [PathBuf; 0], "{told}: nobody but the badge did");
        home.later();
        if random.chance(50) {
            home.touch();
            let wanted = if home.is_told { vec![PathBuf::from("f")] } else { Vec::new() };
            assert_eq!(home.changed(), wanted, "{told}: somebody did");
            told_of += u64::from(home.is_told);
        }
    }
    told_of
}

#[test]
fn nothing_of_the_volumes_own_is_told_as_a_change_by_others_whatever_step_it_died_at() {
    let (told_of, seeds) = (Cell::new(0), Cell::new(0));
    for_each_seed("nothing_of_the_volumes_own", &[], 0..12, |seed| {
        told_of.set(told_of.get() + live(seed));
        seeds.set(seeds.get() + 1);
    });
    // One that is replayed may have none.
    assert!(told_of.get() > 0 || seeds.get() == 1, "what others did is never told");
}

/// The canary: a badge that no bracket is around.
#[test]
fn a_badge_outside_of_the_bracket_would_be_told_as_a_change_by_others() {
    let mut home = Home::new(1);
    let node = home.make_file();
    let (volume, log) = home.open();
    change(&volume, node, &mut Random::new(1));
    drop((volume, log));
    home.later();
    home.die_at_badge(DiesIn::BehindIt, false);
    assert_eq!(home.changed(), [PathBuf::from("f")]);
}
