//! Compression pays or is left out, and what was never compressed is refused.

use super::{Aligned, Compression, SET_BYTES_MIN, UnpackFault, unpack, with_packed};

const MAX: u64 = 1 << 20;

fn packed(set: &[u8]) -> Option<Vec<u8>> {
    with_packed(Compression::Lz4, set, |packed| packed.map(<[u8]>::to_vec))
}

/// Bytes without a pattern.
fn noise(bytes: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(&mut next).take(bytes).collect()
}

#[test]
fn a_set_comes_back_as_it_was_and_begins_at_a_multiple_of_eight() {
    let mut into = Aligned::default();
    for length in [SET_BYTES_MIN, 1000, 70_000, 65_535, MAX as usize] {
        let set: Vec<u8> = (0..length).map(|at| (at / 100) as u8).collect();
        unpack(&packed(&set).unwrap(), MAX, &mut into).unwrap();
        assert!(into.bytes() == set);
        assert_eq!(into.bytes().as_ptr().align_offset(8), 0);
    }
}

#[test]
fn short_sets_and_those_that_do_not_shrink_stay_as_they_are() {
    assert_eq!(packed(&[0; SET_BYTES_MIN - 1]), None);
    assert!(packed(&[0; SET_BYTES_MIN]).is_some());
    assert_eq!(packed(&noise(5000)), None);
    let mixed = [noise(900), vec![0; 100]].concat();
    assert_eq!(packed(&mixed), None, "a tenth is not worth it");
    assert!(with_packed(Compression::None, &[0; 5000], |packed| packed.is_none()));
}

#[test]
fn a_set_that_claims_to_be_longer_than_any_takes_no_memory() {
    let mut bomb = packed(&[0; 100_000]).unwrap();
    let mut into = Aligned::default();
    assert_eq!(unpack(&bomb, 99_999, &mut into), Err(UnpackFault::Damaged));
    bomb[..4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(unpack(&bomb, MAX, &mut into), Err(UnpackFault::Damaged));
    assert!(into.bytes().is_empty(), "nothing was asked for");
}

#[test]
fn no_bytes_whatsoever_do_more_than_to_be_refused() {
    let whole = packed(&[7; 300]).unwrap();
    let mut into = Aligned::default();
    for length in 0..whole.len() {
        assert_eq!(unpack(&whole[..length], MAX, &mut into), Err(UnpackFault::Damaged));
    }
    for bit in 0..whole.len() * 8 {
        let mut bad = whole.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        // Some are other sets; none is read beyond its end.
        let _ = unpack(&bad, MAX, &mut into);
    }
    for length in [0, 3, 4, 5, 100] {
        let _ = unpack(&[&[100, 0, 0, 0][..], &noise(length)].concat(), MAX, &mut into);
    }
}
