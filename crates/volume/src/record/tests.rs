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
        Op::SetXattr { name: b"user.mark", value: b"any bytes" },
        Op::RemoveXattr { name: b"user.mark" },
        Op::Exchange { to: b"b/other", other: NodeId(8), from_parent: NodeId(7) },
        Op::Write { offset: 4096, bytes: 5 },
    ]
}

fn encoded() -> Vec<u8> {
    let mut payload = Vec::new();
    for (number, op) in samples().into_iter().enumerate() {
        let node = NodeId(number as u64);
        let parent = NodeId(9);
        Record { node, parent, path: b"a/name", at_home: AtHome::default(), at_ns: -3, op }
            .encode(&mut payload);
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
    let (_, data_at) = decoded.last().expect("thirteen records");
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

#[test]
fn a_time_of_any_year_comes_back_and_takes_no_more_than_it_must() {
    let mut bytes = Vec::new();
    for time_ns in [0, i64::MAX.into(), i128::from(i64::MAX) + 1, -(1 << 80)] {
        let change =
            Change { accessed_ns: Some(time_ns), modified_ns: Some(5), ..Change::default() };
        let op = Op::Change { change };
        let record = Record {
            node: NodeId(5),
            parent: NodeId(1),
            path: b"a",
            at_home: AtHome::default(),
            at_ns: 5,
            op,
        };
        let mut payload = Vec::new();
        record.encode(&mut payload);
        assert_eq!(decode(&payload).next().unwrap().unwrap().0, record);
        bytes.push(payload.len() - HEAD_BYTES - 1);
    }
    assert_eq!(bytes, [16, 16, 32, 32]);
}

#[test]
fn which_inode_the_node_is_comes_back_from_every_change_that_is_no_names() {
    let at_home = AtHome { inode: 1 << 40, home: 7 };
    for op in samples() {
        let mut payload = Vec::new();
        let path: &[u8] = b"a/name";
        let record = Record { node: NodeId(5), parent: NodeId(9), path, at_home, at_ns: -3, op };
        record.encode(&mut payload);
        payload.extend_from_slice(b"12345");
        let (decoded, _) = decode(&payload).next().expect("a record").expect("own bytes");
        let told = if record.changes_names() { AtHome::default() } else { at_home };
        assert_eq!(decoded, Record { at_home: told, ..record });
    }
}
