//! The roster is as large as it is: what a full one costs, and what it refuses.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use holdfast_io::Kind;
use holdfast_log::{
    AppendError, Appended, CommitError, CommitLog, Frame, Log, Lsn, Marks, NoteError, ReadError,
    WordError,
};
use holdfast_volume::{Class, DirectoryVolume, Errno, NewNode, NodeId, ROOT, RenameHow, Tree};

use crate::world::World;

/// More than a roster of the test's region has room for.
const NAMES: u64 = 8_000;

/// A log that counts how often, and with how much, its notes are replaced.
struct Counting {
    log: Arc<Log>,
    rewrites: AtomicU64,
    rewritten: AtomicU64,
}

impl CommitLog for Counting {
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        self.log.append(records, parts)
    }

    fn wait_for_room(&self, payload_bytes: u64) -> Result<(), AppendError> {
        self.log.wait_for_room(payload_bytes)
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
        self.log.set_word(index, value)
    }

    fn add_to_word(&self, index: usize, more: u64) {
        self.log.add_to_word(index, more);
    }

    fn raise_word(&self, index: usize, value: u64) {
        self.log.raise_word(index, value);
    }

    fn note(&self, record: &[u8]) -> Result<(), NoteError> {
        self.log.note(record)
    }

    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError> {
        self.log.notes()
    }

    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError> {
        self.rewrites.fetch_add(1, Ordering::Relaxed);
        let counted = records.inspect(|_| {
            self.rewritten.fetch_add(1, Ordering::Relaxed);
        });
        self.log.replace_notes(&mut { counted })
    }
}

impl Counting {
    /// Rewrites, and entries in them, since the last time.
    fn taken(&self) -> (u64, u64) {
        (self.rewrites.swap(0, Ordering::Relaxed), self.rewritten.swap(0, Ordering::Relaxed))
    }
}

fn open(world: &World) -> (Arc<Counting>, DirectoryVolume) {
    let (rewrites, rewritten) = (AtomicU64::new(0), AtomicU64::new(0));
    let log = Arc::new(Counting { log: world.open_log(), rewrites, rewritten });
    let clock = Arc::new(world.clock.clone());
    let opened = DirectoryVolume::open(world.home(), log.clone(), clock, Class::Memory);
    log.taken();
    (log, opened.expect("a volume").0)
}

fn make(volume: &DirectoryVolume, name: u64) -> Result<NodeId, Errno> {
    let new = NewNode { kind: Kind::File, mode: 0o600, uid: 1, gid: 2, rdev: 0, target: b"" };
    volume.make(ROOT, format!("name-{name}").as_bytes(), &new).map(|made| made.node)
}

/// Brings everything home, so that the ring has room.
fn settle(volume: &DirectoryVolume, log: &Counting) {
    log.log.commit(log.log.marks().tail).expect("a sound disk");
    while !volume.clean_step().expect("a sound home").is_idle() {}
}

/// Makes names until the roster refuses one. Returns the nodes.
fn fill(volume: &DirectoryVolume, log: &Counting) -> Vec<NodeId> {
    let mut nodes = Vec::new();
    for name in 0..NAMES {
        match make(volume, name) {
            Ok(node) => nodes.push(node),
            Err(errno) => {
                assert_eq!(errno, Errno::NOSPC);
                settle(volume, log);
                return nodes;
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
