//! The portable sum is the CRC-32C of the standards, and can be continued.

use super::crc32c;

#[test]
fn the_sums_of_rfc_3720_come_out() {
    assert_eq!(crc32c(0, b""), 0);
    assert_eq!(crc32c(0, b"123456789"), 0xE306_9283);
    assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
    assert_eq!(crc32c(0, &[0xFF; 32]), 0x62A8_AB43);
}

#[test]
fn a_sum_can_be_continued_anywhere() {
    let bytes = b"frames, one after the other";
    for cut in 0..=bytes.len() {
        assert_eq!(crc32c(crc32c(0, &bytes[..cut]), &bytes[cut..]), crc32c(0, bytes));
    }
}
