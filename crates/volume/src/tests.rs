//! FORMAT.md and the code say the same.

use holdfast_format_docs::{Tables, changed, constants};
use holdfast_io::{Change, Kind};

use crate::names::Place;
use crate::names::requests::Noted;
use crate::names::roster::Entry;
use crate::record::{AtHome, HEAD_BYTES, Op, Record, kind_number};
use holdfast_io::tree::NodeId;

const FORMAT: Tables = Tables::of(include_str!("../FORMAT.md"));

const BASE: Record<'_> = Record {
    node: NodeId(1),
    parent: NodeId(1),
    path: b"p",
    at_home: AtHome { inode: 0, home: 0 },
    at_ns: 1,
    op: Op::Write { offset: 1, bytes: 1 },
};

fn encoded(record: Record<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    record.encode(&mut bytes);
    bytes
}

#[test]
fn the_table_of_a_record_is_what_is_encoded() {
    let fields = FORMAT.gapless("Record", HEAD_BYTES);
    let link = Record { op: Op::Link { to: b"" }, ..BASE };
    let change = |mode| Op::Change { change: Change { mode, ..Change::default() } };
    let pairs = [
        ("op", BASE, Record { op: Op::Reserve { offset: 1, bytes: 1 }, ..BASE }),
        (
            "detail",
            Record { op: Op::Zero { offset: 1, bytes: 1, hole: false }, ..BASE },
            Record { op: Op::Zero { offset: 1, bytes: 1, hole: true }, ..BASE },
        ),
        ("path_bytes", link, Record { path: b"path", ..link }),
        ("other_bytes", link, Record { op: Op::Link { to: b"to" }, ..link }),
        ("mask", Record { op: change(None), ..BASE }, Record { op: change(Some(0)), ..BASE }),
        ("node", BASE, Record { node: NodeId(!1), ..BASE }),
        ("at_ns", BASE, Record { at_ns: !1, ..BASE }),
        ("first", BASE, Record { op: Op::Write { offset: !1, bytes: 1 }, ..BASE }),
        ("second", BASE, Record { op: Op::Write { offset: 1, bytes: !1 }, ..BASE }),
        ("parent", BASE, Record { parent: NodeId(!1), ..BASE }),
    ];
    let names: Vec<_> = fields.iter().map(|field| field.0).collect();
    assert_eq!(names, pairs.each_ref().map(|pair| pair.0), "a field is not tried");
    for (name, before, after) in pairs {
        assert_eq!(changed(&fields, &encoded(before), &encoded(after)), [name]);
    }
}

#[test]
fn the_table_of_operations_is_what_is_encoded() {
    let change = Change::default();
    let (kind, mode, uid, gid, rdev) = (Kind::File, 0, 0, 0, 0);
    let operations = [
        ("write", Op::Write { offset: 0, bytes: 0 }),
        ("zero", Op::Zero { offset: 0, bytes: 0, hole: false }),
        ("set_size", Op::SetSize { size_bytes: 0 }),
        ("reserve", Op::Reserve { offset: 0, bytes: 0 }),
        ("change", Op::Change { change }),
        ("make", Op::Make { kind, mode, uid, gid, rdev, target: b"" }),
        ("link", Op::Link { to: b"" }),
        ("remove", Op::Remove { survivor: b"", last: false }),
        ("remove_dir", Op::RemoveDir),
        ("rename", Op::Rename { to: b"", replaced: NodeId(0) }),
        ("set_xattr", Op::SetXattr { name: b"", value: b"" }),
        ("remove_xattr", Op::RemoveXattr { name: b"" }),
        ("exchange", Op::Exchange { to: b"", other: NodeId(0), from_parent: NodeId(0) }),
    ];
    let stored =
        operations.map(|(name, op)| (encoded(Record { op, ..BASE })[0].into(), name.to_owned()));
    assert_eq!(FORMAT.numbers("Operations"), stored);
}

#[test]
fn the_table_of_kinds_is_what_is_encoded() {
    let kinds = [
        ("file", Kind::File),
        ("directory", Kind::Directory),
        ("symlink", Kind::Symlink),
        ("fifo", Kind::Fifo),
        ("socket", Kind::Socket),
        ("char_device", Kind::CharDevice),
        ("block_device", Kind::BlockDevice),
    ];
    let stored = kinds.map(|(name, kind)| (kind_number(kind).into(), name.to_owned()));
    assert_eq!(FORMAT.numbers("Kinds"), stored);
}

#[test]
fn the_table_of_a_roster_entry_is_what_is_encoded() {
    let fields = FORMAT.gapless("Roster entry", 17);
    let place = |parent| Place { parent: NodeId(parent), name: b"n".as_slice().into() };
    let bind = Entry::Bind(NodeId(1), place(1)).encode();
    assert_eq!(bind.len(), 18, "the name follows");
    assert_eq!(Entry::Drop(NodeId(1)).encode().len(), 9, "a dropped node has no name");
    assert_eq!(Entry::Count(NodeId(1), 1).encode().len(), 17, "nor has a counted one");
    let exchange = Noted::Exchange { request: 1, one: NodeId(1), other: NodeId(2) };
    let exchange = Entry::Asked(0, exchange);
    let steps = [Entry::Unbind(NodeId(1), place(1)), Entry::Drop(NodeId(1))]
        .into_iter()
        .chain([Entry::Told(NodeId(1), place(1)), Entry::Count(NodeId(1), 1)])
        .chain([exchange])
        .chain([Entry::Spilled { number: 1, bytes: 1 }])
        .chain([Entry::Home(NodeId(1), AtHome { inode: 1, home: 1 })])
        .chain([Entry::Asked(0, Noted::Attribute { request: 1, node: NodeId(1) })]);
    let steps: Vec<u8> = steps.map(|entry| entry.encode()[0]).collect();
    assert_eq!(
        (bind[0], steps),
        (1, vec![2, 3, 4, 5, 6, 7, 8, 9]),
        "FORMAT.md tells them by number"
    );
    let pairs = [
        ("step", Entry::Unbind(NodeId(1), place(1))),
        ("node", Entry::Bind(NodeId(!1), place(1))),
        ("parent", Entry::Bind(NodeId(1), place(!1))),
    ];
    for (name, after) in pairs {
        assert_eq!(changed(&fields, &bind, &after.encode()), [name]);
    }
}

#[test]
fn the_table_of_words_is_the_list_of_words() {
    assert_eq!(FORMAT.numbers("Words"), constants(include_str!("words.rs")));
}

#[test]
fn a_field_at_another_place_is_noticed() {
    let mut fields = FORMAT.gapless("Record", HEAD_BYTES);
    fields.swap(0, 1);
    let (first, second) = (fields[0].1.clone(), fields[1].1.clone());
    (fields[0].1, fields[1].1) = (second, first);
    let after = encoded(Record { op: Op::Reserve { offset: 1, bytes: 1 }, ..BASE });
    assert_ne!(changed(&fields, &encoded(BASE), &after), ["op"]);
}
