//! A ring that dies between two steps, by losing the guest's memory there.

use std::fs::File;

use vhost::vhost_user::message::VhostUserInflight;
use vm_memory::{Bytes, GuestMemoryMmap};

use super::super::inflight::Inflight;
use super::*;

const SIZE: u16 = 4;
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;

fn memory(bytes: usize) -> Arc<Guest> {
    let memory = GuestMemoryMmap::from_ranges(&[(GuestAddress(0), bytes)]);
    Arc::new(Guest::unguarded(memory.unwrap()))
}

fn part((numbers, file): &(VhostUserInflight, File)) -> InflightQueue {
    let area = Inflight::adopt(numbers, file.try_clone().unwrap()).unwrap();
    Arc::new(area).queue(0, SIZE).unwrap()
}

#[test]
fn a_request_is_crossed_out_only_after_the_used_ring_shows_its_answer() {
    let (guest, area) = (memory(0x3000), Inflight::create(1, SIZE, false).unwrap());
    for (at, value) in [(2, 2_u16), (4, 3), (6, 1)] {
        guest.unchecked().write_obj(value, GuestAddress(AVAILABLE + at)).unwrap();
    }
    let place = Place {
        size: SIZE,
        descriptors: GuestAddress(0),
        available: GuestAddress(AVAILABLE),
        used: GuestAddress(USED),
        event_index: false,
    };
    let mut ring = Ring::new(&place, 0, guest.clone(), Some(part(&area))).unwrap();
    assert_eq!(ring.take().unwrap(), Some(3));
    assert_eq!(part(&area).recover(0), [3]);
    assert_eq!(ring.take().unwrap(), Some(1));
    assert_eq!(ring.take().unwrap(), None);
    ring.answer(3, 1).unwrap();
    assert_eq!(part(&area).recover(1), [1]);
    // The used ring is gone: the answer is not shown.
    ring.memory = memory(0x2000);
    ring.answer(1, 1).unwrap_err();
    assert_eq!(part(&area).recover(1), [1]);
    // Whoever takes the rings up has it first, and goes on behind it.
    let mut next = Ring::new(&place, 0, guest, Some(part(&area))).unwrap();
    assert_eq!((next.take().unwrap(), next.next_available()), (Some(1), 2));
    assert!(next.is_caught_up());
    next.answer(1, 1).unwrap();
    assert_eq!(part(&area).recover(2), Vec::<u16>::new());
}
