//! Whatever happens to a node happens to a map, too; done and redone are the same bytes; and a body
//! or an image that was damaged is told or gives a sound node, never a panic.

use std::collections::BTreeMap;

use holdfast_io::fake::Random;
use holdfast_pages::{Contents, Page, PageNumber, Unfit, varint};

use super::*;
use crate::node::{HEAD_BYTES, KEY_BYTES_MAX, NODE_BYTES, SLOT_BYTES, VALUE_BYTES_MAX};

const NUMBER: PageNumber = PageNumber(9);
const TREE: PageNumber = PageNumber(3);

/// What the node must hold: values, and whether they are ghosts'.
type Model = BTreeMap<Vec<u8>, (Vec<u8>, bool)>;

fn page_of(shape: &Shape<'_>, entries: &[Entry<'_>]) -> Page {
    let (mut image, mut page) = (Vec::new(), Page::zeroed());
    put_image(TREE, shape, entries.iter().copied(), &mut image);
    NodeContents.restore(&mut page, NUMBER, &image).expect("the image is sound");
    page
}

fn empty_leaf(low: &[u8], high: Option<&[u8]>) -> Page {
    page_of(&Shape { level: 0, low, high, foster: None }, &[])
}

fn node(page: &Page) -> Node<'_> {
    Node::of(page).expect("it is a node")
}

fn encoded(body: &Body<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    body.put(&mut out);
    out
}

fn image_of(page: &Page) -> Vec<u8> {
    let mut image = Vec::new();
    NodeContents.image(page, &mut image);
    image
}

/// The checker: each byte of the node belongs to what it holds, or is zero; keys ascend.
fn check(page: &Page) -> Result<Model, String> {
    let node = Node::of(page).map_err(|unfit| unfit.0.to_string())?;
    let (shape, bytes) = (node.shape(), page.contents());
    let mut used = vec![false; NODE_BYTES];
    used[..node.slots_end()].fill(true);
    let (mut model, mut before) = (Model::new(), None);
    for (place, entry) in node.entries().enumerate() {
        for at in node.entry_place(place) {
            if std::mem::replace(&mut used[at], true) {
                return Err(format!("byte {at} belongs to two"));
            }
        }
        let key = node.key(place);
        if before.as_ref().is_some_and(|before| *before >= key) || !shape.holds(&key) {
            return Err(format!("key {key:?} is out of order"));
        }
        if node.find(&key) != Ok(place) {
            return Err(format!("key {key:?} is not found"));
        }
        before = Some(key.clone());
        model.insert(key, (entry.value.to_vec(), entry.ghost));
    }
    if (0..NODE_BYTES).any(|at| !used[at] && bytes[at] != 0) {
        return Err("an unused byte is not zero".into());
    }
    let unused = used.iter().filter(|used| !**used).count();
    if unused != node.room() || node.prefix() != shape.prefix() {
        return Err(format!("room for {} bytes is said to be {}", unused, node.room()));
    }
    Ok(model)
}

fn any_key(random: &mut Random, low: &[u8]) -> Vec<u8> {
    let mut key = low.to_vec();
    let bytes = if random.chance(5) { 200 } else { 1 + random.below(6) as usize };
    key.extend((0..bytes).map(|_| random.below(6) as u8));
    key
}

fn any_value(random: &mut Random) -> Vec<u8> {
    let most = [4, 40, 400, 2049][random.below(4) as usize];
    let mut value = vec![0; random.below(most) as usize];
    random.fill(&mut value);
    value
}

/// A change of the node that a tree could want, as a body, made in the model as well.
fn any_change(random: &mut Random, page: &Page, model: &mut Model) -> Option<Vec<u8>> {
    let node = node(page);
    let key = any_key(random, node.shape().low);
    if !node.shape().holds(&key) {
        return None;
    }
    let value = any_value(random);
    let spot = |place| Spot { tree: TREE, place, key: &key };
    let place = match node.find(&key) {
        Ok(place) => place,
        Err(place) if node.fits(&key, value.len()) => {
            let body = encoded(&Body::Insert { spot: spot(place), value: &value });
            model.insert(key, (value, false));
            return Some(body);
        }
        Err(_) => return purge(node, model),
    };
    let (old, ghost) = model.get(&key)?.clone();
    let spot = spot(place);
    let (body, now) = if ghost && random.chance(50) {
        (Body::Unghost(spot), (old.clone(), false))
    } else if ghost {
        node.fits_instead(place, value.len()).then_some(())?;
        (Body::Revive { spot, old: &old, new: &value }, (value.clone(), false))
    } else if random.chance(30) {
        (Body::Ghost(spot), (old.clone(), true))
    } else if random.chance(20) {
        node.fits_instead(place, value.len()).then_some(())?;
        (Body::Unrevive { spot, old: &value }, (value.clone(), true))
    } else {
        let at = random.below(old.len() as u64 + 1) as usize;
        let gone = random.below((old.len() - at) as u64 + 1) as usize;
        let new = [&old[..at], &value, &old[at + gone..]].concat();
        let fits = new.len() <= VALUE_BYTES_MAX && node.fits_instead(place, new.len());
        fits.then_some(())?;
        let body = if random.chance(50) {
            Body::Replace { spot, at, old: &old[at..at + gone], new: &value }
        } else {
            Body::Renew { spot, at, cut: gone, new: &value }
        };
        (body, (new, false))
    };
    let body = encoded(&body);
    model.insert(key, now);
    Some(body)
}

fn purge(node: Node<'_>, model: &mut Model) -> Option<Vec<u8>> {
    let ghosts = node.entries().enumerate().filter(|(_, entry)| entry.ghost);
    let mut places = Vec::new();
    ghosts.for_each(|(place, _)| varint::put(place as u64, &mut places));
    model.retain(|_, (_, ghost)| !*ghost);
    Some(encoded(&Body::Purge { places: &places }))
}

/// The leaf splits in its middle; what goes leaves the model. Then the parent has what went.
fn split(page: &mut Page, again: &mut Page, model: &mut Model) {
    let place = node(page).count() / 2;
    if place == 0 {
        return;
    }
    let key = node(page).key(place);
    let body = encoded(&Body::Split { place, page: PageNumber(77), key: &key });
    for body in [&body, &encoded(&Body::AdoptChild)] {
        for page in [&mut *page, &mut *again] {
            NodeContents.apply(page, body).expect("it fits");
        }
        model.split_off(&key);
        assert_eq!(check(page).as_ref(), Ok(&*model));
    }
    assert_eq!(node(page).shape().high, Some(&key[..]));
}

/// Random changes, each done to a page and to the model, and redone to another page.
fn life(seed: u64) {
    let mut random = Random::new(seed);
    let mut page = empty_leaf(b"pre", random.chance(50).then_some(b"prf"));
    let (mut again, mut model) = (page.clone(), Model::new());
    for _ in 0..400 {
        if random.chance(1) {
            split(&mut page, &mut again, &mut model);
        }
        let Some(body) = any_change(&mut random, &page, &mut model) else { continue };
        NodeContents.apply(&mut page, &body).expect("it fits");
        assert_eq!(check(&page).as_ref(), Ok(&model));
        NodeContents.apply(&mut again, &body).expect("it fits again");
        assert!(page.same_bytes(&again));
        if random.chance(2) {
            let image = image_of(&page);
            NodeContents.restore(&mut again, NUMBER, &image).expect("it is an image");
            assert_eq!((check(&again).as_ref(), image_of(&again)), (Ok(&model), image));
            page = again.clone();
        }
    }
}

fn seeds(count: u64) -> Vec<u64> {
    let number = |name| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("HOLDFAST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=count * number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1).max(1)).collect(),
    }
}

/// Runs a life for each seed, and prints what repeats a failure.
fn for_seeds(test: &str, count: u64, life: impl Fn(u64) + std::panic::RefUnwindSafe) {
    for seed in seeds(count) {
        if let Err(panic) = std::panic::catch_unwind(|| life(seed)) {
            println!("replay: HOLDFAST_SEED={seed} cargo test -p holdfast-store {test}");
            std::panic::resume_unwind(panic);
        }
    }
}

#[test]
fn a_node_holds_what_was_put_and_redoing_gives_the_same_bytes() {
    for_seeds("redoing_gives_the_same_bytes", 60, life);
}

#[test]
fn a_damaged_body_is_told_or_leaves_a_sound_node() {
    for_seeds("a_damaged_body", 20, |seed| {
        let mut random = Random::new(seed);
        let (mut page, mut model) = (empty_leaf(b"", None), Model::new());
        for _ in 0..60 {
            let Some(body) = any_change(&mut random, &page, &mut model) else { continue };
            for _ in 0..30 {
                let mut damaged = page.clone();
                if NodeContents.apply(&mut damaged, &damage(&mut random, &body)).is_ok() {
                    check(&damaged).expect("it is sound");
                }
            }
            NodeContents.apply(&mut page, &body).expect("it fits");
        }
    });
}

#[test]
fn a_damaged_image_is_told_or_is_of_a_sound_node() {
    for_seeds("a_damaged_image", 20, |seed| {
        let mut random = Random::new(seed);
        let (mut page, mut model) = (empty_leaf(b"pre", Some(b"prf")), Model::new());
        for _ in 0..30 {
            let Some(body) = any_change(&mut random, &page, &mut model) else { continue };
            NodeContents.apply(&mut page, &body).expect("it fits");
        }
        let image = image_of(&page);
        for _ in 0..300 {
            let mut damaged = Page::zeroed();
            let restored = NodeContents.restore(&mut damaged, NUMBER, &damage(&mut random, &image));
            if restored.is_ok() && damaged.kind() != Some(PageKind::Large) {
                check(&damaged).expect("it is sound");
            }
        }
    });
}

/// The bytes with one of them changed, or cut, or with others behind them.
fn damage(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let at = random.below(bytes.len().min(40) as u64) as usize;
    match random.below(4) {
        0 => bytes.truncate(at),
        1 => bytes.push(random.any() as u8),
        2 => bytes[at] ^= 1 << random.below(8),
        _ => bytes[at] = random.any() as u8,
    }
    bytes
}

#[test]
fn the_checker_notices_a_node_that_is_not_sound() {
    let entry = |suffix, value| Entry { suffix, value, ghost: false };
    let shape = Shape { level: 0, low: b"", high: None, foster: None };
    let page = page_of(&shape, &[entry(b"a", b"one"), entry(b"b", b"two")]);
    assert!(check(&page).is_ok());
    let room = node(&page).slots_end();
    for (at, byte) in [
        (room, 1),              // In the gap.
        (6, 1),                 // Bytes that are said to be dead.
        (HEAD_BYTES, 0xD6),     // The first entry is the second one.
        (HEAD_BYTES + 4, b'c'), // The first bytes of the first key.
        (NODE_BYTES - 5, b'c'), // The first key itself.
    ] {
        let mut damaged = page.clone();
        damaged.contents_mut()[at] = byte;
        assert!(check(&damaged).is_err(), "byte {at}");
    }
}

/// What becomes of a body that is about this page.
fn told(page: &Page, body: &Body<'_>) -> Result<(), Unfit> {
    NodeContents.apply(&mut page.clone(), &encoded(body))
}

fn a_leaf() -> Page {
    let entry = |suffix, ghost| Entry { suffix, value: b"value", ghost };
    let foster = Some(Foster { key: b"k", page: PageNumber(5) });
    let shape = Shape { level: 0, low: b"b", high: Some(b"x"), foster };
    page_of(&shape, &[entry(b"b", false), entry(b"f", true), entry(b"j", false)])
}

#[test]
fn a_key_that_belongs_elsewhere_is_refused() {
    let insert = |place, key: &[u8]| {
        told(&a_leaf(), &Body::Insert { spot: Spot { tree: TREE, place, key }, value: b"v" })
    };
    for key in [&b"a"[..], b"k", b"x", b"", &[b'c'; KEY_BYTES_MAX + 1]] {
        assert!(insert(1, key).is_err(), "{} bytes: {:?}", key.len(), key.first());
    }
    for (place, key) in [(0, b"c"), (2, b"c"), (1, b"b"), (3, b"f"), (4, b"j"), (999, b"j")] {
        assert!(insert(place, key).is_err(), "{key:?} at {place}");
    }
    for (place, key) in [(1, b"c"), (2, b"g")] {
        assert_eq!(insert(place, key), Ok(()), "{key:?} at {place}");
    }
    assert_eq!(insert(3, b"jj"), Ok(()));
}

#[test]
fn a_body_about_another_entry_tree_or_value_is_refused() {
    let page = a_leaf();
    let spot = Spot { tree: TREE, place: 0, key: b"b" };
    assert_eq!(told(&page, &Body::Ghost(spot)), Ok(()));
    assert!(told(&page, &Body::Ghost(Spot { place: 2, ..spot })).is_err());
    assert!(told(&page, &Body::Ghost(Spot { place: 9, ..spot })).is_err());
    assert!(told(&page, &Body::Ghost(Spot { tree: PageNumber(4), ..spot })).is_err());
    assert!(told(&page, &Body::Unghost(spot)).is_err());
    let ghost = Spot { place: 1, key: b"f", ..spot };
    assert!(told(&page, &Body::Ghost(ghost)).is_err());
    assert!(told(&page, &Body::Unrevive { spot: ghost, old: b"" }).is_err());
    assert!(told(&page, &Body::Revive { spot: ghost, old: b"valu", new: b"" }).is_err());
    assert!(told(&page, &Body::Revive { spot, old: b"value", new: b"" }).is_err());
    for (at, old) in [(0, &b"Value"[..]), (1, b"value"), (5, b"e"), (9, b""), (usize::MAX, b"v")] {
        assert!(told(&page, &Body::Replace { spot, at, old, new: b"" }).is_err(), "{old:?}");
    }
    let new = &[0; VALUE_BYTES_MAX - 4];
    assert!(told(&page, &Body::Replace { spot, at: 0, old: b"", new }).is_err());
    assert_eq!(told(&page, &Body::Replace { spot, at: 1, old: b"a", new }), Ok(()));
}

#[test]
fn a_change_of_shape_that_is_none_is_refused() {
    let page = a_leaf();
    let number = PageNumber(8);
    assert!(told(&page, &Body::Split { place: 1, page: number, key: b"g" }).is_err());
    assert!(told(&page, &Body::Split { place: 3, page: number, key: b"k" }).is_err());
    assert!(told(&page, &Body::AdoptParent { place: 1, page: number, key: b"c" }).is_err());
    for places in [&[0][..], &[1, 1], &[2], &[3], &[1, 0x80]] {
        assert!(told(&page, &Body::Purge { places }).is_err(), "{places:?}");
    }
    assert!(told(&empty_leaf(b"", None), &Body::AdoptChild).is_err());
    // A node that holds nothing any more would have no keys of its own.
    assert!(told(&page, &Body::Split { place: 0, page: number, key: b"b" }).is_err());
}

#[test]
fn a_page_that_is_no_node_is_refused() {
    let mut page = Page::zeroed();
    assert!(told(&page, &Body::AdoptChild).is_err());
    page.begin(NUMBER, PageKind::Free, PageNumber::NONE);
    assert!(told(&page, &Body::AdoptChild).is_err());
    page.begin(NUMBER, PageKind::Leaf, TREE);
    assert!(told(&page, &Body::AdoptChild).is_err());
}

#[test]
fn an_inner_node_has_children_and_no_ghosts() {
    let child = |suffix| Entry { suffix, value: &[4], ghost: false };
    let shape = Shape { level: 1, low: b"", high: None, foster: None };
    let mut page = page_of(&shape, &[child(b""), child(b"m")]);
    let adopt = Body::AdoptParent { place: 1, page: PageNumber(300), key: b"g" };
    NodeContents.apply(&mut page, &encoded(&adopt)).expect("it fits");
    let children: Vec<_> = (0..3).map(|place| node(&page).child(place)).collect();
    assert_eq!(children, [Ok(PageNumber(4)), Ok(PageNumber(300)), Ok(PageNumber(4))]);
    let spot = Spot { tree: TREE, place: 0, key: b"" };
    assert!(told(&page, &Body::Ghost(spot)).is_err());
    for value in [&[][..], &[0], &[4, 4], &[0x80]] {
        let (mut image, entry) = (Vec::new(), Entry { suffix: b"", value, ghost: false });
        put_image(TREE, &shape, [entry].into_iter(), &mut image);
        assert!(NodeContents.restore(&mut Page::zeroed(), NUMBER, &image).is_err(), "{value:?}");
    }
}

#[test]
fn a_node_takes_what_fits_and_nothing_more() {
    for bytes in [0, 1, 2, 100, 127, 128, 1000, VALUE_BYTES_MAX] {
        let (mut page, value) = (empty_leaf(b"", None), vec![7; bytes]);
        let mut entries = 0_u32;
        loop {
            let key = entries.to_be_bytes();
            let spot = Spot { tree: TREE, place: entries as usize, key: &key };
            let fits = node(&page).fits(&key, bytes);
            let body = encoded(&Body::Insert { spot, value: &value });
            assert_eq!(NodeContents.apply(&mut page, &body).is_ok(), fits);
            if !fits {
                break;
            }
            entries += 1;
        }
        let each = SLOT_BYTES + 4 + varint::bytes(bytes as u64) + bytes;
        assert_eq!(entries as usize, (NODE_BYTES - HEAD_BYTES) / each);
        assert_eq!(check(&page).map(|model| model.len()), Ok(entries as usize));
    }
}
