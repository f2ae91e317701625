//! Records survive the round trip, and nothing else decodes.

use super::*;

fn samples() -> Vec<Op<'static>> {
    let change =
        Change { mode: Some(0o640), gid: Some(7), modified_ns: Some(-5), ..Change::default() };
    vec![
        Op::Zero { offset: 9, bytes: 1 << 40, hole: true },
        Op::SetSize { size_bytes: 77 },
        Op::Reserve { offset: 0, bytes: 4096 },
        Op::Change { change },
        Op::Make { kind: Kind::Symlink, mode: 0o777, uid: 1, gid: 2, rdev: 3, target: b"there" },
        Op::Link { to: b"a/other" },
        Op::Remove { survivor: b"kept", last: false },
        Op::RemoveDir,
        Op::Rename { to: b"b/new", replaced: NodeId(8) },
        Op::Write { offset: 4096, bytes: 5 },
    ]
}

fn encoded() -> Vec<u8> {
    let mut payload = Vec::new();
    for (number, op) in samples().into_iter().enumerate() {
        let node = NodeId(number as u64);
        let parent = NodeId(9);
        Record { node, parent, path: b"a/name", at_ns: -3, op }.encode(&mut payload);
    }
    payload.extend_from_slice(b"12345");
    payload
}

#[test]
fn every_operation_survives_the_round_trip() {
    let payload = encoded();
    let decoded: Vec<_> = decode(&payload).collect::<Result<_, _>>().expect("own bytes decode");
    let ops: Vec<_> = decoded.iter().map(|(record, _)| record.op).collect();
    assert_eq!(ops, samples());
    assert!(decoded.iter().all(|(record, _)| record.path == b"a/name" && record.at_ns == -3));
    let (_, data_at) = decoded.last().expect("ten records");
    assert_eq!(&payload[*data_at..], b"12345");
}

#[test]
fn a_payload_cut_anywhere_is_a_fault_or_a_whole_number_of_records() {
    let payload = encoded();
    let mut whole = 0;
    for cut in 0..payload.len() {
        let results: Vec<_> = decode(&payload[..cut]).collect();
        let faults = results.iter().filter(|result| result.is_err()).count();
        whole += usize::from(faults == 0);
        assert!(faults <= 1, "decoding goes on behind a fault at {cut}");
    }
    assert_eq!(whole, samples().len(), "only the record borders are whole");
}
