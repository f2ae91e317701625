//! FORMAT.md and the code say the same: bytes spelled out by hand.

use holdfast_format_docs::Tables;
use holdfast_io::checksum::crc32c;

use super::home::described;
use super::recorded::Recorded;
use crate::cache::{Cache, CacheLayout, Home};
use crate::disk::Disk;
use crate::intent::{self, Entry};
use crate::layout::{Layout, SPARE_CELLS};
use crate::map::MapWords;
use crate::memory::Memory;

const TABLES: Tables = Tables::of(crate::FORMAT);
const SEED: u32 = 77;

/// The bytes of a field.
fn field<'a>(bytes: &'a [u8], section: &str, name: &str) -> &'a [u8] {
    let fields = TABLES.fields(section);
    let (_, range) = fields.into_iter().find(|field| field.0 == name).unwrap();
    &bytes[range]
}

fn check(parts: &[&[u8]]) -> [u8; 4] {
    parts.iter().fold(SEED, |sum, part| crc32c(sum, part)).to_le_bytes()
}

#[test]
fn a_new_disk_is_what_the_table_says() {
    let layout = Layout::of(9);
    let memory = Recorded::zeros(layout.area_bytes());
    layout.format(&memory, SEED);
    let bytes = memory.image();
    let of = |name| field(&bytes, "Disk", name);
    assert_eq!(of("version"), 1_u32.to_le_bytes());
    assert_eq!(of("block_bytes"), 4096_u64.to_le_bytes());
    assert_eq!(of("blocks"), 9_u64.to_le_bytes());
    assert_eq!(of("cells"), (9 + SPARE_CELLS).to_le_bytes());
    assert_eq!(of("header_check"), check(&[&bytes[..4], &bytes[8..32]]));
    assert!(bytes[32..].iter().all(|byte| *byte == 0), "no intent, no cell, nothing else");
    assert!(TABLES.words().contains(&format!("{SPARE_CELLS} more than there are blocks")));
    assert_eq!(layout.cell_at(0), 3 * 4096, "the map of nine blocks fits one page");
    assert_eq!(layout.area_bytes(), 3 * 4096 + (9 + SPARE_CELLS) * 4096);
}

#[test]
fn a_map_word_is_what_the_table_says() {
    let word = MapWords::of(SEED).encode(5, Some(8)).to_le_bytes();
    assert_eq!(word[..4], 9_u32.to_le_bytes());
    assert_eq!(word[4..], check(&[&5_u64.to_le_bytes(), &9_u32.to_le_bytes()]));
    let layout = Layout::of(9);
    let memory = Recorded::zeros(layout.area_bytes());
    layout.format(&memory, SEED);
    let disk = Disk::open(memory, layout, SEED).unwrap();
    disk.write(&[1; 4096], 5 * 4096).unwrap();
    let named = MapWords::of(SEED).encode(5, Some(0)).to_le_bytes();
    assert_eq!(disk.memory().image()[8192 + 5 * 8..][..8], named);
}

#[test]
fn an_intent_is_what_the_table_says() {
    let memory = Recorded::zeros(8192);
    let entries = [Entry { block: 3, cell: 4 }, Entry { block: 5, cell: 6 }];
    intent::note(&memory, SEED, &entries);
    let bytes = memory.image();
    assert_eq!(field(&bytes, "Intent", "entry_count"), 2_u32.to_le_bytes());
    let written: Vec<u8> = [3_u32, 4, 5, 6].iter().flat_map(|half| half.to_le_bytes()).collect();
    assert_eq!(bytes[4104..4120], written);
    let expected = check(&[&2_u32.to_le_bytes(), &written]);
    assert_eq!(field(&bytes, "Intent", "intent_check"), expected);
    assert!(TABLES.words().contains(&format!("at most {}", intent::ENTRIES_MAX)));
    intent::withdraw(&memory);
    assert_eq!(memory.load(4096), 0);
}

#[test]
fn a_map_word_with_one_or_two_wrong_bits_is_damage_or_no_word_at_all() {
    let words = MapWords::of(SEED);
    let right = words.encode(1234, Some(56));
    for one in 0..64 {
        for other in 0..64 {
            let wrong = right ^ 1 << one ^ if one == other { 0 } else { 1 << other };
            assert!(words.decode(1234, wrong).is_err(), "bits {one} and {other}");
        }
    }
    assert!(words.decode(1235, right).is_err(), "the word of another block");
    assert!(MapWords::of(SEED + 1).decode(1234, right).is_err(), "the word of another disk");
    assert_eq!(words.decode(1234, right), Ok(Some(56)));
}

#[test]
fn a_cache_is_what_the_tables_say() {
    let layout = CacheLayout { buckets: 5 };
    let memory = Recorded::zeros(layout.area_bytes());
    layout.format(&memory, SEED);
    let cache = Cache::open(memory, layout, SEED, false);
    let Err(miss) = cache.look(6, &mut [0; 4096]) else { panic!("a new cache is empty") };
    cache.fill(miss, 6, &[9; 4096]);
    let epoch = cache.begin_sync();
    cache.synced(epoch);
    let bytes = cache.memory().image();
    let of = |name| field(&bytes, "Cache", name);
    assert_eq!(of("version"), 1_u32.to_le_bytes());
    assert_eq!(of("block_bytes"), 4096_u64.to_le_bytes());
    assert_eq!(of("buckets"), 5_u64.to_le_bytes());
    assert_eq!(of("ways"), 16_u64.to_le_bytes());
    assert_eq!(of("header_check"), check(&[&bytes[..4], &bytes[8..32]]));
    assert_eq!(of("synced"), epoch.to_le_bytes());
    assert_eq!(of("synced_check"), check(&[&epoch.to_le_bytes()]));

    let bucket = ((6_u64.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) * 5) >> 32;
    let entry = &bytes[4096 + 16 * 16 * bucket as usize..][..16];
    assert_eq!(entry[..8], 7_u64.to_le_bytes());
    assert_eq!(entry[8..12], epoch.to_le_bytes());
    let expected = check(&[&6_u64.to_le_bytes(), &epoch.to_le_bytes(), &[9; 4096]]);
    assert_eq!(entry[12..], expected);
    assert_eq!(layout.cell_at(0), 2 * 4096, "the entries of five buckets fit one page");
    assert_eq!(bytes[2 * 4096 + 16 * 4096 * bucket as usize..][..4096], [9; 4096]);
}

#[test]
fn the_home_of_a_cache_is_what_the_table_says() {
    let layout = CacheLayout { buckets: 1 };
    let memory = Recorded::zeros(layout.area_bytes());
    layout.format(&memory, SEED);
    let cache = Cache::open(memory, layout, SEED, false);
    cache.end(&Home::of(&described(0), 7));
    let bytes = cache.memory().image();
    let of = |name| field(&bytes, "Home of a cache", name);
    assert_eq!(of("state"), 2_u32.to_le_bytes());
    assert_eq!(of("inode"), 3_u64.to_le_bytes());
    assert_eq!(of("size_bytes"), 4_u64.to_le_bytes());
    assert_eq!(of("modified_ns"), (-5_i64).to_le_bytes());
    assert_eq!(of("changed_ns"), 6_i64.to_le_bytes());
    assert_eq!(of("pledge"), 7_u64.to_le_bytes());
    assert_eq!(of("home_check"), check(&[&bytes[512..516], &bytes[520..560]]));
}
