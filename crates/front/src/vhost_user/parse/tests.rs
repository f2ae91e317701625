//! Headers and ranges, at the ends of the disk and beyond.

use super::*;

const DISK: u64 = 10 * SECTOR_BYTES + 100;

fn header(kind: u32, sector: u64) -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes[8..].copy_from_slice(&sector.to_le_bytes());
    bytes
}

#[test]
fn a_request_up_to_the_last_whole_sector_is_on_the_disk() {
    let extent = Extent { offset: 4608, bytes: 512 };
    assert_eq!(parse(&header(0, 9), 0, 512, DISK), Ok(Request::Read(extent)));
    assert_eq!(parse(&header(1, 9), 512, 0, DISK), Ok(Request::Write(extent)));
    assert_eq!(parse(&header(0, 9), 0, 1024, DISK), Err(Refusal::OutOfRange));
    assert_eq!(parse(&header(0, 10), 0, 512, DISK), Err(Refusal::OutOfRange));
    assert_eq!(parse(&header(0, u64::MAX / 512), 0, 512, DISK), Err(Refusal::OutOfRange));
    assert_eq!(parse(&header(0, u64::MAX), 0, 512, DISK), Err(Refusal::OutOfRange));
    assert_eq!(parse(&header(1, 0), 511, 0, DISK), Err(Refusal::Length));
}

#[test]
fn a_request_has_no_more_data_than_was_announced() {
    let extent = Extent { offset: 0, bytes: 126 << 20 };
    assert_eq!(parse(&header(0, 0), 0, 126 << 20, u64::MAX), Ok(Request::Read(extent)));
    assert_eq!(parse(&header(1, 0), (126 << 20) + 512, 0, u64::MAX), Err(Refusal::Length));
}

#[test]
fn a_flush_may_have_any_sector() {
    assert_eq!(parse(&header(4, u64::MAX), 0, 0, DISK), Ok(Request::Flush));
}

#[test]
fn a_kind_that_is_not_known_is_unsupported() {
    for kind in [2, 3, 5, 12, 14, u32::MAX] {
        let refusal = parse(&header(kind, 0), 0, 0, DISK).unwrap_err();
        assert_eq!((refusal, refusal.status()), (Refusal::Unknown(kind), 2));
    }
    assert_eq!(Refusal::OutOfRange.status(), 1);
}

#[test]
fn lists_have_one_to_the_most_ranges() {
    let most = u64::from(RANGES_MAX) * 16;
    assert_eq!(parse(&header(11, 0), 16, 0, DISK), Ok(Request::Discard(1)));
    assert_eq!(parse(&header(13, 0), most, 0, DISK), Ok(Request::WriteZeroes(32)));
    for bytes in [0, 15, 17, most + 16, u64::MAX] {
        assert_eq!(parse(&header(11, 0), bytes, 0, DISK), Err(Refusal::Length), "{bytes}");
    }
}

#[test]
fn a_range_gives_its_space_back_if_it_says_so_and_may() {
    let range = |sector: u64, sectors: u32, flags: u32| {
        let mut bytes = header(0, 0);
        bytes[..8].copy_from_slice(&sector.to_le_bytes());
        bytes[8..12].copy_from_slice(&sectors.to_le_bytes());
        bytes[12..].copy_from_slice(&flags.to_le_bytes());
        bytes
    };
    let extent = Extent { offset: 512, bytes: 1024 };
    assert_eq!(parse_range(&range(1, 2, 0), true, DISK), Ok((extent, true)));
    assert_eq!(parse_range(&range(1, 2, 0), false, DISK), Ok((extent, false)));
    assert_eq!(parse_range(&range(1, 2, 1), false, DISK), Ok((extent, true)));
    assert_eq!(parse_range(&range(1, 2, 1), true, DISK), Err(Refusal::Unknown(1)));
    assert_eq!(parse_range(&range(1, 2, 2), false, DISK), Err(Refusal::Unknown(2)));
    assert_eq!(parse_range(&range(1, u32::MAX, 0), false, DISK), Err(Refusal::Length));
    assert_eq!(parse_range(&range(9, 2, 0), false, DISK), Err(Refusal::OutOfRange));
}
