//! Whoever is asked says what there is.

use super::*;
use crate::locks::modes::Mode;
use crate::locks::{Holder, Locks};
use crate::tests::FORMAT;
use crate::tree::By;
use crate::tree::tests::world::World;

#[test]
fn every_page_in_a_frame_is_asked_with_its_latch() {
    let world = World::new(400);
    for key in 0..1000_u32 {
        let done = world.tree().insert(&key.to_be_bytes(), &[7; 42], By::System, |_| true);
        done.expect("there is room");
    }
    let mut found = Vec::new();
    let latches = world.pool.survey(|page| found.push((page.number(), page.rsn())));
    found.sort_unstable();
    let wanted = (1..world.numbers.unused().0.get()).map(PageNumber);
    assert!(wanted.eq(found.iter().map(|(page, _)| *page)));
    assert_eq!(latches, found.len() as u64);
    for (number, rsn) in found {
        assert_eq!(world.pool.read(number).expect("it is there").rsn(), rsn);
    }
}

#[test]
fn what_somebody_may_change_is_found_and_what_is_read_is_not() {
    let (locks, mut one, mut other) =
        (Locks::default(), Holder::new(Slot(1)), Holder::new(Slot(2)));
    let name = |key: u8| Name::of(PageNumber(1), &[key]);
    for key in 0..100 {
        let holder = if key % 2 == 0 { &mut one } else { &mut other };
        assert!(locks.try_lock(holder, name(key), Mode::CHANGE));
        assert!(locks.try_lock(holder, name(100 + key), Mode::SCAN));
    }
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    locks.survey(|slot, name| found.push((slot, name)));
    wanted.extend((0..100).map(|key| (Slot(1 + u16::from(key % 2)), name(key))));
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

#[test]
fn a_survey_is_written_as_its_table_says() {
    let mut out = Vec::new();
    let name = Name::of(PageNumber(1), b"key");
    put_part(&[(PageNumber(300), Rsn(300))], &[(Slot(300), name)], &mut out);
    let wanted = [&[3, 1, 0xAC, 2, 0xAC, 2, 1, 0xAC, 2][..], &name.get().to_le_bytes()].concat();
    assert_eq!(out, wanted);
    let names = FORMAT.rows("Survey").into_iter().map(|row| row[0]);
    assert!(names.eq(["`form`", "`pages`", "`locks`"]));
}
