//! Known answers for the checksum.

use super::crc32c;

#[test]
fn the_answers_of_rfc_3720_are_given() {
    let ascending: Vec<u8> = (0..32).collect();
    let descending: Vec<u8> = (0..32).rev().collect();
    assert_eq!(crc32c(0, b""), 0);
    assert_eq!(crc32c(0, b"123456789"), 0xe306_9283);
    assert_eq!(crc32c(0, &[0; 32]), 0x8a91_36aa);
    assert_eq!(crc32c(0, &[0xff; 32]), 0x62a8_ab43);
    assert_eq!(crc32c(0, &ascending), 0x46dd_794e);
    assert_eq!(crc32c(0, &descending), 0x113f_db5c);
}

#[test]
fn the_checksum_of_two_pieces_is_the_checksum_of_the_whole() {
    let whole: Vec<u8> = (0..5000_u32).map(|n| (n * 7 + n / 256) as u8).collect();
    for cut in [0, 1, 7, 8, 63, 1024, 4999, 5000] {
        let (head, tail) = whole.split_at(cut);
        assert_eq!(crc32c(crc32c(0, head), tail), crc32c(0, &whole), "cut at {cut}");
    }
}

#[test]
fn every_length_at_every_place_gives_what_the_crate_below_gives() {
    let bytes: Vec<u8> = (0..900_u32).map(|n| (n * 31 + n / 7) as u8).collect();
    for start in 0..9 {
        for end in start..bytes.len() {
            let piece = &bytes[start..end];
            assert_eq!(crc32c(7, piece), ::crc32c::crc32c_append(7, piece), "{start}..{end}");
        }
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut bytes = [0x5a_u8; 64];
    let whole = crc32c(0, &bytes);
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert_ne!(crc32c(0, &bytes), whole, "bit {bit}");
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}
