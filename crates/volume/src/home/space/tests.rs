//! The gate before homes of a few bytes.

use std::path::Path;

use holdfast_io::Files;
use holdfast_io::fake::{FakeClock, FakeFiles, FakeLimits};
use holdfast_io::tree::Errno;
use holdfast_log::Lsn;

use super::{Cost, MARGIN_BYTES, SpaceGate};
use crate::error::Stop;
use crate::home::room_unit::RoomUnit;

fn home(bytes: u64, inodes_max: u64) -> FakeFiles {
    let files = FakeFiles::new(1);
    files.make_dir(Path::new("d"), 0o700).expect("a new disk");
    files.set_capacity_bytes(Some(MARGIN_BYTES + bytes));
    files.set_limits(FakeLimits { inodes_max, ..FakeLimits::default() });
    files
}

fn bytes(bytes: u64) -> Cost {
    Cost { bytes, inodes: 0 }
}

#[test]
fn what_waits_is_counted_until_the_home_has_it() {
    let (home, clock, gate) =
        (home(1000, 100), FakeClock::default(), SpaceGate::new(RoomUnit::default()));
    let admit = |cost| gate.admit(&home, &clock, cost);
    admit(bytes(600)).ok().expect("it fits").placed(Lsn(10));
    clock.advance_ns(1 << 40);
    assert!(matches!(admit(bytes(600)), Err(Stop::NoSpace)), "that waits was forgotten");
    admit(bytes(400)).ok().expect("it fits").placed(Lsn(20));
    assert_eq!(gate.waiting(), bytes(1000));
    gate.came_home(Lsn(20));
    assert_eq!(gate.waiting(), bytes(1000), "kept together until the last is home");
    gate.came_home(Lsn(21));
    assert!(matches!(admit(bytes(1001)), Err(Stop::Refused(Errno::NOSPC))));
    assert!(admit(bytes(1000)).is_ok());
    assert_eq!(gate.waiting(), Cost::NONE, "what was not logged costs nothing");
}

#[test]
fn inodes_are_counted_too_and_a_read_only_home_takes_nothing() {
    let (home, clock, gate) =
        (home(1 << 30, 5), FakeClock::default(), SpaceGate::new(RoomUnit::default()));
    let node = Cost { bytes: 0, inodes: 1 };
    let admitted = (0..10).filter(|at| match gate.admit(&home, &clock, node) {
        Ok(charge) => {
            charge.placed(Lsn(*at));
            true
        }
        Err(_) => false,
    });
    assert_eq!(admitted.count(), 2, "five, less the root, a directory, and the orphans'");
    home.set_read_only(true);
    clock.advance_ns(1 << 40);
    assert!(matches!(gate.admit(&home, &clock, Cost::NONE), Err(Stop::Refused(Errno::ROFS))));
}

#[test]
fn over_a_quota_what_costs_nothing_passes_and_nothing_else() {
    let (home, clock, gate) =
        (home(1 << 30, 100), FakeClock::default(), SpaceGate::new(RoomUnit::default()));
    let admit = |cost| gate.admit(&home, &clock, cost).map(|charge| charge.placed(Lsn(1)));
    gate.tell_shortage(Some(Errno::DQUOT));
    assert!(matches!(admit(bytes(1)), Err(Stop::Refused(Errno::DQUOT))));
    assert!(matches!(admit(Cost::of_node(gate.unit)), Err(Stop::Refused(Errno::DQUOT))));
    assert!(admit(Cost::NONE).is_ok());
    gate.tell_shortage(None);
    assert!(admit(bytes(1)).is_ok());
}
