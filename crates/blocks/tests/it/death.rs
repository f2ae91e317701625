//! A process killed at any instant while several threads write, a real process by a real signal.

use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use holdfast_blocks::Vdisk;
use holdfast_io::fake::Random;
use holdfast_io::{Blocks, BlocksError};
use holdfast_memory::{Area, AreaSpec, Medium, Region};

use crate::common::{BLOCK, Change, IDENTITY, content, create, for_seeds, path_of, shm};

/// Set for a child: what it does, and to which regions.
const ROLE: &str = "HOLDFAST_TEST_ROLE";
const DISK: &str = "HOLDFAST_TEST_DISK";
const NOTES: &str = "HOLDFAST_TEST_NOTES";

/// The counter of the notes that a child sets once it writes.
const READY: usize = 0;

const THREADS: usize = 3;

/// What each thread has to itself; neighbours share blocks.
const STRETCH: usize = 60 * BLOCK + 1000;
const BLOCKS: usize = THREADS * STRETCH / BLOCK + 1;
const SIZE: u64 = (BLOCKS * BLOCK) as u64;

/// The most that a change changes.
const MOST: usize = 40 * BLOCK;

const CONTENT: [u8; 8] = *b"A TEST'S";

/// The change that a thread makes as its `number`th.
fn change(seed: u64, thread: usize, number: u64) -> Change {
    let mut random = Random::new(seed << 40 ^ (thread as u64) << 32 ^ number);
    let (start, end) = (thread * STRETCH, (thread + 1) * STRETCH);
    Change::any(&mut random, start, end, MOST)
}

/// What the threads of a child tell of themselves: each how many changes were acknowledged.
struct Notes(Area);

impl Notes {
    fn create(medium: &Medium, seed: u64) -> Notes {
        let spec = AreaSpec { content: CONTENT, identity: IDENTITY, bytes: 4096 };
        let notes = Area::create(medium, &spec, |_| ()).unwrap();
        notes.word_at(8 * THREADS as u64).store(seed, Ordering::Relaxed);
        Notes(notes)
    }

    fn attach(medium: &Medium) -> Notes {
        Notes(Area::attach(medium, CONTENT).unwrap())
    }

    fn seed(&self) -> u64 {
        self.0.word_at(8 * THREADS as u64).load(Ordering::Relaxed)
    }

    fn acknowledged(&self, thread: usize) -> u64 {
        self.0.word_at(8 * thread as u64).load(Ordering::Relaxed)
    }

    fn acknowledge(&self, thread: usize, count: u64) {
        self.0.word_at(8 * thread as u64).store(count, Ordering::Release);
    }
}

/// A disk as none must be: what is written is copied to where it stays.
struct CopiedInPlace(Area);

impl Blocks for CopiedInPlace {
    fn size_bytes(&self) -> u64 {
        SIZE
    }

    fn read(&self, into: &mut [u8], offset: u64) -> Result<(), BlocksError> {
        self.0.copy_out(offset, into);
        Ok(())
    }

    fn write(&self, from: &[u8], offset: u64) -> Result<(), BlocksError> {
        self.0.copy_in(offset, from);
        Ok(())
    }

    fn write_zeroes(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.write(&vec![0; bytes as usize], offset)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), BlocksError> {
        self.write_zeroes(offset, bytes)
    }

    fn flush(&self) -> Result<(), BlocksError> {
        Ok(())
    }

    fn atomic_bytes_max(&self) -> usize {
        1
    }
}

/// Opens the disk of a role.
fn open(role: &str, medium: &Medium) -> Box<dyn Blocks> {
    match role {
        "whole" => Box::new(Vdisk::attach(medium, SIZE).unwrap()),
        "in place" => Box::new(CopiedInPlace(Area::attach(medium, CONTENT).unwrap())),
        other => panic!("no role {other}"),
    }
}

#[test]
#[ignore = "not a test: the process that the tests of this file start and kill"]
fn the_writer_to_be_killed() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let medium = |name| Medium::Shm { path: std::env::var_os(name).unwrap().into() };
    let (disk, notes) = (open(&role, &medium(DISK)), Notes::attach(&medium(NOTES)));
    let write = |thread: usize| {
        for number in 0..=u64::MAX {
            change(notes.seed(), thread, number).apply(&*disk);
            notes.acknowledge(thread, number + 1);
        }
    };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || write(thread));
        }
        notes.0.counter(READY).store(1, Ordering::Relaxed);
    });
}

/// Starts this test program again as a writer and waits until it writes.
fn start(role: &str, disk: &Medium, notes: &Medium) -> Child {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "death::the_writer_to_be_killed", "--ignored"])
        .env(ROLE, role)
        .env(DISK, path_of(disk))
        .env(NOTES, path_of(notes))
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let observed = Region::observe(notes).unwrap();
    while observed.word(READY) == 0 {
        thread::sleep(Duration::from_millis(1));
    }
    child
}

/// What is wrong with a stretch after a death, given what was there and how much was acknowledged.
fn fault_of(found: &[u8], before: &[u8], notes: &Notes, thread: usize) -> Option<String> {
    let count = notes.acknowledged(thread);
    let mut old = before.to_vec();
    (0..count).for_each(|number| change(notes.seed(), thread, number).model(&mut old));
    let mut new = old.clone();
    let last = change(notes.seed(), thread, count);
    last.model(&mut new);
    let stretch = thread * STRETCH..(thread + 1) * STRETCH;
    let is = |model: &[u8]| found[stretch.clone()] == model[stretch.clone()];
    if is(&old) || is(&new) {
        return None;
    }
    let is_either = |at: usize| found[at] == old[at] || found[at] == new[at];
    let first = stretch.clone().find(|at| !is_either(*at));
    match first {
        Some(at) => Some(format!("byte {at} is neither acknowledged nor under way")),
        None if last.is_one_step() => Some("a write is there in part".into()),
        None => blocks_fault(found, &old, &new, stretch),
    }
}

/// Of what may be there in part, the first block that is.
fn blocks_fault(
    found: &[u8],
    old: &[u8],
    new: &[u8],
    stretch: std::ops::Range<usize>,
) -> Option<String> {
    let mut starts = stretch.clone().filter(|at| at % BLOCK == 0);
    let is_torn = |at: &usize| {
        let block = *at..(at + BLOCK).min(stretch.end);
        found[block.clone()] != old[block.clone()] && found[block.clone()] != new[block]
    };
    starts.find(is_torn).map(|at| format!("the block at {at} is there in part"))
}

/// Kills writers at random instants and looks at what each left. Returns the first fault.
fn kill_again_and_again(
    role: &str,
    disk: &Medium,
    deaths: u64,
    seed: u64,
    random: &mut Random,
) -> Option<String> {
    let (_folder, notes) = shm();
    for death in 1..=deaths {
        let before = content(&*open(role, disk));
        drop(Notes::create(&notes, seed * 1000 + death));
        let mut child = start(role, disk, &notes);
        thread::sleep(Duration::from_micros(random.below(15_000)));
        child.kill().unwrap();
        child.wait().unwrap();
        let found = content(&*open(role, disk));
        let told = Notes::attach(&notes);
        let fault = (0..THREADS).find_map(|thread| fault_of(&found, &before, &told, thread));
        if fault.is_some() {
            return fault.map(|fault| format!("death {death}: {fault}"));
        }
        drop(told);
        Region::remove(&notes).unwrap();
    }
    None
}

#[test]
fn writers_that_are_killed_leave_each_write_whole_and_all_that_was_acknowledged() {
    let name = "writers_that_are_killed_leave_each_write_whole_and_all_that_was_acknowledged";
    for_seeds(name, 3, |seed, random| {
        let (_folder, disk) = shm();
        drop(create(&disk, BLOCKS));
        assert_eq!(kill_again_and_again("whole", &disk, 10, seed, random), None);
    });
}

#[test]
fn a_disk_that_copies_in_place_is_caught_by_the_same_kills() {
    let (_folder, disk) = shm();
    let spec = AreaSpec { content: CONTENT, identity: IDENTITY, bytes: SIZE };
    drop(Area::create(&disk, &spec, |_| ()).unwrap());
    let fault = kill_again_and_again("in place", &disk, 200, 1, &mut Random::new(1));
    assert!(fault.is_some());
}
