//! The check beside the values of RFC 3720.

use super::crc32c;

#[test]
fn the_check_is_that_of_the_standard() {
    assert_eq!(crc32c(0, &[0; 32]), 0x8A91_36AA);
    assert_eq!(crc32c(0, &[0xFF; 32]), 0x62A8_AB43);
    assert_eq!(crc32c(crc32c(0, b"12345"), b"6789"), 0xE306_9283);
}
