//! The check refuses what no change makes.

use holdfast_io::fake::Random;
use holdfast_pages::{Contents, Page, PageNumber};

use super::*;
use crate::node::body::{Body, Spot};
use crate::node::contents::{NodeContents, put_image};
use crate::node::{Entry, Foster, Shape};

/// A leaf with a foster child, a hole in its heap, and a ghost.
fn leaf() -> Page {
    let foster = Some(Foster { key: b"key-x", page: PageNumber(300) });
    let shape = Shape { level: 0, low: b"key-a", high: Some(b"key-z"), foster };
    let entry = |suffix, ghost| Entry { suffix, value: b"a value", ghost };
    let entries = [entry(b"bcdefg", true), entry(b"c", false), entry(b"d", false)];
    let (mut image, mut page) = (Vec::new(), Page::zeroed());
    put_image(PageNumber(1), &shape, entries.into_iter(), &mut image);
    NodeContents.restore(&mut page, PageNumber(7), &image).expect("it is an image");
    let spot = Spot { tree: PageNumber(1), place: 1, key: b"key-c" };
    let mut body = Vec::new();
    Body::Replace { spot, at: 0, old: b"a value", new: b"" }.put(&mut body);
    NodeContents.apply(&mut page, &body).expect("it fits");
    page
}

#[test]
fn a_node_that_changes_made_passes() {
    assert_eq!(Node::of(&leaf()).expect("it is a node").check(), Ok(()));
}

#[test]
fn a_byte_of_another_value_where_values_do_not_lie_is_found() {
    let whole = leaf();
    let node = Node::of(&whole).expect("it is a node");
    let mut free = vec![true; NODE_BYTES];
    for entry in (0..node.count()).map(|place| node.entry_place(place)) {
        free[entry].fill(false);
    }
    // The zero behind the level, the foster child's number, and where a fence still fits.
    free[1] = false;
    free[16..24].fill(false);
    free[24..node.slot(0)].fill(false);
    for at in (0..NODE_BYTES).filter(|at| free[*at]) {
        let mut page = whole.clone();
        page.contents_mut()[at] ^= 0x15;
        let found = Node::of(&page).and_then(|node| node.check());
        assert!(found.is_err(), "byte {at}");
    }
}

#[test]
fn no_bytes_make_the_check_panic() {
    let (whole, mut random) = (leaf(), Random::new(3));
    for _ in 0..20_000 {
        let mut page = whole.clone();
        for _ in 0..1 + random.below(4) {
            let at =
                if random.chance(70) { random.below(80) } else { random.below(NODE_BYTES as u64) };
            page.contents_mut()[at as usize] = random.below(256) as u8;
        }
        let _ = Node::of(&page).and_then(|node| node.check());
    }
}
