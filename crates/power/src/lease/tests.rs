//! A lease as others see it: written, ended, taken back, damaged.

use super::*;

impl Lease {
    fn of_numbers(until_ms: u64) -> Lease {
        let (taken_back, drain_ms, sharers) = (3, 7, 2);
        Lease { until_ms, taken_back, drain_ms, sharers, bytes_per_s_max: 5, hurried_until_ms: 9 }
    }
}

#[test]
fn who_has_the_page_sees_what_was_written_last() {
    let ours = Page::new().unwrap();
    let theirs = Page::of(ours.as_fd().try_clone_to_owned().unwrap());
    assert!(!theirs.is_held());
    let lease = Lease::of_numbers(now_ms() + 100_000);
    ours.write(&lease).unwrap();
    assert_eq!(theirs.read(), lease);
    assert!(theirs.is_held());
    ours.write(&Lease { until_ms: 0, ..lease }).unwrap();
    assert!(!theirs.is_held());
}

#[test]
fn a_lease_ends_by_itself() {
    let lease = Lease { until_ms: 1000, ..Lease::default() };
    assert!(lease.is_held(999));
    assert!(!lease.is_held(1000));
    assert!(!Lease::default().is_held(0));
}

#[test]
fn a_page_of_which_any_bit_is_another_is_not_held() {
    let page = Page::new().unwrap();
    let lease = Lease::of_numbers(u64::MAX);
    page.write(&lease).unwrap();
    let mut whole = [0; BYTES];
    page.0.read_exact_at(&mut whole, 0).unwrap();
    for bit in 0..8 * BYTES {
        let mut bytes = whole;
        bytes[bit / 8] ^= 1 << (bit % 8);
        page.0.write_all_at(&bytes, 0).unwrap();
        assert_eq!(page.read(), Lease::default(), "bit {bit}");
    }
    page.0.write_all_at(&[0; BYTES], 0).unwrap();
    assert_eq!(page.read(), Lease::default());
    page.0.set_len(0).unwrap();
    assert_eq!(page.read(), Lease::default());
}

#[test]
fn what_may_be_in_memory_alone_is_what_its_share_of_the_time_drains() {
    let bytes_per_s_max = u64::MAX;
    let lease = Lease { drain_ms: 500, sharers: 2, bytes_per_s_max, ..Lease::default() };
    assert_eq!(lease.dirty_bytes_max(1 << 20), 1 << 18);
    assert_eq!(lease.dirty_bytes_max(0), 0);
    assert_eq!(Lease { sharers: 0, ..lease }.dirty_bytes_max(1 << 20), 1 << 19);
    let tried = Lease { bytes_per_s_max: 1 << 19, ..lease };
    assert_eq!(tried.dirty_bytes_max(1 << 20), 1 << 17, "no more than devices have shown");
    let long = Lease { drain_ms: u64::MAX, sharers: 1, ..lease };
    assert_eq!(long.dirty_bytes_max(u64::MAX), u64::MAX);
}
