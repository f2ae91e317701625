//! A log with more segments than a catalogue can list.

use holdfast_io::fake::FakeFiles;

use super::*;
use crate::config::{LogConfig, Parity, Policy, Retention, Scanned};
use crate::format::catalogue::copies;
use crate::open::load::load_table;
use crate::segments::segment::Access;
use crate::state::Log;

/// What the catalogue has room for at the most, with nothing kept for holes.
const LISTED_MAX: u32 = 67_067;

/// A table is said to have so many segments.
fn say(table: &mut Table, segments: u32) {
    let slot = table.slots[0].clone();
    let entry = |file: u32| Entry { file, number: u64::from(file) };
    table.catalogue.entries = (0..segments).map(entry).collect();
    table.slots = (0..segments).map(|file| Slot { entry: entry(file), ..slot.clone() }).collect();
}

/// How many segments an open finds.
fn listed(files: &FakeFiles) -> u32 {
    let (found, _) = copies::load(files).expect("what was written is taken");
    found.entries.len() as u32
}

#[test]
fn no_segment_is_listed_that_no_open_would_find() {
    let files = FakeFiles::new(1);
    let config = LogConfig {
        segment_bytes: 64 << 10,
        segments: 2,
        dirty_bytes_max: u64::MAX,
        retention: Retention::OnDevice,
        scan: Scanned::Tail,
        parity: Parity::None,
        policy: Policy::Refuse,
    };
    Log::create(&files, *b"a very long log.", &config).expect("an empty disk takes a log");
    let mut table = load_table(&files, Access::Write).expect("a new log is sound");
    // The file has grown once before, so it has the room that is kept in it.
    for segments in [LISTED_MAX - 260, LISTED_MAX] {
        say(&mut table, segments);
        table.copies.replace(&files, &table.catalogue).expect("the disk is sound");
    }
    let segments = Segments::new(Arc::new(files.clone()), table);
    let below = |bytes| Needs { released: Lsn(bytes), durable: Lsn(bytes), generation: 1 };
    let refused = segments.prepare_one(|| below(0), true).expect_err("there are too many");
    assert!(refused.to_string().contains("make a checkpoint"), "{refused}");
    assert_eq!(listed(&files), LISTED_MAX);
    // What is needed no more makes room, and not another file.
    assert!(segments.prepare_one(|| below(128 << 10), true).expect("the disk is sound"));
    assert_eq!(listed(&files), LISTED_MAX);
}
