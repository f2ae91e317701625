//! Values as people write them.

use super::*;
use holdfast_table::row;

#[test]
fn what_is_printed_of_a_value_is_read_as_that_value() {
    let values = row![0_u64, u64::MAX, i64::MIN, -1_i64, 7_i64, "", "text", "0x1", "a\tb"];
    for value in values {
        assert_eq!(parse(&text(&value), value.kind()), Ok(value));
    }
}

#[test]
fn a_text_that_is_no_value_of_the_kind_is_refused() {
    for (text, kind) in [("-1", Kind::U64), ("x", Kind::I64), ("", Kind::U64), ("0xg", Kind::Bytes)]
    {
        let why = parse(text, kind).unwrap_err();
        assert!(why.contains(text), "{why}");
    }
}

#[test]
fn more_values_than_fields_are_refused() {
    let schema = Schema::new(vec![Kind::U64, Kind::Bytes], 1, vec![]).unwrap();
    let texts = ["1".to_owned(), "2".to_owned()];
    assert_eq!(parse_fields(&texts[..1], &schema, &[0]), Ok(row![1_u64]));
    assert!(parse_fields(&texts, &schema, &[0]).unwrap_err().contains("too many"));
}
