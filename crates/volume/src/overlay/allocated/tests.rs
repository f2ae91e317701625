//! Ranges of blocks beside a set of their numbers.

use std::collections::BTreeSet;

use holdfast_io::fake::{FakeFiles, FakeLimits, Random};
use holdfast_io::{Files, Seek};

use super::Allocated;
use crate::home::room_unit::RoomUnit;

fn unit(random: &mut Random) -> RoomUnit {
    let home = FakeFiles::new(1);
    let room_unit_bytes = [512, 1024, 4096, 65_536][random.below(4) as usize];
    home.set_limits(FakeLimits { room_unit_bytes, ..FakeLimits::default() });
    RoomUnit::of(&home.space().expect("a new disk"))
}

/// Against a set of block numbers, one by one.
#[test]
fn ranges_of_blocks_are_what_a_set_of_blocks_is() {
    for seed in 0..200 {
        let mut random = Random::new(seed);
        let unit = unit(&mut random);
        let (mut ranges, mut set) = (Allocated::none(unit), BTreeSet::new());
        for step in 0..60 {
            let offset = random.below(40 * unit.bytes());
            let bytes = random.below(8 * unit.bytes());
            let (first, end) = (offset / unit.bytes(), (offset + bytes).div_ceil(unit.bytes()));
            let all = if bytes == 0 { 0..0 } else { first..end };
            let missing = all.clone().filter(|block| !set.contains(block)).count() as u64;
            assert_eq!(
                ranges.missing(offset, bytes),
                missing * unit.bytes(),
                "seed {seed}, {step}"
            );
            match random.below(5) {
                0..3 => {
                    ranges.insert(offset, bytes);
                    set.extend(all);
                }
                3 => {
                    ranges.remove(offset, bytes);
                    let whole = offset.div_ceil(unit.bytes())..(offset + bytes) / unit.bytes();
                    set.retain(|block| !whole.contains(block));
                }
                _ => {
                    ranges.cut(offset);
                    set.retain(|block| *block < offset.div_ceil(unit.bytes()));
                }
            }
            assert_eq!(ranges.bytes(), set.len() as u64 * unit.bytes(), "seed {seed}, {step}");
            let at = random.below(50);
            let data = set.range(at..).next().map(|block| block * unit.bytes());
            assert_eq!(ranges.seek(at * unit.bytes(), Seek::Data), data, "seed {seed}, {step}");
            let hole = (at..).find(|block| !set.contains(block)).map(|block| block * unit.bytes());
            assert_eq!(ranges.seek(at * unit.bytes(), Seek::Hole), hole, "seed {seed}, {step}");
        }
    }
}
