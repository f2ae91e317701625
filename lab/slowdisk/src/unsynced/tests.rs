//! What a power cut leaves of each sector, drawn from a seed.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_io::{Files, OpenFile, OpenHow};

use super::{SECTOR_BYTES, Unsynced};

const SECTOR: usize = SECTOR_BYTES as usize;
const SECTORS: usize = 12;
const STEPS: u64 = 24;

/// A file in memory, with all that each sector has been since it was synced, or since a cut or a
/// hole took something of it.
struct Sectors {
    contents: Vec<u8>,
    states: Vec<Vec<Vec<u8>>>,
}

impl Sectors {
    fn new() -> Self {
        Self { contents: Vec::new(), states: vec![vec![vec![0; SECTOR]]; SECTORS] }
    }

    /// Each sector has one state more; those of which something lies in `settled` have no other.
    fn note(&mut self, settled: Range<usize>) {
        let mut all = self.contents.clone();
        // What lies behind the end is zero.
        all.resize(SECTORS * SECTOR, 0);
        for (index, now) in all.chunks(SECTOR).enumerate() {
            let sector = index * SECTOR..(index + 1) * SECTOR;
            let is_within = sector.start < settled.end && sector.end > settled.start;
            if is_within && !settled.is_empty() {
                self.states[index].clear();
            }
            self.states[index].push(now.to_vec());
        }
    }

    fn write(&mut self, from: &[u8], offset: usize) {
        let end = self.contents.len().max(offset + from.len());
        self.contents.resize(end, 0);
        self.contents[offset..offset + from.len()].copy_from_slice(from);
        self.note(0..0);
    }

    fn set_len(&mut self, bytes: usize) {
        let settled = bytes..self.contents.len().max(bytes);
        self.contents.resize(bytes, 0);
        self.note(settled);
    }

    fn punch(&mut self, hole: Range<usize>) {
        let end = self.contents.len();
        self.contents[hole.start.min(end)..hole.end.min(end)].fill(0);
        self.note(hole);
    }
}

/// One change of the file, and of what should be in it.
fn step(unsynced: &Unsynced, file: &Arc<dyn OpenFile>, model: &mut Sectors, random: &mut Random) {
    let offset = random.below((SECTORS * SECTOR) as u64) as usize;
    let bytes = 1 + random.below((SECTORS * SECTOR - offset) as u64) as usize;
    let bytes = if random.chance(50) { bytes.min(100) } else { bytes };
    match random.below(10) {
        0..6 => {
            let from = vec![1 + random.below(255) as u8; bytes];
            unsynced.write(file.clone(), &from, offset as u64).unwrap();
            model.write(&from, offset);
        }
        6 | 7 => {
            unsynced.set_len(&**file, offset as u64).unwrap();
            model.set_len(offset);
        }
        8 => {
            unsynced.punch(&**file, offset as u64, bytes as u64).unwrap();
            model.punch(offset..offset + bytes);
        }
        _ => {
            unsynced.sync(file.metadata().unwrap().inode, || {});
            model.note(0..SECTORS * SECTOR);
        }
    }
}

fn live(seed: u64) {
    let (mut random, mut model) = (Random::new(seed), Sectors::new());
    let (files, unsynced) = (FakeFiles::new(seed), Unsynced::new());
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open(Path::new("file"), how).unwrap();
    for _ in 0..random.below(STEPS) {
        step(&unsynced, &file, &mut model, &mut random);
    }
    unsynced.cut(seed).unwrap();
    assert_eq!(file.metadata().unwrap().size_bytes, model.contents.len() as u64, "seed {seed}");
    let mut left = vec![0; SECTORS * SECTOR];
    file.read_full_at(&mut left, 0).unwrap();
    for (index, (left, states)) in left.chunks(SECTOR).zip(&model.states).enumerate() {
        assert!(states.iter().any(|state| state == left), "seed {seed}: sector {index} never was");
    }
}

#[test]
fn after_a_power_cut_each_sector_is_what_it_once_was() {
    (0..2000).for_each(live);
}
