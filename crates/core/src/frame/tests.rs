//! Frames survive the round trip, and every damaged one is a fault that says what is wrong.

extern crate std;

use super::*;
use crate::check::crc32c;

fn sealer() -> Sealer {
    Sealer::new(b"identity of logs", crc32c)
}

fn header() -> FrameHeader {
    let (lsn, payload) = (Lsn(4096 * 7 + 64), b"payload");
    FrameHeader {
        lsn,
        durable: Lsn(4096),
        payload_bytes: payload.len() as u32,
        payload_check: payload_check(&sealer(), payload),
        generation: 5,
        kind: Kind::Data,
        flags: FLAG_SEALED,
        records: 3,
        utc_ns: -17,
    }
}

#[test]
fn what_is_encoded_is_decoded() {
    for kind in [Kind::Data, Kind::Pad, Kind::Mark, Kind::Numbered] {
        for flags in [0, FLAG_COMPRESSED, FLAG_SEALED, FLAG_COMPRESSED | FLAG_SEALED] {
            let header = FrameHeader { kind, flags, ..header() };
            assert_eq!(decode(&sealer(), &encode(&sealer(), &header)), Ok(header));
        }
    }
}

#[test]
fn the_bytes_lie_where_the_table_says() {
    let bytes = encode(&sealer(), &header());
    assert_eq!(&bytes[0..4], b"HFF1");
    assert_eq!(bytes[4..8], crc32c(crc32c(0, b"identity of logs"), &bytes[8..]).to_le_bytes());
    assert_eq!(bytes[8..16], (4096 * 7 + 64u64).to_le_bytes());
    assert_eq!(bytes[16..24], 4096u64.to_le_bytes());
    assert_eq!(bytes[24..28], 7u32.to_le_bytes());
    assert_eq!(bytes[32..36], 5u32.to_le_bytes());
    assert_eq!(bytes[36..38], [1, 2]);
    assert_eq!(bytes[38..40], 3u16.to_le_bytes());
    assert_eq!(bytes[40..48], (-17i64).to_le_bytes());
}

#[test]
fn each_bit_of_a_header_that_turns_over_is_noticed() {
    let good = encode(&sealer(), &header());
    for bit in 0..good.len() * 8 {
        let mut bad = good;
        bad[bit / 8] ^= 1 << (bit % 8);
        let fault = if bit < 32 { HeaderFault::Magic } else { HeaderFault::Check };
        assert_eq!(decode(&sealer(), &bad), Err(fault), "bit {bit}");
    }
}

#[test]
fn each_field_that_cannot_be_has_its_own_fault() {
    let forge = |change: &dyn Fn(&mut [u8; 48])| {
        let mut bytes = encode(&sealer(), &header());
        change(&mut bytes);
        let check = sealer().header_check(&bytes);
        bytes[4..8].copy_from_slice(&check.to_le_bytes());
        decode(&sealer(), &bytes)
    };
    assert_eq!(forge(&|bytes| bytes[36] = 9), Err(HeaderFault::Kind(9)));
    assert_eq!(forge(&|bytes| bytes[37] = 6), Err(HeaderFault::Flags(6)));
    assert_eq!(forge(&|bytes| bytes[8] = 1), Err(HeaderFault::Lsn));
    assert_eq!(forge(&|bytes| bytes[23] = 1), Err(HeaderFault::Durable));
    assert_eq!(decode(&sealer(), &[0; 48]), Err(HeaderFault::Unwritten));
}

#[test]
fn a_frame_of_another_log_place_or_generation_does_not_pass() {
    let other = Sealer::new(b"another identity", crc32c);
    assert_eq!(decode(&other, &encode(&sealer(), &header())), Err(HeaderFault::Check));
    assert!(payload_matches(&sealer(), &header(), b"payload"));
    assert!(!payload_matches(&sealer(), &header(), b"Payload"));
    assert!(!payload_matches(&sealer(), &header(), b"payload "));
    assert!(!payload_matches(&other, &header(), b"payload"));
    // The payload's own check says nothing of place and generation: the header's covers them.
    let header_check = |header| u32_at(&encode(&sealer(), &header), 4);
    let moved = FrameHeader { lsn: Lsn(header().lsn.get() + 8), ..header() };
    assert!(header_check(moved) != header_check(header()));
    let older = FrameHeader { generation: 4, ..header() };
    assert!(header_check(older) != header_check(header()));
}

#[test]
fn the_rest_of_a_block_is_empty_or_takes_a_pad_wherever_a_frame_ends() {
    for start in (0..BLOCK_BYTES).step_by(8) {
        for payload_bytes in (0..4300).chain([65_536, 1 << 20]) {
            let end = frame_end(Lsn(start), payload_bytes);
            let rest = end.align_up(BLOCK_BYTES).since(end);
            assert!(rest == 0 || rest >= HEADER_BYTES, "{start} {payload_bytes}");
            assert!(end.is_aligned(FRAME_ALIGN));
            assert!(end.since(Lsn(start)) >= HEADER_BYTES + u64::from(payload_bytes));
            assert!(end.since(Lsn(start)) < HEADER_BYTES * 2 + u64::from(payload_bytes) + 8);
        }
    }
}

#[test]
fn a_pad_ends_exactly_where_it_was_asked_to() {
    for rest in (HEADER_BYTES..=BLOCK_BYTES).step_by(8) {
        let lsn = Lsn(3 * BLOCK_BYTES - rest);
        let until = Lsn(3 * BLOCK_BYTES);
        assert_eq!(frame_end(lsn, pad_payload_bytes(lsn, until)), until);
    }
}

#[test]
fn a_mark_says_what_it_was_given_and_only_at_its_length() {
    assert_eq!(decode_mark(&encode_mark(Lsn(77))), Some(Lsn(77)));
    assert_eq!(decode_mark(&encode_mark(Lsn(77))[..15]), None);
    assert_eq!(decode_mark(b""), None);
}
