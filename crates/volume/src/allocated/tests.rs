//! Ranges of blocks beside a set of their numbers.

use std::collections::BTreeSet;

use holdfast_io::Seek;
use holdfast_io::fake::Random;

use super::{Allocated, BLOCK_BYTES};

/// Against a set of block numbers, one by one.
#[test]
fn ranges_of_blocks_are_what_a_set_of_blocks_is() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let (mut ranges, mut set) = (Allocated::default(), BTreeSet::new());
        for step in 0..60 {
            let offset = random.below(40 * BLOCK_BYTES);
            let bytes = random.below(8 * BLOCK_BYTES);
            let (first, end) = (offset / BLOCK_BYTES, (offset + bytes).div_ceil(BLOCK_BYTES));
            let all = if bytes == 0 { 0..0 } else { first..end };
            let missing = all.clone().filter(|block| !set.contains(block)).count() as u64;
            assert_eq!(ranges.missing(offset, bytes), missing * BLOCK_BYTES, "seed {seed}, {step}");
            match random.below(5) {
                0..3 => {
                    ranges.insert(offset, bytes);
                    set.extend(all);
                }
                3 => {
                    ranges.remove(offset, bytes);
                    let whole = offset.div_ceil(BLOCK_BYTES)..(offset + bytes) / BLOCK_BYTES;
                    set.retain(|block| !whole.contains(block));
                }
                _ => {
                    ranges.cut(offset);
                    set.retain(|block| *block < offset.div_ceil(BLOCK_BYTES));
                }
            }
            assert_eq!(ranges.bytes(), set.len() as u64 * BLOCK_BYTES, "seed {seed}, {step}");
            let at = random.below(50);
            let data = set.range(at..).next().map(|block| block * BLOCK_BYTES);
            assert_eq!(ranges.seek(at * BLOCK_BYTES, Seek::Data), data, "seed {seed}, {step}");
            let hole = (at..).find(|block| !set.contains(block)).map(|block| block * BLOCK_BYTES);
            assert_eq!(ranges.seek(at * BLOCK_BYTES, Seek::Hole), hole, "seed {seed}, {step}");
        }
    }
}
