//! What was spilled is read back, and nothing else.

use holdfast_io::fake::{FakeClock, FakeFiles};

use crate::home::room_unit::RoomUnit;
use crate::home::space::SpaceGate;

use super::*;

fn entries(from: u8, to: u8) -> Vec<Vec<u8>> {
    (from..to).map(|at| vec![at; usize::from(at)]).collect()
}

#[test]
fn what_was_appended_is_read_back_up_to_where_it_counts() {
    let (home, clock, gate) =
        (FakeFiles::new(1), FakeClock::default(), SpaceGate::new(RoomUnit::default()));
    let room = OwnRoom { home: &home, clock: &clock, gate: &gate };
    let mut spill = Spill::create(room, 7).expect("a new disk");
    spill.append(room, entries(0, 100).into_iter()).expect("room");
    let counts = spill.bytes;
    spill.append(room, entries(100, 120).into_iter()).expect("room");
    assert_eq!(Spill::read(&home, 7, counts).expect("a file"), entries(0, 100));
    assert_eq!(Spill::read(&home, 7, spill.bytes).expect("a file"), entries(0, 120));
}

#[test]
fn a_damaged_entry_and_all_behind_it_are_not_there() {
    let (home, clock, gate) =
        (FakeFiles::new(1), FakeClock::default(), SpaceGate::new(RoomUnit::default()));
    let room = OwnRoom { home: &home, clock: &clock, gate: &gate };
    let mut spill = Spill::create(room, 7).expect("a new disk");
    spill.append(room, entries(0, 50).into_iter()).expect("room");
    let middle = spill.bytes;
    spill.append(room, entries(50, 60).into_iter()).expect("room");
    spill.file.write_all_at(&[0xff], middle + HEAD_BYTES as u64).expect("room");
    assert_eq!(Spill::read(&home, 7, spill.bytes).expect("a file"), entries(0, 50));
    assert!(Spill::read(&home, 8, spill.bytes).is_err(), "no file of that number");
}
