//! Room that files have behind their ends, and in the middle of them: what is told of it is what
//! the home has.
//!
//! The generator draws reservations, zeros, holes, and truncations up, down and to the size that a
//! file has already, of files with names and without, on homes that do as one file system or
//! another does with what lies behind the end, and give room in blocks or in clusters. One window
//! takes few of them or many, and processes die.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeClock, FakeFiles, FakeLimits, Random};
use holdfast_io::tree::{Allocate, Errno, NodeId, ROOT, SetAttributes, Tree};
use holdfast_io::{Files, Kind};
use holdfast_memory::Region;
use holdfast_volume::{DirectVolume, DirectoryVolume};

use crate::borders::new_log;
use crate::seeds::for_each_seed;
use crate::world::{Below, config, new_node, new_region};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// Where ranges begin at the most.
const OFFSET_MAX: u64 = 16 << 20;
const RANGE_BYTES_MAX: u64 = 3 << 20;
/// Kinds of change that a life draws from, and how many of them it has.
const KINDS: u64 = 14;
const HABITS: usize = 4;
/// A few ranges, and what the gate keeps free.
const CAPACITY_BYTES: u64 = 8 << 20;
/// What one home or another gives room in.
const UNITS_BYTES: [u64; 3] = [1 << 10, 4 << 10, 64 << 10];
const STEPS: u64 = 400;

struct Machine {
    home: FakeFiles,
    log: FakeFiles,
    region: Arc<Region>,
    clock: FakeClock,
}

impl Machine {
    fn new(seed: u64) -> Machine {
        let home = FakeFiles::new(seed);
        home.set_capacity_bytes(Some(CAPACITY_BYTES));
        home.set_limits(FakeLimits {
            growing_frees: seed & 1 == 1,
            punches_behind_end: seed & 2 == 2,
            room_unit_bytes: UNITS_BYTES[(seed % 3) as usize],
            ..FakeLimits::default()
        });
        Machine { home, log: new_log(seed), region: new_region(), clock: FakeClock::default() }
    }

    fn open(&self) -> DirectVolume {
        let (home, log) = (Arc::new(self.home.clone()), Below::new(&self.log, "log"));
        let clock = Arc::new(self.clock.clone());
        let opened = DirectVolume::open(home, log, self.region.clone(), clock, config());
        opened.expect("a log made here")
    }

    fn used_bytes(&self) -> u64 {
        CAPACITY_BYTES - self.home.space().expect("a sound home").free_bytes
    }
}

/// Somebody who changes files.
struct Hand {
    /// Those that have a name or are open.
    nodes: Vec<NodeId>,
    /// What he does, of all that could be done: whoever does everything does nothing often.
    habits: Vec<u64>,
    /// Percentage of his ranges that leave the size as it is.
    keeping: u64,
    /// A process died. No home says where behind the end of a file there is room, so the next one
    /// asks for it once more.
    has_died: bool,
}

fn size_of(tree: &DirectoryVolume, node: NodeId) -> u64 {
    tree.attributes(node).expect("it is there").size_bytes
}

fn truncate(tree: &DirectoryVolume, node: NodeId, size_bytes: u64) -> Result<(), Errno> {
    let set = SetAttributes { size_bytes: Some(size_bytes), ..SetAttributes::default() };
    tree.set_attributes(node, &set).map(drop)
}

/// Sometimes whole blocks.
fn any_range(random: &mut Random) -> (u64, u64) {
    let (offset, bytes) = (random.below(OFFSET_MAX), 1 + random.below(RANGE_BYTES_MAX));
    match random.below(3) {
        0 => (offset & !4095, (bytes + 4095) & !4095),
        1 => (offset & 0xffff, bytes & 0x3fff | 1),
        _ => (offset, bytes),
    }
}

fn change(
    tree: &DirectoryVolume,
    random: &mut Random,
    (habit, keeping): (u64, u64),
    node: NodeId,
) -> Result<(), Errno> {
    let (offset, bytes) = any_range(random);
    let keep_size = random.chance(keeping);
    match habit {
        0..3 => tree.allocate(node, Allocate::Reserve { keep_size }, offset, bytes),
        3..5 => tree.allocate(node, Allocate::ZeroRange { keep_size }, offset, bytes),
        5..8 => tree.allocate(node, Allocate::PunchHole, offset, bytes),
        8 => truncate(tree, node, offset),
        9 => truncate(tree, node, offset & 0xffff),
        10 => truncate(tree, node, size_of(tree, node)),
        11 => truncate(tree, node, 0),
        _ => tree.write(node, &vec![3; (1 + (bytes & 0xffff)) as usize], offset, false),
    }
}

/// One change of a file, or of which there are.
fn step(tree: &DirectoryVolume, random: &mut Random, hand: &mut Hand) -> Result<(), Errno> {
    let Hand { nodes, habits, keeping, .. } = hand;
    let name = NAMES[random.below(3) as usize].as_bytes();
    match random.below(20) {
        0 => {
            let new = new_node(Kind::File, 0o600);
            nodes.push(tree.make(ROOT, name, &new)?.node);
            Ok(())
        }
        // Somebody has it open, until he closes it.
        1 => tree.remove_file(ROOT, name),
        2 => {
            let nameless = |node: &NodeId| tree.attributes(*node).is_ok_and(|it| it.links == 0);
            let Some(index) = nodes.iter().position(nameless) else { return Ok(()) };
            tree.forget(nodes.swap_remove(index), u64::MAX);
            Ok(())
        }
        _ => {
            let Some(node) = nodes.get(random.below(4) as usize) else { return Ok(()) };
            let habit = habits[random.below(HABITS as u64) as usize];
            change(tree, random, (habit, *keeping), *node)
        }
    }
}

/// Everything comes home, and has the room there that it is told to have.
fn bring_home(machine: &Machine, direct: &DirectVolume, hand: &Hand, told: &str) {
    while direct.log.drain().expect("a sound log").bytes > 0 {}
    loop {
        let cleaned = direct.volume.clean_step();
        let cleaned = cleaned.unwrap_or_else(|error| panic!("{told}: acknowledged, but {error}"));
        if cleaned.is_idle() {
            break;
        }
    }
    let room = |node: &NodeId| direct.volume.attributes(*node).expect("it is there");
    let told_bytes: u64 = hand.nodes.iter().map(|node| room(node).allocated_bytes).sum();
    let used_bytes = machine.used_bytes();
    let is_true = told_bytes == used_bytes || hand.has_died;
    assert!(is_true, "{told}: {used_bytes} bytes of room in the home, and {told_bytes} are told");
}

fn live(seed: u64) {
    let machine = Machine::new(seed);
    let mut random = Random::new(seed);
    let mut direct = machine.open();
    let habits = (0..HABITS).map(|_| random.below(KINDS)).collect();
    let keeping = [50, 100][random.below(2) as usize];
    let mut hand = Hand { nodes: Vec::new(), habits, keeping, has_died: false };
    let dies = random.chance(50);
    let rarely = 1 + random.below(30);
    for number in 0..STEPS {
        let told = format!("seed {seed}, step {number}");
        let mut again = random.clone();
        let mut done = step(&direct.volume, &mut random, &mut hand);
        if done == Err(Errno::NOSPC) {
            bring_home(&machine, &direct, &hand, &told);
            done = step(&direct.volume, &mut again, &mut hand);
            assert_eq!(done, Err(Errno::NOSPC), "{told}: there was room once all was home");
        }
        machine.clock.advance_ns(random.below(40_000_000));
        let marks = direct.log.marks();
        match random.below(10 * rarely) {
            0 if dies => {
                hand.has_died = true;
                drop(direct);
                direct = machine.open();
            }
            1..10 => bring_home(&machine, &direct, &hand, &told),
            _ if marks.tail.since(marks.released) > 500 << 10 => {
                bring_home(&machine, &direct, &hand, &told);
            }
            _ => {}
        }
    }
    bring_home(&machine, &direct, &hand, &format!("seed {seed}, at the end"));
    direct.detach().expect("a sound home");
    assert!(machine.home.metadata(Path::new("")).is_ok());
}

#[test]
fn a_file_has_the_room_in_the_home_that_it_is_told_to_have() {
    for_each_seed("reserved::a_file_has", &[], 0..48, live);
}

#[test]
fn a_file_that_gets_the_size_that_it_has_gives_back_what_is_behind_its_end() {
    const RANGES: u64 = 8;
    let machine = Machine::new(0);
    let direct = machine.open();
    let tree = &direct.volume;
    let node = tree.make(ROOT, b"a", &new_node(Kind::File, 0o600)).expect("a new file").node;
    let hand = Hand { nodes: vec![node], habits: Vec::new(), keeping: 100, has_died: false };
    let reserve = |number: u64| {
        let how = Allocate::Reserve { keep_size: true };
        let reserved = tree.allocate(node, how, number << 30, 1 << 20);
        reserved.and_then(|()| truncate(tree, node, 0))
    };
    let reserve_all = |told: &str, after: &dyn Fn()| {
        for number in 0..RANGES {
            let mut done = reserve(number);
            if done == Err(Errno::NOSPC) {
                bring_home(&machine, &direct, &hand, told);
                done = reserve(number);
            }
            assert_eq!(done, Ok(()), "{told}: there is room for one");
            after();
        }
    };
    reserve_all("in one window", &|| ());
    bring_home(&machine, &direct, &hand, "in one window");
    // More than there is, if it came to be more than one at a time.
    reserve_all("in a window each", &|| bring_home(&machine, &direct, &hand, "in a window each"));
    assert_eq!(tree.attributes(node).map(|found| found.allocated_bytes), Ok(0));
}
