//! Numbers come back as they were, and in one way only.

use super::*;

#[test]
fn a_number_comes_back_from_as_many_bytes_as_it_was_told_to_take() {
    let near = (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit]);
    for number in near.chain([u64::MAX]) {
        let mut written = Vec::new();
        put(number, &mut written);
        assert_eq!((written.len(), written.len() <= BYTES_MAX), (bytes(number), true), "{number}");
        written.push(0xEE);
        let mut rest = &written[..];
        assert_eq!((take(&mut rest), rest), (Some(number), &[0xEE][..]));
    }
}

#[test]
fn what_put_does_not_write_is_refused_and_nothing_is_taken() {
    let too_large = [[0xFF; 9].as_slice(), &[2]].concat();
    let too_long = [[0x80; 10].as_slice(), &[1]].concat();
    for bytes in [&[][..], &[0x80], &[0x80, 0], &[0xFF, 0x80, 0], &too_large, &too_long] {
        let mut rest = bytes;
        assert_eq!((take(&mut rest), rest), (None, bytes));
    }
}
