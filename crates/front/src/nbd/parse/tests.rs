//! Messages as clients send them, and as nobody should.

use super::*;

#[test]
fn a_request_is_read_field_by_field() {
    let mut bytes = [0; 28];
    bytes[..8].copy_from_slice(&[0x25, 0x60, 0x95, 0x13, 0x80, 1, 0, 6]);
    bytes[8..16].copy_from_slice(&7_u64.to_be_bytes());
    bytes[16..24].copy_from_slice(&(1_u64 << 40).to_be_bytes());
    bytes[24..].copy_from_slice(&512_u32.to_be_bytes());
    let expected = Request {
        command: Command::WriteZeroes,
        flags: 0x8001,
        cookie: 7,
        offset: 1 << 40,
        bytes: 512,
    };
    assert_eq!(request(&bytes), Ok(expected));
    assert_eq!(expected.payload_bytes(), 0);
    let write = Request { command: Command::Write, ..expected };
    assert_eq!(write.payload_bytes(), 512);
    bytes[0] = 0;
    assert_eq!(request(&bytes), Err(Fault::RequestMagic(0x0060_9513)));
}

#[test]
fn client_flags_beyond_the_offered_are_a_fault() {
    assert_eq!(client_flags([0, 0, 0, 1]), Ok(ClientFlags { no_zeroes: false }));
    assert_eq!(client_flags([0, 0, 0, 2]), Ok(ClientFlags { no_zeroes: true }));
    assert_eq!(client_flags([1, 0, 0, 3]), Err(Fault::ClientFlags(0x0100_0003)));
}

#[test]
fn every_query_of_an_option_is_found() {
    let data = b"\0\0\0\x01d\0\0\0\x03\0\0\0\x01a\0\0\0\0\0\0\0\x02bc";
    let Some(OptionRequest::MetaContext { name, set, queries }) =
        option_request(option::SET_META_CONTEXT, data)
    else {
        panic!()
    };
    assert_eq!((name, set), (b"d".as_slice(), true));
    assert_eq!(queries.iter().collect::<Vec<_>>(), [b"a".as_slice(), b"", b"bc"]);
}

/// A stream of numbers from a seed (xorshift64*).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

#[test]
fn no_data_make_the_parser_panic() {
    let seed = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-front no_data_make");
    let mut random = Random(seed);
    for _ in 0..200_000 {
        let data: Vec<u8> = (0..random.next() % 40)
            .map(|_| if random.next().is_multiple_of(2) { 0 } else { random.next() as u8 % 12 })
            .collect();
        match option_request((random.next() % 12) as u32, &data) {
            Some(OptionRequest::MetaContext { queries, .. }) => {
                assert!(queries.iter().count() <= data.len() / 4);
            }
            Some(OptionRequest::Info { name, .. } | OptionRequest::ExportName(name)) => {
                assert!(name.len() <= data.len());
            }
            _ => {}
        }
    }
}
