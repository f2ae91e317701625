//! What was encoded is what is parsed, and bytes are parsed in one way only.

use super::*;

const AT: PageLink = PageLink { page: PageNumber(700), before: Rsn(900) };
const NEW: PageLink = PageLink { page: PageNumber(1), before: Rsn::NONE };
const RSN: Rsn = Rsn(1000);

/// One of each kind, and of each way to be so.
fn samples() -> Vec<What<'static>> {
    let opened = Opened { version: 300, opens: 4, identity: *b"a store in tests" };
    vec![
        What::Update { slot: Slot(5), at: AT, body: b"body" },
        What::Update { slot: Slot(u16::MAX), at: AT, body: &[7; 300] },
        What::Compensate { slot: Slot(5), at: AT, body: b"body" },
        What::System { at: AT, body: b"" },
        What::Image { at: AT, bytes: b"image" },
        What::Image { at: NEW, bytes: b"image" },
        What::Free { at: AT },
        What::Commit(Slot(200)),
        What::Aborted(Slot(0)),
        What::Retold { slot: Slot(5), count: 300, bodies: b"\x04body" },
        What::Cleaned(Rsn(12_345)),
        What::Checkpoint(b"state"),
        What::Opened(opened),
        What::Copy { page: PageNumber(700), bytes: b"page" },
    ]
}

fn encoded(what: &What<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    what.put(RSN, &mut out);
    out
}

#[test]
fn each_kind_comes_back_and_the_next_record_starts_where_it_ends() {
    for what in samples() {
        let mut bytes = encoded(&what);
        let end = RSN.advance(bytes.len() as u64);
        bytes.extend_from_slice(b"the next one");
        assert_eq!(parse(RSN, &bytes), Ok(Record { rsn: RSN, end, what }));
    }
}

#[test]
fn records_come_in_order_and_a_fault_is_the_last() {
    let mut bytes: Vec<u8> = Vec::new();
    let (mut at, mut put_there) = (RSN, Vec::new());
    for what in samples() {
        let from = bytes.len();
        what.put(at, &mut bytes);
        let end = at.advance((bytes.len() - from) as u64);
        put_there.push(Ok(Record { rsn: at, end, what }));
        at = end;
    }
    assert_eq!(Records::new(RSN, &bytes).collect::<Vec<_>>(), put_there);
    bytes.extend_from_slice(&[99, 0]);
    bytes.extend_from_slice(&encoded(&What::Commit(Slot(1))));
    put_there.push(Err(RecordFault::UnknownKind(99)));
    assert_eq!(Records::new(RSN, &bytes).collect::<Vec<_>>().len(), put_there.len());
    assert_eq!(Records::new(RSN, &bytes).last(), put_there.pop());
}

#[test]
fn every_bit_turned_over_is_a_fault_or_the_one_record_that_is_written_so() {
    for what in samples() {
        let bytes = encoded(&what);
        for bit in 0..bytes.len() * 8 {
            let mut turned = bytes.clone();
            turned[bit / 8] ^= 1 << (bit % 8);
            let Ok(record) = parse(RSN, &turned) else { continue };
            let end = record.end.since(RSN) as usize;
            assert_ne!(record.what, what, "bit {bit}");
            assert_eq!(encoded(&record.what), turned[..end], "bit {bit} of {what:?}");
        }
    }
}

#[test]
fn a_record_that_is_cut_anywhere_is_a_fault() {
    for what in samples() {
        let bytes = encoded(&what);
        for bytes_left in 0..bytes.len() {
            let cut = parse(RSN, &bytes[..bytes_left]);
            let wanted = matches!(cut, Err(RecordFault::Short | RecordFault::Number));
            assert!(wanted, "{bytes_left} bytes of {what:?}: {cut:?}");
        }
    }
}

#[test]
fn what_no_record_says_is_refused() {
    let cases: [(&[u8], RecordFault); 14] = [
        (&[], RecordFault::Short),
        (&[COMMIT, 2, 1], RecordFault::Short),
        (&[0, 0], RecordFault::UnknownKind(0)),
        (&[13, 0], RecordFault::UnknownKind(13)),
        (&[COMMIT, 0x80, 0], RecordFault::Number),
        (&[COMMIT, 0], RecordFault::Number),
        (&[COMMIT, 3, 0x80, 0x80, 4], RecordFault::Number),
        (&[COMMIT, 2, 1, 1], RecordFault::Length),
        (&[OPENED, 3, 1, 1, 7], RecordFault::Length),
        (&[IMAGE, 2, 0, 0], RecordFault::Link),
        (&[COPY, 2, 0, 0], RecordFault::Link),
        (&[SYSTEM, 2, 1, 0], RecordFault::Link),
        (&[FREE, 3, 1, 0xE1, 7], RecordFault::Link),
        (&[UPDATE, 4, 1, 1, 0xE9, 7], RecordFault::Link),
    ];
    for (bytes, fault) in cases {
        assert_eq!(parse(RSN, bytes), Err(fault), "{bytes:?}");
    }
    let longest = [&[UPDATE][..], &[0xFF; 9], &[1]].concat();
    assert_eq!(parse(RSN, &longest), Err(RecordFault::Short));
}
