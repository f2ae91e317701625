//! Folding the roster gives the names that count.

use super::*;

#[test]
fn the_fold_knows_the_last_names_of_every_node_still_remembered() {
    let place = |name: &str| Place { parent: NodeId(1), name: name.as_bytes().into() };
    let steps = [
        Entry::Bind(NodeId(5), place("a")),
        Entry::Bind(NodeId(6), place("b")),
        Entry::Unbind(NodeId(5), place("a")),
        Entry::Bind(NodeId(5), place("c")),
        Entry::Drop(NodeId(6)),
    ];
    let mut known = Known::new();
    for step in steps {
        let decoded = Entry::decode(&step.encode()).expect("own bytes decode");
        assert_eq!(decoded, step);
        fold(&mut known, decoded);
    }
    assert_eq!(known, Known::from([(NodeId(5), vec![place("c")])]));
}
