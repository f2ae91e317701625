//! Bytes as text and back.

use super::{parse, position, text};

#[test]
fn all_bytes_come_back_and_none_breaks_a_line() {
    let all: Vec<u8> = (0..=255).collect();
    let samples: [&[u8]; 8] =
        [b"", b"a key", b"0", b"0x", b"0x00", b"a\tb\n", "\u{fc}".as_bytes(), &all];
    for bytes in samples {
        let text = text(bytes);
        assert!(!text.contains(char::is_control), "{text}");
        assert_eq!(parse(&text).as_deref(), Ok(bytes), "{text}");
    }
}

#[test]
fn what_can_be_printed_is_printed_and_the_rest_is_digits() {
    assert_eq!(text(b"a key"), "a key");
    assert_eq!(text(b"a\tb"), "0x610962");
    assert_eq!(text(b"0x"), "0x3078");
    assert_eq!(text(&[0xff]), "0xff");
}

#[test]
fn digits_that_are_none_are_refused() {
    for wrong in ["0x1", "0xg0", "0x+1", "0x123", "0x 1", "0x\u{fc}"] {
        let why = parse(wrong).expect_err(wrong);
        assert!(why.contains("hexadecimal"), "{why}");
    }
    assert_eq!(parse("0X41").as_deref(), Ok(&b"0X41"[..]));
    assert_eq!(parse("0xAb").as_deref(), Ok(&[0xab][..]));
}

#[test]
fn a_position_is_that_of_a_set() {
    assert_eq!((position("4096"), position("4096.0")), (Ok(4096), Ok(4096)));
    assert!(position("4096.2").unwrap_err().contains("it begins at 4096"));
    for wrong in ["", ".", "4096.", ".0", "-1", "4096.0.0", "4096 ", "18446744073709551616"] {
        assert!(position(wrong).unwrap_err().contains("no position"), "{wrong}");
    }
}
