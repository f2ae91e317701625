//! A disk that is cut off after any store of a change, of a process or of the system.
//!
//! Promise: every state between two stores is looked at, not a sample of them.

use holdfast_io::fake::Random;

use super::recorded::{Recorded, Step, after_process, after_system};
use crate::disk::Disk;
use crate::header::BLOCK_BYTES;
use crate::layout::Layout;
use crate::memory::Memory;

const BLOCKS: usize = 12;
const SEED: u32 = 77;

/// A change of a disk.
#[derive(Clone, Debug)]
enum Change {
    Write {
        offset: usize,
        bytes: Vec<u8>,
    },
    /// A write that comes in pieces of so many bytes.
    Receive {
        offset: usize,
        bytes: Vec<u8>,
        piece_bytes: usize,
    },
    Zero {
        offset: usize,
        bytes: usize,
    },
}

impl Change {
    fn any(random: &mut Random) -> Change {
        let size = BLOCKS * BLOCK_BYTES;
        let aligned = random.chance(50);
        let unit = if aligned { BLOCK_BYTES } else { 1 };
        let offset = random.below((size / unit) as u64) as usize * unit;
        let room = (size - offset).min(5 * BLOCK_BYTES) / unit;
        let bytes = (1 + random.below(room as u64) as usize) * unit;
        if random.chance(20) {
            return Change::Zero { offset, bytes };
        }
        let mut content = vec![0; bytes];
        random.fill(&mut content);
        if aligned && random.chance(50) {
            let piece_bytes = 1000 + random.below(2 * BLOCK_BYTES as u64) as usize;
            return Change::Receive { offset, bytes: content, piece_bytes };
        }
        Change::Write { offset, bytes: content }
    }

    fn apply<M: Memory>(&self, disk: &Disk<M>) {
        match self {
            Change::Write { offset, bytes } => disk.write(bytes, *offset as u64).unwrap(),
            Change::Receive { offset, bytes, piece_bytes } => {
                let before = content(disk);
                let mut incoming = disk.incoming(*offset as u64, bytes.len()).unwrap();
                bytes.chunks(*piece_bytes).for_each(|piece| incoming.put(piece));
                assert!(incoming.filled() == *bytes, "what has come can be taken back");
                assert!(content(disk) == before, "what is not committed is not on the disk");
                incoming.commit().unwrap();
            }
            Change::Zero { offset, bytes } => disk.zero(*offset as u64, *bytes as u64).unwrap(),
        }
    }

    fn model(&self, disk: &mut [u8]) {
        match self {
            Change::Write { offset, bytes } | Change::Receive { offset, bytes, .. } => {
                disk[*offset..][..bytes.len()].copy_from_slice(bytes);
            }
            Change::Zero { offset, bytes } => disk[*offset..][..*bytes].fill(0),
        }
    }
}

fn layout() -> Layout {
    // Few spare cells, so that they are used again and again.
    Layout { blocks: BLOCKS as u64, cells: BLOCKS as u32 + 7 }
}

fn fresh() -> Disk<Recorded> {
    let memory = Recorded::zeros(layout().area_bytes());
    layout().format(&memory, SEED);
    Disk::open(memory, layout(), SEED).unwrap()
}

fn content<M: Memory>(disk: &Disk<M>) -> Vec<u8> {
    let mut content = vec![0; BLOCKS * BLOCK_BYTES];
    disk.read(&mut content, 0).unwrap();
    content
}

/// What is wrong with the disk that a death during a change left in `image`.
fn fault_of(image: Vec<u8>, old: &[u8], new: &[u8], is_one_step: bool) -> Option<String> {
    let disk = match Disk::open(Recorded::of(image), layout(), SEED) {
        Ok(disk) => disk,
        Err(fault) => return Some(fault.to_string()),
    };
    let found = content(&disk);
    let blocks = |bytes: &[u8]| bytes.chunks(BLOCK_BYTES).map(<[u8]>::to_vec).collect::<Vec<_>>();
    let whole = blocks(&found).into_iter().zip(blocks(old).into_iter().zip(blocks(new)));
    if whole.into_iter().any(|(found, (old, new))| found != old && found != new) {
        return Some("a block is neither old nor new".into());
    }
    if is_one_step && found != old && found != new {
        return Some("some blocks of a write are old and some are new".into());
    }
    // All spare cells can be used, and none of them is in use: the disk goes on.
    disk.write(&vec![0xee; 7 * BLOCK_BYTES], 0).unwrap();
    let mut expected = found;
    expected[..7 * BLOCK_BYTES].fill(0xee);
    (content(&disk) != expected).then(|| "a write changed another block".into())
}

/// Makes random changes, and gives each with the disk before it and what it did to the memory.
fn each_change(seed: u64, look: impl Fn(&mut Random, &[u8], &[Step], &[u8], &[u8], bool)) {
    let mut random = Random::new(seed);
    let disk = fresh();
    let mut model = content(&disk);
    disk.memory().take_steps();
    for _ in 0..12 {
        let (before, old) = (disk.memory().image(), model.clone());
        let change = Change::any(&mut random);
        change.apply(&disk);
        change.model(&mut model);
        assert!(content(&disk) == model, "seed {seed}: a change does what it says");
        let steps = disk.memory().take_steps();
        let is_one_step = !matches!(change, Change::Zero { .. });
        look(&mut random, &before, &steps, &old, &model, is_one_step);
    }
}

#[test]
fn a_process_that_dies_after_any_store_leaves_the_old_or_the_new() {
    for seed in 1..=20 {
        each_change(seed, |_, before, steps, old, new, is_one_step| {
            for end in 0..=steps.len() {
                let image = after_process(before, &steps[..end]);
                let fault = fault_of(image, old, new, is_one_step);
                assert_eq!(fault, None, "seed {seed}, after {end} of {} steps", steps.len());
            }
            let done = after_process(before, steps);
            assert_eq!(fault_of(done, new, new, true), None, "what is acknowledged is there");
        });
    }
}

#[test]
fn a_system_that_dies_after_any_store_leaves_the_old_or_the_new_in_persistent_memory() {
    for seed in 1..=20 {
        each_change(seed, |random, before, steps, old, new, is_one_step| {
            for end in 0..=steps.len() {
                let image = after_system(before, &steps[..end], random);
                let fault = fault_of(image, old, new, is_one_step);
                assert_eq!(fault, None, "seed {seed}, after {end} of {} steps", steps.len());
            }
            let done = after_system(before, steps, random);
            assert_eq!(fault_of(done, new, new, true), None, "what is acknowledged is there");
        });
    }
}

#[test]
fn what_was_to_be_received_and_never_came_leaves_the_disk_and_its_spare_cells_as_they_were() {
    let disk = fresh();
    let before = content(&disk);
    for _ in 0..10 {
        let mut incoming = disk.incoming(0, 5 * BLOCK_BYTES).unwrap();
        incoming.put(&[0x77; 5 * BLOCK_BYTES - 1]);
        drop(incoming);
    }
    assert!(content(&disk) == before);
    assert_eq!(fault_of(disk.memory().image(), &before, &before, true), None);
}

#[test]
fn writes_of_parts_of_blocks_and_behind_the_end_are_not_received_in_place() {
    let disk = fresh();
    let end = (BLOCKS * BLOCK_BYTES) as u64;
    for (offset, bytes) in [(1, BLOCK_BYTES), (0, BLOCK_BYTES + 1), (end, BLOCK_BYTES)] {
        assert!(disk.incoming(offset, bytes).is_none(), "{bytes} bytes at {offset}");
    }
}

#[test]
fn who_receives_leaves_cells_for_a_writer() {
    let disk = fresh();
    (0..BLOCKS).for_each(|at| disk.write(&[1; BLOCK_BYTES], (at * BLOCK_BYTES) as u64).unwrap());
    let held: Vec<_> = (0..BLOCKS).map_while(|_| disk.incoming(0, BLOCK_BYTES)).collect();
    assert_eq!(held.len(), 5, "of seven");
    disk.write(&[0x33; 2 * BLOCK_BYTES], 0).unwrap();
}

#[test]
fn an_attach_that_dies_while_it_carries_out_an_intent_is_repeated() {
    let disk = fresh();
    disk.write(&[0x11; BLOCKS * BLOCK_BYTES], 0).unwrap();
    disk.memory().take_steps();
    let before = disk.memory().image();
    disk.write(&[0x5a; 4 * BLOCK_BYTES], 3 * BLOCK_BYTES as u64).unwrap();
    let steps = disk.memory().take_steps();
    // Noted, and not withdrawn: the last store is the withdrawal.
    let last = steps.iter().rposition(|step| matches!(step, Step::Store { .. })).unwrap();
    let noted = after_process(&before, &steps[..last - 8]);
    let finished = Disk::open(Recorded::of(noted.clone()), layout(), SEED).unwrap();
    let redone = finished.memory().take_steps();
    assert!(!redone.is_empty(), "an intent was found");
    for end in 0..=redone.len() {
        let image = after_process(&noted, &redone[..end]);
        assert_eq!(fault_of(image, &content(&disk), &content(&disk), true), None, "after {end}");
    }
}

/// Copies where the block lies, as a disk must not.
fn copied_in_place() -> (Vec<u8>, Vec<Step>, Vec<u8>, Vec<u8>) {
    let disk = fresh();
    disk.write(&[0x11; BLOCKS * BLOCK_BYTES], 0).unwrap();
    let (old, before) = (content(&disk), disk.memory().image());
    disk.memory().take_steps();
    disk.memory().copy_in(layout().cell_at(3), &[0x22; BLOCK_BYTES]);
    disk.memory().persist(layout().cell_at(3), BLOCK_BYTES as u64);
    (before, disk.memory().take_steps(), old, content(&disk))
}

#[test]
fn a_copy_in_place_is_noticed() {
    let (before, steps, old, new) = copied_in_place();
    let faults = (0..=steps.len())
        .filter_map(|end| fault_of(after_process(&before, &steps[..end]), &old, &new, true));
    assert_eq!(faults.count(), BLOCK_BYTES / 512 - 1, "all but the first state and the last");
}

#[test]
fn a_disk_that_writes_nothing_back_is_noticed() {
    let mut random = Random::new(1);
    let disk = fresh();
    let (before, old) = (disk.memory().image(), content(&disk));
    disk.memory().take_steps();
    disk.write(&[0x22; 2 * BLOCK_BYTES], 0).unwrap();
    let mut steps = disk.memory().take_steps();
    steps.retain(|step| matches!(step, Step::Store { .. }));
    let new = content(&disk);
    let faults = (0..=steps.len()).filter_map(|end| {
        fault_of(after_system(&before, &steps[..end], &mut random), &old, &new, true)
    });
    assert_ne!(faults.count(), 0);
}
