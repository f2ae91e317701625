//! What the two processes say survives the wire, and nothing else does.

use super::*;

fn hello() -> Hello {
    let client = ClientId(*b"sixteen bytes id");
    Hello { version: VERSION, client, oldest: 7, service: "log/ledger".into() }
}

fn reply() -> Reply {
    Reply {
        version: VERSION,
        status: Status::Done,
        handle: 3,
        check: 0xfeed,
        buffers: 16,
        buffer_bytes: 8192,
        clients_max: 5,
        payload_bytes_max: 4096,
        last_sequence: 41,
        facts: [8, 16, 24],
    }
}

#[test]
fn a_hello_and_a_reply_come_out_as_they_went_in() {
    assert_eq!(Hello::parse(&hello().encode()), Ok(hello()));
    assert_eq!(Reply::parse(&reply().encode()), Ok(reply()));
}

#[test]
fn every_number_means_one_thing() {
    for status in Status::ALL {
        assert_eq!(Status::from_number(status as u32), Some(status));
    }
    for operation in Operation::ALL {
        assert_eq!(Operation::from_number(operation as u16), Some(operation));
    }
    assert_eq!(Status::from_number(Status::ALL.len() as u32), None);
    assert_eq!(Operation::from_number(0), None);
    assert_eq!(Operation::from_number(1 + Operation::ALL.len() as u16), None);
}

#[test]
fn another_version_is_told_whatever_follows() {
    let mut bytes = hello().encode();
    bytes[4] = 9;
    assert_eq!(Hello::parse(&bytes[..8]), Err(HelloFault::Version { found: 9 }));
}

#[test]
fn a_hello_cut_short_anywhere_is_short() {
    let bytes = hello().encode();
    for length in 0..bytes.len() {
        assert_eq!(Hello::parse(&bytes[..length]), Err(HelloFault::Short), "{length} bytes");
    }
}

#[test]
fn a_name_that_is_too_long_empty_or_not_text_is_a_fault() {
    for (length, byte) in [(65u32, b'a'), (u32::MAX, b'a'), (0, b'a'), (4, 0xff), (4, b'\n')] {
        let mut bytes = hello().encode();
        bytes[32..36].copy_from_slice(&length.to_le_bytes());
        bytes[41] = byte;
        assert_eq!(Hello::parse(&bytes), Err(HelloFault::Name), "length {length}, byte {byte}");
    }
}

#[test]
fn no_change_of_one_byte_makes_a_parser_panic() {
    for at in 0..HELLO_BYTES {
        for value in 0..=u8::MAX {
            let (mut hello, mut reply) = (hello().encode(), reply().encode());
            hello[at] = value;
            let _ = Hello::parse(&hello);
            if let Some(byte) = reply.get_mut(at) {
                *byte = value;
            }
            let _ = Reply::parse(&reply);
        }
    }
}
