//! Messages as the kernel sends them, and as nobody should.

use super::*;

fn message(opcode: u32, node: u64, unique: u64, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(((40 + body.len()) as u32).to_ne_bytes());
    bytes.extend(opcode.to_ne_bytes());
    bytes.extend(unique.to_ne_bytes());
    bytes.extend(node.to_ne_bytes());
    for word in [1000_u32, 100, 4242, 0] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(body);
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn parsed(opcode: u32, body: &[u8]) -> Option<String> {
    let message = message(opcode, 1, 2, body);
    parse(&message).ok().map(|request| format!("{:?}", request.operation))
}

#[test]
fn the_header_tells_who_asks_about_what() {
    let message = message(opcode::LOOKUP, 7, 6 | 1 << 63, b"pg_wal\0");
    let request = parse(&message).unwrap();
    assert_eq!((request.node, request.uid, request.gid), (7, 1000, 100));
    assert!(request.resent);
    assert_eq!(request.unique, 6 | 1 << 63);
    assert_eq!(request.operation, Operation::Lookup { name: b"pg_wal" });
}

#[test]
fn a_write_carries_its_bytes_uncopied() {
    let body = [words(&[0, 0, 8192, 0, 3, 4, 0, 0, 0, 0]), b"abc".to_vec()].concat();
    let message = message(opcode::WRITE, 1, 2, &body);
    let expected = Write { offset: 8192, data: b"abc", kill_privileges: true, synchronous: false };
    assert_eq!(parse(&message).unwrap().operation, Operation::Write(expected));
}

#[test]
fn a_write_that_claims_more_than_it_carries_is_refused() {
    let body = words(&[0, 0, 0, 0, 3, 0, 0, 0, 0, 0]);
    let message = message(opcode::WRITE, 1, 2, &body);
    assert_eq!(parse(&message), Err(ParseFault::Body { unique: 2, opcode: opcode::WRITE }));
}

#[test]
fn names_without_an_end_are_refused() {
    assert_eq!(parsed(opcode::LOOKUP, b"abc"), None);
    assert_eq!(parsed(opcode::SYMLINK, b"abc\0target"), None);
    assert_eq!(parsed(opcode::RENAME, b"\x01\0\0\0\0\0\0\0old\0new"), None);
}

#[test]
fn both_forms_of_rename_are_read() {
    let old = Operation::Rename { name: b"a", new_parent: 1, new_name: b"b", flags: 0 };
    let new = Operation::Rename { name: b"a", new_parent: 1, new_name: b"b", flags: 2 };
    let names = b"a\0b\0".to_vec();
    let body = [words(&[1, 0]), names.clone()].concat();
    assert_eq!(parsed(opcode::RENAME, &body), Some(format!("{old:?}")));
    let body = [words(&[1, 0, 2, 0]), names].concat();
    assert_eq!(parsed(opcode::RENAME2, &body), Some(format!("{new:?}")));
}

#[test]
fn only_a_rename_between_two_directories_holds_others() {
    for (opcode, more) in [(opcode::RENAME, vec![]), (opcode::RENAME2, words(&[0, 0]))] {
        let body = [words(&[1, 0]), more, b"a\0b\0".to_vec()].concat();
        assert!(holds_others(&message(opcode, 2, 2, &body)));
        assert!(!holds_others(&message(opcode, 1, 2, &body)), "within one directory");
        assert!(!holds_others(&message(opcode::LINK, 2, 2, &body)));
    }
    let message = message(opcode::RENAME, 2, 2, &words(&[1, 0]));
    for end in 0..message.len() {
        // Whatever it says of half a message, which nobody answers.
        holds_others(&message[..end]);
    }
}

#[test]
fn only_the_attributes_named_valid_are_set() {
    let mut fields = [0_u32; 22];
    fields[0] = setattr::MODE | setattr::MTIME | setattr::ATIME | setattr::ATIME_NOW;
    (fields[10], fields[15], fields[17], fields[19]) = (5, 6, 0o640, 42);
    let message = message(opcode::SETATTR, 1, 2, &words(&fields));
    let expected = SetAttributes {
        mode: Some(0o640),
        accessed: Some(When::Now),
        modified: Some(When::At(5_000_000_006)),
        ..SetAttributes::default()
    };
    assert_eq!(parse(&message).unwrap().operation, Operation::SetAttributes(expected));
}

#[test]
fn a_batch_of_forgets_is_whole_or_refused() {
    let body = words(&[2, 0, 7, 0, 1, 0, 8, 0, 3, 0]);
    let message = message(opcode::BATCH_FORGET, 0, 2, &body);
    let Operation::BatchForget(forgets) = parse(&message).unwrap().operation else { panic!() };
    assert_eq!(forgets.pairs().collect::<Vec<_>>(), [(7, 1), (8, 3)]);
    assert_eq!(parsed(opcode::BATCH_FORGET, &body[..24]), None);
    assert_eq!(parsed(opcode::BATCH_FORGET, &words(&[u32::MAX, 0, 0])), None);
}

#[test]
fn features_beyond_the_first_word_count_only_if_announced() {
    let init = |flags| {
        parse(&message(opcode::INIT, 0, 2, &words(&[7, 45, 0, flags, 128]))).map(
            |request| matches!(request.operation, Operation::Init(i) if i.features >> 32 == 128),
        )
    };
    assert_eq!(init(1 << 30), Ok(true));
    assert_eq!(init(0), Ok(false));
}

#[test]
fn both_forms_of_setting_an_attribute_are_read() {
    for more in [None, Some(0), Some(1), Some(u32::MAX)] {
        for value in [&b""[..], b"v", b"a\0value", &[0; 40]] {
            let head = words(&[value.len() as u32, 2]);
            let longer = more.map_or(Vec::new(), |more| words(&[more, 0]));
            let body = [&head[..], &longer, b"user.name\0", value].concat();
            let expected = SetXattr { name: b"user.name", value, flags: 2, more };
            let read = parsed(opcode::SETXATTR, &body);
            assert_eq!(read, Some(format!("{:?}", Operation::SetXattr(expected))));
            assert_eq!(parsed(opcode::SETXATTR, &body[..body.len() - 1]), None);
        }
    }
}

#[test]
fn an_unknown_operation_is_a_value() {
    let message = message(999, 1, 2, b"whatever");
    assert_eq!(parse(&message).unwrap().operation, Operation::Unknown { opcode: 999 });
}

#[test]
fn a_length_that_is_not_the_messages_is_refused_by_number() {
    let mut message = message(opcode::GETATTR, 1, 2, b"");
    message[0] = 41;
    assert_eq!(parse(&message).unwrap_err().unique(), Some(2));
    assert_eq!(parse(&message[..39]).unwrap_err().unique(), None);
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
fn no_bytes_make_the_parser_panic() {
    let seed = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    println!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-front no_bytes_make");
    let mut random = Random(seed);
    for _ in 0..200_000 {
        let body: Vec<u8> = (0..random.next() % 120)
            .map(|_| if random.next().is_multiple_of(3) { 0 } else { random.next() as u8 })
            .collect();
        let mut message = message((random.next() % 56) as u32, 1, random.next(), &body);
        if random.next().is_multiple_of(8) {
            message.truncate((random.next() % 60) as usize);
        }
        if let Ok(Request { operation: Operation::BatchForget(forgets), .. }) = parse(&message) {
            assert!(forgets.pairs().count() <= body.len() / 16);
        }
    }
}
