//! Sizes: written, read back, refused.

use super::*;

#[test]
fn what_is_written_is_read_back() {
    for bytes in [0, 1, 512, 1023, 1024, 4096, 5 << 20, (1 << 30) + 1, 1 << 40, u64::MAX] {
        assert_eq!(parse(&text(bytes)), Ok(bytes), "{}", text(bytes));
    }
}

#[test]
fn a_size_without_a_plain_unit_is_refused() {
    for text in ["", "256", "256M", "1.5GiB", "10MB", "-1B", "MiB", "99999999999GiB"] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn people_read_one_digit_behind_the_point() {
    assert_eq!(rounded(0), "0 B");
    assert_eq!(rounded(1023), "1023 B");
    assert_eq!(rounded(1536), "1.5 KiB");
    assert_eq!(rounded(256 << 20), "256.0 MiB");
}
