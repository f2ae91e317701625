//! The roster takes as many names as there are, and what one costs that can do no more.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use holdfast_io::tree::{Errno, NewNode, NodeId, ROOT, RenameHow, Tree};
use holdfast_io::{Files, Kind};
use holdfast_log::{
    AppendError, Appended, CommitError, CommitLog, Frame, Log, Lsn, Marks, NoteError, ReadError,
    WordError,
};
use holdfast_volume::{Class, DirectoryVolume};

use crate::world::{Below, World};

/// More than a roster of the test's region has room for.
const NAMES: u64 = 8_000;

/// A log that counts how often, and with how much, its notes are replaced, and whose process may
/// die between two of them.
pub(crate) struct Counting {
    log: Arc<Log>,
    rewrites: AtomicU64,
    rewritten: AtomicU64,
    /// So many notes are taken until the process dies.
    pub(crate) notes_left: AtomicU64,
}

impl CommitLog for Counting {
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        self.log.append(records, parts)
    }

    fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError> {
        self.log.wait_for_room(payload_bytes, patience)
    }

    fn commit(&self, upto: Lsn) -> Result<(), CommitError> {
        self.log.commit(upto)
    }

    fn marks(&self) -> Marks {
        self.log.marks()
    }

    fn read(
        &self,
        from: Lsn,
        to: Lsn,
        each: &mut dyn FnMut(&Frame<'_>) -> bool,
    ) -> Result<(), ReadError> {
        CommitLog::read(&*self.log, from, to, each)
    }

    fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), ReadError> {
        CommitLog::copy_bytes(&*self.log, lsn, into)
    }

    fn mark(&self, released: Lsn) -> Result<(), AppendError> {
        self.log.mark(released)
    }

    fn release(&self, upto: Lsn) {
        self.log.release(upto);
    }

    fn payload_bytes_max(&self) -> u64 {
        self.log.payload_bytes_max()
    }

    fn word(&self, index: usize) -> Result<u64, WordError> {
        CommitLog::word(&*self.log, index)
    }

    fn set_word(&self, index: usize, value: u64) -> Result<(), WordError> {
        if self.notes_left.load(Ordering::Relaxed) == 0 {
            return Err(WordError::Unreachable(Arc::new(io::ErrorKind::BrokenPipe.into())));
        }
        self.log.set_word(index, value)
    }

    fn add_to_word(&self, index: usize, more: u64) {
        self.log.add_to_word(index, more);
    }

    fn raise_word(&self, index: usize, value: u64) {
        self.log.raise_word(index, value);
    }

    fn note(&self, record: &[u8]) -> Result<(), NoteError> {
        self.live_on()?;
        self.log.note(record)
    }

    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError> {
        self.log.notes()
    }

    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError> {
        self.live_on()?;
        self.rewrites.fetch_add(1, Ordering::Relaxed);
        let counted = records.inspect(|_| {
            self.rewritten.fetch_add(1, Ordering::Relaxed);
        });
        self.log.replace_notes(&mut { counted })
    }
}

impl Counting {
    /// Takes one of the notes that are left.
    fn live_on(&self) -> Result<(), NoteError> {
        let left = self.notes_left.load(Ordering::Relaxed);
        self.notes_left.store(left.saturating_sub(1), Ordering::Relaxed);
        match left {
            0 => Err(NoteError::Unreachable(Arc::new(io::ErrorKind::BrokenPipe.into()))),
            _ => Ok(()),
        }
    }

    /// Rewrites, and entries in them, since the last time.
    fn taken(&self) -> (u64, u64) {
        (self.rewrites.swap(0, Ordering::Relaxed), self.rewritten.swap(0, Ordering::Relaxed))
    }
}

/// A volume whose home has no room for the roster, so that the region's part is all of it.
fn open(world: &World) -> (Arc<Counting>, DirectoryVolume) {
    open_on(world, Below::without_room_for_rosters(&world.files, "home"))
}

pub(crate) fn open_on(world: &World, home: Arc<Below>) -> (Arc<Counting>, DirectoryVolume) {
    let (rewrites, rewritten) = (AtomicU64::new(0), AtomicU64::new(0));
    let notes_left = AtomicU64::new(u64::MAX);
    let log = Arc::new(Counting { log: world.open_log(), rewrites, rewritten, notes_left });
    let clock = Arc::new(world.clock.clone());
    let opened = DirectoryVolume::open(home, log.clone(), clock, Class::Memory);
    log.taken();
    (log, opened.expect("a volume").0)
}

fn make(volume: &DirectoryVolume, name: u64) -> Result<NodeId, Errno> {
    let new =
        NewNode { kind: Kind::File, mode: 0o600, umask: 0, uid: 1, gid: 2, rdev: 0, target: b"" };
    volume.make(ROOT, format!("name-{name}").as_bytes(), &new).map(|made| made.node)
}

/// Brings everything home, so that the ring has room.
fn settle(volume: &DirectoryVolume, log: &Counting) {
    log.log.commit(log.log.marks().tail).expect("a sound disk");
    while !volume.clean_step().expect("a sound home").is_idle() {}
}

/// Makes names until the roster refuses one for good: the first time it gives room by telling less
/// of each. Returns the nodes.
fn fill(volume: &DirectoryVolume, log: &Counting) -> Vec<NodeId> {
    let (mut nodes, mut refusals) = (Vec::new(), 0);
    for name in 0..NAMES {
        match make(volume, name) {
            Ok(node) => nodes.push(node),
            Err(errno) => {
                assert_eq!(errno, Errno::NOSPC);
                settle(volume, log);
                refusals += 1;
                if refusals > 1000 {
                    return nodes;
                }
            }
        }
        if name % 256 == 0 {
            settle(volume, log);
        }
    }
    panic!("the roster takes {NAMES} names: the test tests nothing");
}

#[test]
fn a_full_roster_refuses_names_without_being_written_anew_for_each() {
    let world = World::new(1);
    let (log, volume) = open(&world);
    let nodes = fill(&volume, &log);
    log.taken();
    let further = nodes.len() as u64;
    for name in 0..further {
        let refused = make(&volume, NAMES + name);
        assert_eq!(refused.map(|_| ()), Err(Errno::NOSPC), "name {name}");
        if name % 256 == 0 {
            settle(&volume, &log);
        }
    }
    let (rewrites, rewritten) = log.taken();
    println!("{further} names refused: {rewrites} rewrites of {rewritten} entries");
    assert!(rewrites > 0, "whether there is room is never asked again");
    assert!(rewritten <= 20 * further, "{rewritten} entries rewritten for {further} names");
}

#[test]
fn what_the_kernel_forgets_makes_room_in_a_full_roster() {
    let world = World::new(2);
    let (log, volume) = open(&world);
    let nodes = fill(&volume, &log);
    for node in &nodes[..nodes.len() / 2] {
        volume.forget(*node, 1);
    }
    for name in 0..nodes.len() as u64 / 4 {
        make(&volume, NAMES + name).unwrap_or_else(|errno| panic!("name {name}: {errno:?}"));
        if name % 256 == 0 {
            settle(&volume, &log);
        }
    }
}

#[test]
fn looking_the_same_name_up_for_ever_is_no_want_of_room() {
    let world = World::new(3);
    let (log, volume) = open(&world);
    make(&volume, 0).expect("an empty roster");
    for _ in 0..3 * NAMES {
        volume.lookup(ROOT, b"name-0").expect("it was made");
    }
    let (rewrites, rewritten) = log.taken();
    assert!(rewrites > 0 && rewritten < NAMES, "{rewrites} rewrites, {rewritten} entries");
}

/// A name that is lost here would be another file's after the next death.
#[test]
fn a_node_is_known_by_its_new_name_also_where_the_roster_is_nearly_full() {
    let world = World::new(4);
    let (log, volume) = open(&world);
    let nodes = fill(&volume, &log);
    for node in &nodes[..8] {
        volume.forget(*node, 1);
    }
    let last = nodes.len() - 1;
    let mut from = format!("name-{last}");
    for step in 0..50 {
        let to = format!("move-{step}");
        let (old, new) = ((ROOT, from.as_bytes()), (ROOT, to.as_bytes()));
        volume.rename(old, new, RenameHow::Replace).unwrap_or_else(|errno| {
            panic!("step {step}: {errno:?}");
        });
        from = to;
    }
    settle(&volume, &log);
    drop((volume, log));
    let (_log, volume) = open(&world);
    volume.attributes(nodes[last]).expect("the kernel has its number");
}

/// The files in which the roster is, if it has left the region.
fn spilled(world: &World) -> usize {
    let names = world.home().read_dir(".holdfast".as_ref()).unwrap_or_default();
    names.iter().filter(|entry| entry.name.starts_with(b"roster-")).count()
}

#[test]
fn a_roster_that_the_region_has_no_room_for_goes_on_at_home() {
    let world = World::new(5);
    let (mut log, mut volume) = open_on(&world, world.home());
    let mut nodes = Vec::new();
    for name in 0..2 * NAMES {
        let node = make(&volume, name).unwrap_or_else(|errno| panic!("name {name}: {errno:?}"));
        nodes.push(node);
        if name % 256 == 0 {
            settle(&volume, &log);
        }
    }
    settle(&volume, &log);
    let (rewrites, rewritten) = log.taken();
    println!("{} names: {rewrites} rewrites of {rewritten} entries", nodes.len());
    assert!(rewritten < nodes.len() as u64, "{rewritten} entries rewritten in the region");
    for death in 0..3 {
        drop((volume, log));
        (log, volume) = open_on(&world, world.home());
        assert_eq!(spilled(&world), 1, "death {death}");
        for (name, node) in nodes.iter().enumerate() {
            let known = volume.attributes(*node).map(|found| found.node);
            assert_eq!(known, Ok(*node), "death {death}, name {name}");
        }
        for node in nodes.drain(..1000) {
            volume.forget(node, 1);
        }
    }
    drop((volume, log));
    let (log, volume) = open_on(&world, world.home());
    nodes.drain(..).for_each(|node| volume.forget(node, 1));
    settle(&volume, &log);
    volume.detach().expect("a sound disk");
    assert_eq!(world.home().read_dir(".holdfast".as_ref()).ok(), None);
}

/// What a looked-up name costs does not grow with the names that are known.
#[test]
fn a_long_roster_is_written_anew_only_when_most_of_it_is_needless() {
    let world = World::new(6);
    let (log, volume) = open_on(&world, world.home());
    for name in 0..2 * NAMES {
        make(&volume, name).expect("room");
        if name % 256 == 0 {
            settle(&volume, &log);
        }
    }
    log.taken();
    for round in 0..20 {
        for name in 0..NAMES {
            volume.lookup(ROOT, format!("name-{name}").as_bytes()).expect("it was made");
        }
        assert_eq!(spilled(&world), 1, "round {round}");
    }
    let (rewrites, rewritten) = log.taken();
    assert!(rewritten <= 2 * rewrites, "{rewrites} rewrites of {rewritten} entries in the region");
    let bytes: u64 = ["roster-0", "roster-1", "roster-2"]
        .iter()
        .filter_map(|name| world.home().metadata(format!(".holdfast/{name}").as_ref()).ok())
        .map(|found| found.size_bytes)
        .sum();
    assert!(bytes < 16 << 20, "{bytes} bytes for {} names", 2 * NAMES);
}

/// A program that fills the disk cannot keep the volume from being served again.
#[test]
fn a_long_roster_is_taken_over_on_a_full_home() {
    let world = World::new(7);
    let (log, volume) = open_on(&world, world.home());
    let nodes = many_names(&volume, &log);
    assert_eq!(spilled(&world), 1);
    leave_room(&world, (4 << 20) + (64 << 10));
    let to = (ROOT, b"moved".as_slice());
    volume.rename((ROOT, b"name-7"), to, RenameHow::Replace).expect("room for a name");
    drop((volume, log));
    for death in 0..3 {
        let (log, volume) = open_on(&world, world.home());
        for (name, node) in nodes.iter().enumerate() {
            let known = volume.attributes(*node).map(|found| found.node);
            assert_eq!(known, Ok(*node), "death {death}, name {name}");
        }
        assert_eq!(volume.lookup(ROOT, b"moved").map(|found| found.node), Ok(nodes[7]));
        drop((volume, log));
    }
}

/// What the volume keeps at home for itself is nothing that was promised to a program.
#[test]
fn a_roster_that_goes_on_at_home_takes_no_room_that_was_promised() {
    let world = World::new(8);
    let (log, volume) = open_on(&world, world.home());
    many_names(&volume, &log);
    let file = volume.lookup(ROOT, b"name-3").expect("it was made").node;
    for at in 0..64 {
        volume.write(file, &[7; 4096], at * 4096, false).expect("room");
    }
    // What the log needs on the same disk it has before.
    log.log.commit(log.log.marks().tail).expect("a sound disk");
    leave_room(&world, (4 << 20) + (512 << 10));
    for name in (0..2 * NAMES).cycle().take(150_000) {
        // Each finding is a note, whether there is room for it or not.
        let found = volume.lookup(ROOT, format!("name-{name}").as_bytes());
        assert!(matches!(found.map(drop), Ok(()) | Err(Errno::NOSPC)), "name {name}");
    }
    settle(&volume, &log);
    volume.detach().expect("what was promised has room");
}

/// Makes so many names that the roster goes on at home.
fn many_names(volume: &DirectoryVolume, log: &Counting) -> Vec<NodeId> {
    let named = |name| {
        if name % 256 == 0 {
            settle(volume, log);
        }
        make(volume, name).expect("room")
    };
    let nodes = (0..2 * NAMES).map(named).collect();
    settle(volume, log);
    nodes
}

fn leave_room(world: &World, bytes: u64) {
    let space = world.files.space().expect("a sound disk");
    world.files.set_capacity_bytes(Some(space.total_bytes - space.free_bytes + bytes));
    // The home is asked again.
    world.clock.advance_ns(1 << 40);
}
