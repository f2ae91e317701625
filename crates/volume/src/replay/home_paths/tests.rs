//! Paths of the moment lead to where the home has what they mean.

use super::*;
use crate::record::AtHome;
use holdfast_io::tree::ROOT;

fn record<'a>(node: u64, parent: u64, path: &'a str, op: Op<'a>) -> Record<'a> {
    let (node, parent) = (NodeId(node), NodeId(parent));
    Record { node, parent, path: path.as_bytes(), at_home: AtHome::default(), at_ns: 5, op }
}

fn told(records: &[Record<'_>]) -> Vec<(String, u64)> {
    let mut paths = HomePaths::new();
    records.iter().for_each(|record| paths.follow(record));
    let text = |path: Vec<u8>| String::from_utf8(path).unwrap();
    let mut told: Vec<_> =
        paths.into_nodes().into_iter().map(|(path, node)| (text(path), node.0)).collect();
    told.sort();
    told
}

const WRITE: Op<'_> = Op::Write { offset: 0, bytes: 1 };
const ROOT_NUMBER: u64 = ROOT.0;

#[test]
fn what_is_below_directories_that_changed_places_is_told_where_the_home_has_it() {
    let exchange = Op::Exchange { to: b"e", other: NodeId(31), from_parent: ROOT };
    let records = [
        record(40, 30, "d/a", WRITE),
        record(30, ROOT_NUMBER, "d", exchange),
        record(41, 31, "d/a", WRITE),
        record(40, 30, "e/a", WRITE),
    ];
    let expected = [("d", 30), ("d/a", 40), ("e", 31), ("e/a", 41)];
    assert_eq!(told(&records), expected.map(|(path, node)| (path.to_string(), node)));
}

#[test]
fn what_came_to_be_since_is_nowhere_at_home() {
    let file =
        Op::Make { kind: holdfast_io::Kind::File, mode: 0, uid: 0, gid: 0, rdev: 0, target: b"" };
    let onto = Op::Rename { to: b"a", replaced: NodeId(40) };
    let records = [
        record(50, ROOT_NUMBER, "new", file),
        record(50, ROOT_NUMBER, "new", onto),
        record(50, ROOT_NUMBER, "a", WRITE),
    ];
    assert_eq!(told(&records), [("a".to_string(), 40)]);
}
