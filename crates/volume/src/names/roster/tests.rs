//! Folding the roster gives the names that count, and how often they were told.

use super::*;

#[test]
fn the_fold_knows_the_last_names_of_every_node_still_remembered() {
    let place = |name: &str| Place { parent: NodeId(1), name: name.as_bytes().into() };
    let steps = [
        Entry::Told(NodeId(5), place("a")),
        Entry::Told(NodeId(6), place("b")),
        Entry::Told(NodeId(7), place("d")),
        Entry::Count(NodeId(7), 9),
        Entry::Bind(NodeId(7), place("e")),
        Entry::Unbind(NodeId(5), place("a")),
        Entry::Told(NodeId(5), place("c")),
        Entry::Told(NodeId(7), place("e")),
        Entry::Drop(NodeId(6)),
    ];
    let mut known = Known::new();
    for step in steps {
        let decoded = Entry::decode(&step.encode()).expect("own bytes decode");
        assert_eq!(decoded, step);
        fold(&mut known, decoded);
    }
    let seven = Remembered {
        places: ["d", "e"].map(place).into_iter().collect(),
        count: 10,
        at_home: AtHome::default(),
    };
    let five = Remembered {
        places: [place("c")].into_iter().collect(),
        count: 2,
        at_home: AtHome::default(),
    };
    assert_eq!(known, Known::from([(NodeId(5), five), (NodeId(7), seven)]));
}

#[test]
fn what_is_written_anew_folds_to_the_same() {
    let place = |name: &str| Place { parent: NodeId(1), name: name.as_bytes().into() };
    for (names, count) in [(&["a"][..], 1), (&["a"], 4), (&["a", "b"], 1), (&["a", "b"], 3)] {
        let places = names.iter().map(|name| place(name)).collect();
        let node = Remembered { places, count, at_home: AtHome { inode: count, home: 7 } };
        let mut known = Known::new();
        node.entries(NodeId(5)).into_iter().for_each(|entry| fold(&mut known, entry));
        assert_eq!(known, Known::from([(NodeId(5), node)]));
    }
}
