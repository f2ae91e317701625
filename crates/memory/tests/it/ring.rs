//! Appending, reading, giving back.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use holdfast_memory::{Marks, Medium, Region};

use crate::common::{RING_BYTES, append, create, empty, pattern};

#[test]
fn published_bytes_are_read_back_under_a_pin() {
    let region = create(&Medium::Private);
    assert!(append(&region, 100));
    assert!(append(&region, 28));
    assert_eq!(region.marks(), Marks { released: 0, durable: 0, tail: 128 });
    assert_eq!(region.pin(0).bytes(40, 80), pattern(40, 80));
}

#[test]
fn a_reservation_that_was_not_published_is_not_there() {
    let region = create(&Medium::Private);
    let mut guard = region.lock();
    guard.reserve(64).unwrap().fill(7);
    drop(guard);
    assert_eq!(region.marks().tail, 0);
}

#[test]
fn a_full_ring_gives_no_room_until_bytes_are_released() {
    let region = create(&Medium::Private);
    assert!(append(&region, RING_BYTES));
    assert!(!append(&region, 1));
    region.set_durable(4096);
    assert!(!append(&region, 1), "durable is not released");
    region.release(4096);
    assert!(append(&region, 4096));
    assert_eq!(region.pin(4096).bytes(RING_BYTES, 4096), pattern(RING_BYTES, 4096));
}

#[test]
fn positions_go_on_when_the_ring_starts_again() {
    let region = create(&Medium::Private);
    for _ in 0..100 {
        assert!(append(&region, 2048));
        empty(&region);
    }
    assert_eq!(region.marks().tail, 204_800);
}

#[test]
fn the_ring_is_aligned_for_direct_io() {
    let region = create(&Medium::Private);
    let mut guard = region.lock();
    assert_eq!(guard.reserve(8).unwrap().as_ptr().align_offset(4096), 0);
}

#[test]
#[should_panic(expected = "does not wrap")]
fn a_reservation_never_wraps() {
    let region = create(&Medium::Private);
    assert!(append(&region, RING_BYTES - 8));
    empty(&region);
    let _ = region.lock().reserve(16);
}

#[test]
#[should_panic(expected = "a reader needs bytes below")]
fn bytes_under_a_pin_cannot_be_released() {
    let region = create(&Medium::Private);
    assert!(append(&region, 64));
    let _pin = region.pin(32);
    empty(&region);
}

#[test]
fn bytes_are_released_once_the_pin_is_gone() {
    let region = create(&Medium::Private);
    assert!(append(&region, 64));
    drop(region.pin(32));
    let _above = region.pin(64);
    empty(&region);
    assert_eq!(region.marks().released, 64);
}

#[test]
#[should_panic(expected = "cannot be pinned")]
fn released_bytes_cannot_be_pinned() {
    let region = create(&Medium::Private);
    assert!(append(&region, 64));
    empty(&region);
    let _ = region.pin(63);
}

#[test]
#[should_panic(expected = "lies in 0..64")]
fn unpublished_bytes_cannot_be_read() {
    let region = create(&Medium::Private);
    assert!(append(&region, 64));
    let _ = region.pin(0).bytes(60, 8);
}

#[test]
#[should_panic(expected = "only durable bytes are released")]
fn bytes_that_are_not_durable_cannot_be_released() {
    let region = create(&Medium::Private);
    assert!(append(&region, 64));
    region.release(64);
}

#[test]
#[should_panic(expected = "what is durable was published")]
fn nothing_is_durable_before_it_is_published() {
    create(&Medium::Private).set_durable(1);
}

#[test]
fn a_reset_empties_the_ring_anywhere() {
    let region = create(&Medium::Private);
    assert!(append(&region, 64));
    region.lock().reset(1 << 40);
    let there = 1 << 40;
    assert_eq!(region.marks(), Marks { released: there, durable: there, tail: there });
    assert!(append(&region, RING_BYTES));
}

#[test]
fn many_threads_append_one_after_another() {
    let region = Arc::new(create(&Medium::Private));
    let appenders: Vec<_> = (0..4)
        .map(|_| {
            let region = Arc::clone(&region);
            thread::spawn(move || (0..32).for_each(|_| assert!(append(&region, 64))))
        })
        .collect();
    appenders.into_iter().for_each(|appender| appender.join().unwrap());
    assert_eq!(region.pin(0).bytes(0, 8192), pattern(0, 8192));
}

#[test]
fn a_drainer_sleeps_until_something_is_published() {
    let region = Arc::new(create(&Medium::Private));
    let drainer = {
        let region = Arc::clone(&region);
        thread::spawn(move || {
            let mut seen = 0;
            while seen < 6400 {
                seen = region.wait_tail(seen, Duration::from_secs(60));
            }
        })
    };
    (0..100).for_each(|_| assert!(append(&region, 64)));
    drainer.join().unwrap();
}

#[test]
fn a_wait_for_the_tail_ends_without_a_publication() {
    let region: Region = create(&Medium::Private);
    assert_eq!(region.wait_tail(0, Duration::from_millis(1)), 0);
}
