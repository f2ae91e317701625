//! A listing that is interrupted loses nothing and repeats nothing.

use super::*;

fn child(number: u64) -> Child {
    let name = format!("name-{number}").into_bytes().into();
    Child { name, kind: Kind::File, node: NodeId(number) }
}

#[test]
fn a_listing_in_pieces_gives_every_name_once_while_others_come_and_go() {
    let mut children = Children::default();
    (0..500).for_each(|number| children.put(child(number)));
    let (mut cookie, mut seen) = (0, Vec::new());
    let mut round = 0;
    loop {
        let piece: Vec<(u64, NodeId)> =
            children.behind(cookie).take(7).map(|(cookie, child)| (cookie, child.node)).collect();
        let Some((last, _)) = piece.last() else { break };
        cookie = *last;
        seen.extend(piece.iter().map(|(_, node)| node.0).filter(|number| *number < 250));
        children.remove(&child(250 + round).name);
        children.put(child(1000 + round));
        round += 1;
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..250).collect::<Vec<_>>());
}
