//! Requests as the kernel describes them.

use super::*;

const SIZE_BYTES: u64 = 10 * SECTOR_BYTES + 100;

fn asked(kind: u32, sector: u64, sectors: u32) -> Result<(Request, bool), Refusal> {
    parse(&Description { kind, sectors, sector }, SIZE_BYTES)
}

fn extent_of(sector: u64, sectors: u64) -> Extent {
    Extent { offset: sector * SECTOR_BYTES, bytes: sectors * SECTOR_BYTES }
}

#[test]
fn requests_are_what_their_kinds_say() {
    assert_eq!(asked(0, 2, 3), Ok((Request::Read(extent_of(2, 3)), false)));
    assert_eq!(asked(1, 2, 3), Ok((Request::Write(extent_of(2, 3)), false)));
    assert_eq!(asked(3, 2, 3), Ok((Request::Discard(extent_of(2, 3)), false)));
}

#[test]
fn a_flush_is_one_whatever_stands_in_the_place_of_its_range() {
    assert_eq!(asked(2, u64::MAX, u32::MAX), Ok((Request::Flush, false)));
}

#[test]
fn zeros_give_space_back_unless_the_kernel_wants_to_keep_it() {
    assert_eq!(asked(5, 0, 10), Ok((Request::Discard(extent_of(0, 10)), false)));
    let keep = 5 | request::NO_UNMAP;
    assert_eq!(asked(keep, 0, 10), Ok((Request::WriteZeroes(extent_of(0, 10)), false)));
}

#[test]
fn a_forced_change_is_durable_when_it_is_answered() {
    assert_eq!(asked(1 | request::FUA, 0, 1), Ok((Request::Write(extent_of(0, 1)), true)));
    assert_eq!(asked(request::FUA, 0, 1), Ok((Request::Read(extent_of(0, 1)), false)));
}

#[test]
fn nothing_reaches_behind_the_last_whole_sector() {
    for kind in [0, 1, 3, 5] {
        assert!(asked(kind, 9, 1).is_ok());
        assert_eq!(asked(kind, 10, 1), Err(Refusal::OutOfRange));
        assert_eq!(asked(kind, 9, 2), Err(Refusal::OutOfRange));
        assert_eq!(asked(kind, u64::MAX, 1), Err(Refusal::OutOfRange));
        assert_eq!(asked(kind, u64::MAX / SECTOR_BYTES, 1), Err(Refusal::OutOfRange));
    }
}

#[test]
fn data_that_no_buffer_holds_is_refused_and_a_range_without_data_is_not() {
    let sectors = (DATA_BYTES_MAX as u64 / SECTOR_BYTES) as u32;
    let of = |kind, sectors| parse(&Description { kind, sectors, sector: 0 }, 1 << 42);
    assert!(of(1, sectors).is_ok());
    for kind in [0, 1] {
        assert_eq!(of(kind, sectors + 1), Err(Refusal::Length));
    }
    assert!(of(3, u32::MAX).is_ok());
}

#[test]
fn what_the_device_never_offered_is_refused() {
    for kind in [4, 6, 13, 255] {
        assert_eq!(asked(kind, 0, 1), Err(Refusal::Unknown(kind as u8)));
    }
}
