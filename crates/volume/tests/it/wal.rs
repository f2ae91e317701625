//! A database's log on a volume: pages rewritten as they fill, segments recycled by renaming them.
//! The power goes at every single I/O of it.

use holdfast_io::Kind;
use holdfast_io::tree::{NodeId, ROOT, RenameHow, Tree};
use holdfast_volume::DirectoryVolume;

use crate::model::{image_through, timeless};
use crate::power::{Run, check_cuts};
use crate::world::{World, new_node};

const PAGE_BYTES: usize = 2048;
const PAGES_PER_SEGMENT: usize = 3;
/// A record fills a third of a page and a little, so that records cross pages.
const RECORD_BYTES: usize = 700;
const SEGMENTS_KEPT: usize = 3;
const COMMITS: usize = 60;

/// The log as its database has it in mind.
struct Wal<'a> {
    tree: &'a DirectoryVolume,
    /// Oldest first.
    segments: Vec<(String, NodeId)>,
    made: usize,
    /// Bytes written to the newest segment.
    used: usize,
    bytes: Vec<u8>,
}

impl Wal<'_> {
    /// Goes on to a new segment: the oldest under a new name, once there are enough.
    fn switch(&mut self) {
        let name = format!("segment-{}", self.made);
        self.made += 1;
        self.used = 0;
        self.bytes = vec![0; PAGES_PER_SEGMENT * PAGE_BYTES];
        let node = if self.segments.len() == SEGMENTS_KEPT {
            let (old, node) = self.segments.remove(0);
            let to = (ROOT, name.as_bytes());
            let _ = self.tree.rename((ROOT, old.as_bytes()), to, RenameHow::Replace);
            node
        } else {
            let new = new_node(Kind::File, 0o600);
            let node = self.tree.make(ROOT, name.as_bytes(), &new).map(|made| made.node);
            let node = node.unwrap_or(ROOT);
            let _ = self.tree.write(node, &self.bytes, 0, false);
            node
        };
        self.segments.push((name, node));
    }

    /// Writes the pages that a commit's record touches, whole.
    fn commit(&mut self, number: usize) {
        let end = self.used + RECORD_BYTES;
        if self.segments.is_empty() || end > self.bytes.len() {
            self.switch();
        }
        let end = self.used + RECORD_BYTES;
        self.bytes[self.used..end].fill(number as u8 + 1);
        let from = self.used / PAGE_BYTES * PAGE_BYTES;
        let to = end.next_multiple_of(PAGE_BYTES);
        self.used = end;
        if let Some((_, node)) = self.segments.last() {
            let _ = self.tree.write(*node, &self.bytes[from..to], from as u64, false);
        }
    }
}

/// Commits until operation `cut_at` of the disk.
fn run(cut_at: u64) -> Run {
    let world = World::new(cut_at);
    let (volume, _) = world.open().expect("a new volume");
    let start = world.files.operations();
    world.files.cut_power_at(start + cut_at);
    let mut seen = vec![(volume.log().marks().tail, timeless(image_through(&volume)))];
    let mut wal = Wal { tree: &volume, segments: Vec::new(), made: 0, used: 0, bytes: Vec::new() };
    let is_cut = || world.files.operations() >= start + cut_at;
    for number in 0..COMMITS {
        if number % 7 == 0 {
            wal.switch();
            seen.push((volume.log().marks().tail, timeless(image_through(&volume))));
        }
        wal.commit(number);
        seen.push((volume.log().marks().tail, timeless(image_through(&volume))));
        let failed = match number % 4 {
            1 => volume.drain_step().is_err(),
            3 => volume.clean_step().is_err() || volume.log().prepare().is_err(),
            _ => false,
        };
        if failed || is_cut() {
            break;
        }
    }
    let cut = is_cut();
    let durable = volume.log().marks().durable;
    let durable = seen.iter().filter(|(tail, _)| *tail <= durable).count();
    let images = seen.into_iter().map(|(_, image)| image).collect();
    drop(volume);
    Run { world, images, durable, cut }
}

#[test]
fn a_power_cut_at_every_io_of_a_databases_log_leaves_a_prefix_of_its_commits() {
    let images = check_cuts("log of a database", 1.., run);
    println!("{images} crash images");
    assert!(images > 300, "only {images} crash images");
}
