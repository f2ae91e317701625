//! Replies, byte by byte.

use super::*;

fn put(what: impl FnOnce(&mut Replies)) -> Vec<u8> {
    let mut out = Replies::default();
    what(&mut out);
    out.unsent().to_vec()
}

#[test]
fn a_reply_to_an_option_tells_its_length() {
    let bytes = put(|out| listed(out, 3, "pg"));
    let expected = b"\0\x03\xe8\x89\x04\x55\x65\xa9\0\0\0\x03\0\0\0\x02\0\0\0\x06\0\0\0\x02pg";
    assert_eq!(bytes, expected);
}

#[test]
fn a_chunk_of_data_claims_its_offset_and_its_data() {
    let bytes = put(|out| data_head(out, 9, 4096, 512, true));
    let expected = b"\x66\x8e\x33\xef\0\x01\0\x01\0\0\0\0\0\0\0\x09\0\0\x02\x08\0\0\0\0\0\0\x10\0";
    assert_eq!(bytes, expected);
    assert_eq!(put(|out| data_head(out, 9, 4096, 512, false))[5], 0);
}

#[test]
fn an_error_carries_no_more_text_than_a_client_expects() {
    let bytes = put(|out| error(out, 9, 22, "no"));
    let expected = b"\x66\x8e\x33\xef\0\x01\x80\x01\0\0\0\0\0\0\0\x09\0\0\0\x08\0\0\0\x16\0\x02no";
    assert_eq!(bytes, expected);
    let bytes = put(|out| error(out, 9, 22, &"long".repeat(5000)));
    assert_eq!(bytes.len(), 20 + 6 + TEXT_BYTES_MAX);
}

#[test]
fn an_error_inside_data_names_its_offset() {
    let bytes = put(|out| error_at(out, 9, 5, 7));
    let expected = b"\x66\x8e\x33\xef\0\x01\x80\x02\0\0\0\0\0\0\0\x09\0\0\0\x0e\
        \0\0\0\x05\0\0\0\0\0\0\0\0\0\x07";
    assert_eq!(bytes, expected);
}
