//! Every interleaving, and every reordering the memory model allows, of a disk's writers and
//! readers.
//!
//! Promise: the modules checked are the product's own source, included by path and built on loom's
//! atomics and locks; the model fails when an order it is about is weakened (`loom.sh` shows that).
//! Never: touches mapped memory: the model's bytes are loom's atomics, unordered.

#![cfg(loom)]
// A model that cannot go on stops.
#![allow(clippy::unwrap_used)]

// More than the models need, and so are most of the others.
#[allow(dead_code)]
#[path = "../../src/disk.rs"]
mod disk;
#[path = "../../src/gates.rs"]
mod gates;
#[allow(dead_code)]
#[path = "../../src/header.rs"]
mod header;
#[allow(dead_code)]
#[path = "../../src/intent.rs"]
mod intent;
#[allow(dead_code)]
#[path = "../../src/layout.rs"]
mod layout;
#[allow(dead_code)]
#[path = "../../src/lend.rs"]
mod lend;
#[path = "../../src/map.rs"]
mod map;
#[path = "../../src/memory.rs"]
mod memory;
#[path = "../../src/orderings.rs"]
mod orderings;
#[path = "../../src/parts.rs"]
mod parts;
#[path = "../../src/spares.rs"]
mod spares;
#[path = "../../src/sync.rs"]
mod sync;

use std::sync::atomic::Ordering;

use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use disk::Disk;
use header::BLOCK_BYTES;
use layout::Layout;
use memory::Memory;
use orderings::{MAP_NAME, MAP_SEE};

const SEED: u32 = 77;

/// Words of a cell that stand for all of it: its first and its last.
const CELL_WORDS: usize = 2;

/// A map of as many words as there are blocks, and cells of two words each.
struct Model {
    layout: Layout,
    map: Vec<AtomicU64>,
    cells: Vec<[AtomicU64; CELL_WORDS]>,
}

impl Model {
    fn new(layout: Layout) -> Model {
        let cell = |_| std::array::from_fn(|_| AtomicU64::new(0));
        let map = (0..layout.blocks).map(|_| AtomicU64::new(0)).collect();
        Model { layout, map, cells: (0..layout.cells).map(cell).collect() }
    }

    /// The word of the map that lies there; none is the intent's, which is never seen by two.
    fn word(&self, at: u64) -> Option<&AtomicU64> {
        let first = self.layout.word_at(0);
        at.checked_sub(first).and_then(|behind| self.map.get(behind as usize / 8))
    }

    /// The words of the cell that begins there.
    fn cell(&self, at: u64) -> &[AtomicU64; CELL_WORDS] {
        &self.cells[((at - self.layout.cell_at(0)) / BLOCK_BYTES as u64) as usize]
    }
}

impl Memory for Model {
    fn load(&self, at: u64) -> u64 {
        self.word(at).map_or(0, |word| word.load(MAP_SEE))
    }

    fn store(&self, at: u64, value: u64) {
        if let Some(word) = self.word(at) {
            word.store(value, MAP_NAME);
        }
    }

    fn copy_out(&self, at: u64, into: &mut [u8]) {
        for (word, bytes) in self.cell(at).iter().zip(into.chunks_mut(BLOCK_BYTES / CELL_WORDS)) {
            bytes[..8].copy_from_slice(&word.load(Ordering::Relaxed).to_le_bytes());
        }
    }

    fn copy_in(&self, at: u64, from: &[u8]) {
        for (at, block) in (at..).step_by(BLOCK_BYTES).zip(from.chunks(BLOCK_BYTES)) {
            let halves = block.chunks(BLOCK_BYTES / CELL_WORDS);
            for (word, bytes) in self.cell(at).iter().zip(halves) {
                let number = u64::from_le_bytes(bytes[..8].try_into().unwrap());
                word.store(number, Ordering::Relaxed);
            }
        }
    }

    fn persist(&self, _at: u64, _bytes: u64) {}

    fn set_counter(&self, _counter: usize, _value: u64) {}

    fn count(&self, _counter: usize, _change: i64) {}
}

/// A disk with so many blocks and spare cells.
fn disk(blocks: u64, spare: u32) -> Arc<Disk<Model>> {
    let layout = Layout { blocks, cells: blocks as u32 + spare };
    Arc::new(Disk::open(Model::new(layout), layout, SEED).unwrap())
}

/// Fills blocks from the first on with a number.
fn write(disk: &Disk<Model>, blocks: usize, number: u64) {
    disk.write(&number.to_le_bytes().repeat(blocks * BLOCK_BYTES / 8), 0).unwrap();
}

/// The number that the first block is full of.
fn read(disk: &Disk<Model>) -> u64 {
    read_block(disk, 0)
}

fn read_block(disk: &Disk<Model>, number: u64) -> u64 {
    let mut block = vec![0; BLOCK_BYTES];
    disk.read(&mut block, number * BLOCK_BYTES as u64).unwrap();
    let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
    assert_eq!(word(0), word(BLOCK_BYTES / CELL_WORDS), "a block is of one piece");
    word(0)
}

/// Runs all interleavings in which a thread is preempted at most so often.
fn every_interleaving(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

#[test]
fn a_reader_sees_a_block_of_one_piece_while_its_cells_are_used_in_turns() {
    every_interleaving(3, || {
        let disk = disk(1, 1);
        write(&disk, 1, 1);
        let writer = Arc::clone(&disk);
        let writer = thread::spawn(move || {
            // The second write uses the cell that the first one gave up.
            write(&writer, 1, 2);
            write(&writer, 1, 3);
        });
        let first = read(&disk);
        let second = read(&disk);
        assert!((1..=3).contains(&first) && first <= second, "{first}, then {second}");
        writer.join().unwrap();
        assert_eq!(read(&disk), 3);
    });
}

#[test]
fn a_reader_sees_a_block_of_one_piece_while_its_cell_is_given_back() {
    every_interleaving(3, || {
        let disk = disk(1, 1);
        write(&disk, 1, 1);
        let writer = Arc::clone(&disk);
        let writer = thread::spawn(move || {
            writer.zero(0, BLOCK_BYTES as u64).unwrap();
            // The cell that was given back.
            write(&writer, 1, 2);
        });
        assert!(read(&disk) <= 2);
        writer.join().unwrap();
        assert_eq!(read(&disk), 2);
    });
}

#[test]
fn what_is_lent_does_not_change_while_its_cells_are_used_in_turns() {
    every_interleaving(3, || {
        let disk = disk(1, 1);
        write(&disk, 1, 1);
        let writer = Arc::clone(&disk);
        let writer = thread::spawn(move || {
            write(&writer, 1, 2);
            write(&writer, 1, 3);
        });
        let lent = disk.lend(0, BLOCK_BYTES, |places| {
            let place = places[0].at.unwrap();
            let word = |index: usize| disk.memory().cell(place)[index].load(Ordering::Relaxed);
            // All that a copy may see must be of one write.
            assert_eq!(word(0), word(1), "what is lent is of one piece");
            word(0)
        });
        let lent = lent.unwrap();
        assert!(lent.is_none_or(|number| (1..=3).contains(&number)));
        writer.join().unwrap();
        assert_eq!(read(&disk), 3);
    });
}

#[test]
fn a_disk_that_stands_still_is_of_one_instant() {
    every_interleaving(2, || {
        let disk = disk(2, 2);
        let writer = Arc::clone(&disk);
        let writer = thread::spawn(move || {
            write(&writer, 2, 1);
            write(&writer, 1, 2);
        });
        disk.while_still(|| {
            let copied = [0, 1].map(|block| read_block(&disk, block));
            assert!([[0, 0], [1, 1], [2, 1]].contains(&copied), "{copied:?}");
            assert_eq!(read(&disk), copied[0], "nothing changes meanwhile");
        });
        writer.join().unwrap();
        assert_eq!([0, 1].map(|block| read_block(&disk, block)), [2, 1]);
    });
}

#[test]
fn writers_of_the_same_blocks_exclude_each_other() {
    every_interleaving(2, || {
        let disk = disk(2, 4);
        let other = Arc::clone(&disk);
        let other = thread::spawn(move || write(&other, 2, 1));
        write(&disk, 2, 2);
        other.join().unwrap();
        let mut blocks = vec![0; 2 * BLOCK_BYTES];
        disk.read(&mut blocks, 0).unwrap();
        assert!(blocks[0] == blocks[BLOCK_BYTES] && [1, 2].contains(&blocks[0]));
    });
}

#[test]
fn a_writer_waits_for_a_cell_that_another_gives_back() {
    every_interleaving(2, || {
        let disk = disk(1, 1);
        write(&disk, 1, 1);
        let other = Arc::clone(&disk);
        let other = thread::spawn(move || write(&other, 1, 2));
        write(&disk, 1, 3);
        other.join().unwrap();
        assert!([2, 3].contains(&read(&disk)));
    });
}
