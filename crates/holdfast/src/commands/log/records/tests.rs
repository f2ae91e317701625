//! Records as text and back.

use super::{from_text, line};
use holdfast_wal::{Entry, Lsn, RecordType};

fn of(format: &str) -> RecordType {
    RecordType { record: "r".into(), version: 1, format: format.into() }
}

fn printed(format: &str, bytes: &[u8]) -> String {
    let entry = Entry { lsn: Lsn(8), index: 2, end: Lsn(64), record: bytes.to_vec() };
    line(Some(&of(format)), &entry, false)
}

#[test]
fn what_is_printed_can_be_appended_again() {
    for format in ["raw", "json", "message-pack"] {
        for text in [r#"[1,"two",[[3,4]]]"#, "null", "-1.5", r#""text""#] {
            let bytes = from_text(&of(format), text).unwrap();
            assert_eq!(printed(format, &bytes), format!("8.2 {text}"), "{format}");
        }
    }
}

#[test]
fn bytes_that_are_no_such_record_are_printed_as_digits() {
    assert_eq!(printed("raw", b"\x00a"), "8.2 0x0061");
    assert_eq!(printed("raw", b"a\nb"), "8.2 0x610a62");
    assert_eq!(printed("json", b"{"), "8.2 0x7b");
    assert_eq!(printed("message-pack", b"\xc1"), "8.2 0xc1");
    assert_eq!(printed("archive", b"abc"), "8.2 0x616263");
}

#[test]
fn as_json_each_line_has_position_end_and_record() {
    let entry = Entry { lsn: Lsn(8), index: 2, end: Lsn(64), record: b"[1]".to_vec() };
    let line = |format| line(Some(&of(format)), &entry, true);
    assert_eq!(line("json"), r#"{"end":64,"index":2,"lsn":8,"record":[1]}"#);
    assert_eq!(line("raw"), r#"{"end":64,"index":2,"lsn":8,"text":"[1]"}"#);
    assert_eq!(line("archive"), r#"{"end":64,"hex":"5b315d","index":2,"lsn":8}"#);
}

#[test]
fn text_that_is_no_record_is_refused() {
    assert!(from_text(&of("json"), "{").unwrap_err().contains("not JSON"));
    assert!(from_text(&of("message-pack"), "nothing").unwrap_err().contains("not JSON"));
    assert!(from_text(&of("archive"), "1").unwrap_err().contains("own program"));
}
