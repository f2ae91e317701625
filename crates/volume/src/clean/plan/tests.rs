//! A window amounts to what its frames say, and ends before it could not be repeated.

use super::*;
use crate::record::AtHome;

const NODE: NodeId = NodeId(40);

fn record<'a>(node: NodeId, path: &'a str, op: Op<'a>) -> Record<'a> {
    Record {
        node,
        parent: NodeId(1),
        path: path.as_bytes(),
        at_home: AtHome::default(),
        at_ns: 5,
        op,
    }
}

fn make() -> Op<'static> {
    Op::Make { kind: Kind::File, mode: 0o600, uid: 0, gid: 0, rdev: 0, target: b"" }
}

fn rename(to: &str) -> Op<'_> {
    Op::Rename { to: to.as_bytes(), replaced: NodeId(0) }
}

const REMOVE: Op<'_> = Op::Remove { survivor: b"", last: true };
/// Of a name that is not the last.
const UNLINK: Op<'_> = Op::Remove { survivor: b"a", last: false };

/// Takes one frame per record; returns how many fitted.
fn take(window: &mut Window, records: &[Record<'_>]) -> usize {
    let frames = records.iter().enumerate();
    let taken = frames.take_while(|(index, record)| {
        let lsn = Lsn(1000 * (*index as u64 + 1));
        window.take(lsn, &[(**record, lsn.advance(100))], &[])
    });
    let count = taken.count();
    window.settle_links();
    count
}

#[test]
fn a_file_made_and_removed_in_one_window_costs_nothing_however_often() {
    let mut window = Window::new(false);
    let write = Op::Write { offset: 0, bytes: 8 };
    for number in 0..5 {
        let node = NodeId(100 + number);
        let life = [record(node, "j", make()), record(node, "j", write), record(node, "j", REMOVE)];
        assert_eq!(take(&mut window, &life), 3);
    }
    assert!(window.steps.iter().all(|step| *step == Step::Nothing));
    assert!(window.contents.is_empty());
}

fn make_directory() -> Op<'static> {
    Op::Make { kind: Kind::Directory, mode: 0o700, uid: 0, gid: 0, rdev: 0, target: b"" }
}

/// A directory that is made, with a file and a directory that are made in it, and all removed.
fn life_of_a_directory(first: u64) -> [Record<'static>; 6] {
    let [directory, file, below] = [0, 1, 2].map(|more| NodeId(first + more));
    [
        record(directory, "d", make_directory()),
        record(file, "d/x", make()),
        record(below, "d/s", make_directory()),
        record(file, "d/x", REMOVE),
        record(below, "d/s", Op::RemoveDir),
        record(directory, "d", Op::RemoveDir),
    ]
}

#[test]
fn a_directory_made_and_removed_in_one_window_costs_nothing_however_often() {
    let mut window = Window::new(false);
    for number in 0..5 {
        assert_eq!(take(&mut window, &life_of_a_directory(100 + 10 * number)), 6);
    }
    assert!(window.steps.iter().all(|step| *step == Step::Nothing));
    assert!(window.contents.is_empty());
}

#[test]
fn a_repetition_removes_once_what_may_be_there_of_directories_that_passed() {
    let mut window = Window::new(true);
    for number in 0..5 {
        assert_eq!(take(&mut window, &life_of_a_directory(100 + 10 * number)), 6);
    }
    let directories = |path: &str| {
        let path = path.as_bytes();
        let is_it = |step: &&Step| matches!(step, Step::RemoveDir { path: at, .. } if at == path);
        window.steps.iter().filter(is_it).count()
    };
    assert_eq!((directories("d"), directories("d/s")), (1, 1));
    assert!(matches!(window.steps.last(), Some(Step::RemoveDir { path, .. }) if path == b"d"));
}

#[test]
fn a_repetition_takes_a_directory_that_passed_for_the_next_without_its_attributes() {
    let label = Op::SetXattr { name: b"user.l", value: b"v" };
    let owner = Change { uid: Some(5), ..Change::default() };
    let mut window = Window::new(true);
    let frames = [
        record(NODE, "d", make_directory()),
        record(NODE, "d", label),
        record(NODE, "d", Op::Change { change: owner }),
        record(NODE, "d", Op::RemoveDir),
        record(NodeId(41), "d", make_directory()),
        record(NodeId(42), "d/x", make()),
    ];
    assert_eq!(take(&mut window, &frames), 6);
    assert!(!window.steps.iter().any(|step| matches!(step, Step::RemoveDir { .. })));
    assert_eq!(made_at(&window, b"d"), Some((NodeId(41), None)));
    assert_eq!(window.contents[&NodeId(41)].xattrs, BTreeMap::from([(b"user.l".to_vec(), None)]));
    assert!(window.may_own(NodeId(9), b"d", 0) && window.may_own(NodeId(9), b"d", 5));
}

#[test]
fn nothing_but_a_directory_comes_to_stand_where_a_passing_directory_stood() {
    let passing = [record(NODE, "d", make_directory()), record(NODE, "d", Op::RemoveDir)];
    let (new, old) = (NodeId(100), NodeId(20));
    for life in [
        vec![record(new, "d", make())],
        vec![record(new, "t", make()), record(new, "t", rename("d"))],
        vec![record(old, "a", rename("d"))],
        vec![record(old, "a", rename("b")), record(old, "b", rename("d"))],
        vec![record(old, "a", Op::Link { to: b"d" })],
    ] {
        let mut window = Window::new(false);
        assert_eq!(take(&mut window, &passing), 2);
        assert_eq!(take(&mut window, &life), life.len() - 1, "{life:?}");
    }
}

#[test]
fn a_directory_that_something_old_came_into_goes_in_a_window_of_its_own() {
    let mut window = Window::new(false);
    let old = NodeId(20);
    let frames = [
        record(NODE, "d", make_directory()),
        record(old, "a", rename("d/a")),
        record(old, "d/a", rename("a")),
        record(NODE, "d", Op::RemoveDir),
    ];
    assert_eq!(take(&mut window, &frames), 3);
}

#[test]
fn a_repetition_ends_where_the_first_time_ended_and_removes_what_passed() {
    let write = Op::Write { offset: 0, bytes: 8 };
    let life = [
        record(NODE, "j", make()),
        record(NODE, "j", REMOVE),
        record(NodeId(41), "j", make()),
        record(NodeId(41), "j", write),
        record(NodeId(41), "j", rename("k")),
    ];
    let (mut first, mut again) = (Window::new(false), Window::new(true));
    assert_eq!(take(&mut first, &life), take(&mut again, &life));
    let removal = |node| Step::Remove { node, path: b"j".to_vec() };
    assert_eq!(first.steps[..2], [Step::Nothing, Step::Nothing]);
    assert_eq!(again.steps[..2], [removal(NODE), removal(NodeId(41))]);
    assert_eq!(made_at(&first, b"k"), Some((NodeId(41), None)));
    let over = Some(NodeId(41));
    assert_eq!(made_at(&again, b"k"), Some((NodeId(41), over)), "an earlier time may have made it");
    // What the log knows to be empty is looked at, because somebody may have written to it.
    let sized = first
        .contents
        .clone()
        .into_iter()
        .map(|(node, contents)| (node, Contents { size_bytes: Some(0), ..contents }));
    assert_eq!(again.contents, sized.collect());
}

/// Which node the window makes under a path, and in whose place.
fn made_at(window: &Window, at: &[u8]) -> Option<(NodeId, Option<NodeId>)> {
    window.steps.iter().find_map(|step| match step {
        Step::Make { node, path, over, .. } if path == at => Some((*node, *over)),
        _ => None,
    })
}

#[test]
fn a_file_written_aside_and_put_in_the_place_of_another_is_made_there_however_often() {
    let mut window = Window::new(false);
    let write = Op::Write { offset: 0, bytes: 8 };
    let mut old = NODE;
    for number in 0..5 {
        let node = NodeId(100 + number);
        let onto = Op::Rename { to: b"conf", replaced: old };
        let life = [record(node, "t", make()), record(node, "t", write), record(node, "t", onto)];
        assert_eq!(take(&mut window, &life), 3, "version {number}");
        old = node;
    }
    assert_eq!(made_at(&window, b"conf"), Some((old, Some(NODE))));
    assert_eq!(window.steps.iter().filter(|step| **step != Step::Nothing).count(), 1);
    assert_eq!(window.contents.keys().collect::<Vec<_>>(), [&old]);
}

#[test]
fn a_file_removed_and_made_again_is_one_step_that_can_be_repeated() {
    let mut window = Window::new(false);
    let new = NodeId(41);
    let frames = [record(NODE, "a", REMOVE), record(new, "a", make()), record(new, "a", REMOVE)];
    assert_eq!(take(&mut window, &frames[..2]), 2);
    assert_eq!(made_at(&window, b"a"), Some((new, Some(NODE))));
    assert_eq!(take(&mut window, &frames[2..]), 1);
    assert_eq!(window.steps.last(), Some(&Step::Remove { node: NODE, path: b"a".to_vec() }));
}

#[test]
fn a_node_moved_to_and_fro_is_moved_once_at_most() {
    let mut window = Window::new(false);
    for _ in 0..1000 {
        let frames = [record(NODE, "a", rename("b")), record(NODE, "b", rename("a"))];
        assert_eq!(take(&mut window, &frames), 2);
    }
    let moved: Vec<_> = window.steps.iter().filter(|step| **step != Step::Nothing).collect();
    let via = BTreeSet::from([b"a".to_vec(), b"b".to_vec()]);
    let (from, to) = (b"a".to_vec(), b"a".to_vec());
    assert_eq!(moved, [&Step::Move { node: NODE, parent: NodeId(1), from, via, to }]);
    let other = [record(NodeId(50), "x", rename("b"))];
    assert_eq!(take(&mut window, &other), 0, "nothing else comes to one of its names");
}

#[test]
fn a_node_that_may_have_stood_in_a_directory_that_went_is_not_moved_on() {
    let mut window = Window::new(false);
    let frames = [
        record(NODE, "a", rename("b")),
        record(NodeId(50), "d", Op::RemoveDir),
        record(NODE, "b", rename("c")),
    ];
    assert_eq!(take(&mut window, &frames), 2, "it may have stood in the directory that went");
}

#[test]
fn a_name_that_a_window_gives_and_that_is_renamed_is_given_as_it_is_called_last() {
    let node = NodeId(60);
    let link = |from: &'static str| record(node, from, Op::Link { to: b"m" });
    let mut old = Window::new(false);
    let frames = [link("l"), record(node, "m", rename("n")), record(node, "n", rename("o"))];
    assert_eq!(take(&mut old, &frames), 3);
    let mut new = Window::new(false);
    let frames = [record(node, "k", make()), link("k"), record(node, "k", rename("o"))];
    assert_eq!(take(&mut new, &frames), 3);
    for (window, source) in [(old, b"l"), (new, b"m")] {
        let links = window.steps.iter().filter_map(|step| match step {
            Step::Link { from, to, .. } => Some((from.as_slice(), to.as_slice())),
            _ => None,
        });
        assert_eq!(links.collect::<Vec<_>>(), [(source.as_slice(), b"o".as_slice())]);
    }
}

#[test]
fn what_has_another_in_its_place_or_lies_under_a_name_of_old_is_not_given_anew() {
    let link = record(NODE, "l", Op::Link { to: b"m" });
    for other in ["l", "m"] {
        let mut window = Window::new(false);
        let onto = Op::Rename { to: b"n", replaced: NodeId(if other == "m" { 70 } else { 0 }) };
        assert_eq!(take(&mut window, &[link, record(NODE, other, onto)]), 1, "{other}");
    }
}

#[test]
fn a_name_touched_twice_ends_the_window() {
    for second in [make(), REMOVE, rename("c"), Op::Link { to: b"d" }] {
        let mut window = Window::new(false);
        let other = NodeId(41);
        let frames = [record(NODE, "a", rename("b")), record(other, "b", second)];
        assert_eq!(take(&mut window, &frames), 1, "{second:?}");
    }
}

#[test]
fn a_directory_is_not_renamed_over_what_the_window_knows_below_it() {
    let write = Op::Write { offset: 0, bytes: 8 };
    for first in [make(), write, REMOVE] {
        let mut window = Window::new(false);
        let frames = [record(NODE, "d/x", first), record(NodeId(50), "d", rename("e"))];
        assert_eq!(take(&mut window, &frames), 1, "{first:?}");
    }
}

#[test]
fn bytes_follow_their_file_to_its_new_name() {
    let mut window = Window::new(false);
    let write = Op::Write { offset: 0, bytes: 8 };
    let frames =
        [record(NODE, "a", write), record(NODE, "a", rename("b")), record(NODE, "b", write)];
    assert_eq!(take(&mut window, &frames), 3);
    let contents = &window.contents[&NODE];
    assert_eq!(contents.path, b"b");
    let at: Vec<_> = contents.extents.iter().map(|piece| piece.at).collect();
    assert_eq!(at, [Lsn(3100)], "the newer write hides the older");
}

#[test]
fn one_frame_that_touches_a_name_twice_gets_a_barrier() {
    let mut window = Window::new(false);
    let away = record(NODE, "t", rename(".holdfast/40-0"));
    let onto = record(NodeId(41), "s", rename("t"));
    assert!(window.take(Lsn(8), &[(away, Lsn(8)), (onto, Lsn(8))], &[]));
    assert_eq!(window.steps.len(), 3);
    assert_eq!(window.steps[1], Step::Barrier);
}

#[test]
fn a_file_cut_short_and_grown_again_has_zeros_between() {
    let mut window = Window::new(false);
    let size = |size_bytes| Op::SetSize { size_bytes };
    let write = Op::Write { offset: 100, bytes: 10 };
    let frames =
        [record(NODE, "a", size(10)), record(NODE, "a", write), record(NODE, "a", size(50))];
    assert_eq!(take(&mut window, &frames), 3);
    let contents = &window.contents[&NODE];
    assert_eq!((contents.cut_bytes, contents.size_bytes), (Some(10), Some(50)));
    assert!(contents.extents.is_empty());
    assert_eq!(contents.end_bytes(), 50);
}

#[test]
fn a_file_made_again_has_nothing_of_what_somebody_wrote_into_it_meanwhile() {
    for repeats in [false, true] {
        let mut window = Window::new(repeats);
        assert_eq!(take(&mut window, &[record(NODE, "a", make())]), 1);
        let contents = &window.contents[&NODE];
        assert_eq!(contents.cut_bytes, Some(0));
        assert_eq!(contents.size_bytes, repeats.then_some(0), "then it is opened, to be cut");
    }
}

#[test]
fn nothing_old_comes_to_stand_where_a_passing_file_stood() {
    let Op::Make { mode, uid, gid, rdev, target, .. } = make() else { unreachable!("it makes") };
    let directory = Op::Make { kind: Kind::Directory, mode, uid, gid, rdev, target };
    let mut window = Window::new(false);
    let (passing, old) = (NodeId(100), NodeId(20));
    let frames =
        [record(passing, "j", make()), record(passing, "j", REMOVE), record(old, "x", rename("j"))];
    assert_eq!(take(&mut window, &frames), 2);
    let linked = record(old, "x", Op::Link { to: b"j" });
    assert_eq!(take(&mut window, &[linked]), 1, "taken for what passed, it loses a name too many");
    let mut window = Window::new(false);
    let frames = [
        record(NodeId(100), "j", make()),
        record(NodeId(100), "j", REMOVE),
        record(NodeId(20), "j", directory),
    ];
    assert_eq!(take(&mut window, &frames), 2, "a directory cannot be removed as a file");
    let mut window = Window::new(false);
    let (passing, directory) = (NodeId(100), NodeId(20));
    let frames = [
        record(passing, "d/j", make()),
        record(passing, "d/j", REMOVE),
        record(directory, "d", Op::RemoveDir),
    ];
    assert_eq!(take(&mut window, &frames), 2);
}

const ORPHAN: &str = ".holdfast/40-7";

#[test]
fn a_file_that_is_removed_while_it_is_remembered_and_then_forgotten_costs_its_removal() {
    for repeats in [false, true] {
        let mut window = Window::new(repeats);
        let write = Op::Write { offset: 0, bytes: 8 };
        let life = [
            record(NODE, "j", write),
            record(NODE, "j", rename(ORPHAN)),
            record(NODE, ORPHAN, REMOVE),
        ];
        assert_eq!(take(&mut window, &life), 3);
        let removed = |path: &str| Step::Remove { node: NODE, path: path.into() };
        // An earlier process may have come as far as the orphan.
        let mut steps = vec![removed("j")];
        steps.extend(repeats.then(|| removed(ORPHAN)));
        assert_eq!(window.steps, steps);
        assert!(window.contents.is_empty());
    }
}

#[test]
fn one_that_is_made_in_the_same_window_costs_nothing() {
    let mut window = Window::new(false);
    let write = Op::Write { offset: 0, bytes: 8 };
    for number in 0..5 {
        let node = NodeId(100 + number);
        let orphan = format!(".holdfast/{number}");
        let life = [
            record(node, "j", make()),
            record(node, "j", write),
            record(node, "j", rename(&orphan)),
            record(node, &orphan, REMOVE),
        ];
        assert_eq!(take(&mut window, &life), 4);
    }
    assert!(window.steps.iter().all(|step| *step == Step::Nothing));
    assert!(window.contents.is_empty());
}

#[test]
fn one_that_stays_open_is_made_where_it_lives_on() {
    let mut window = Window::new(false);
    let write = Op::Write { offset: 0, bytes: 8 };
    let life = [
        record(NODE, "j", make()),
        record(NODE, "j", rename(ORPHAN)),
        record(NODE, ORPHAN, write),
        record(NodeId(41), "j", make()),
    ];
    assert_eq!(take(&mut window, &life), 4);
    let paths = window.contents.values().map(|contents| contents.path.as_slice());
    assert_eq!(paths.collect::<Vec<_>>(), [ORPHAN.as_bytes(), b"j"]);
    let made = |step: &&Step| matches!(step, Step::Make { .. });
    assert_eq!(window.steps.iter().filter(made).count(), 2);
}

#[test]
fn one_that_is_replaced_and_forgotten_is_replaced_by_what_is_made_there() {
    let mut window = Window::new(false);
    let (new, replacing) = (NodeId(41), Op::Rename { to: b"j", replaced: NODE });
    assert_eq!(take(&mut window, &[record(new, "new", make())]), 1);
    let frame = [
        (record(NODE, "j", rename(ORPHAN)), Lsn(1100)),
        (record(new, "new", replacing), Lsn(1200)),
    ];
    assert!(window.take(Lsn(1000), &frame, &[]));
    assert_eq!(take(&mut window, &[record(NODE, ORPHAN, REMOVE)]), 1);
    assert_eq!(made_at(&window, b"j"), Some((new, Some(NODE))));
    assert_eq!(window.steps.iter().filter(|step| **step != Step::Nothing).count(), 1);
}

/// So a program that writes aside and renames, again and again, is one step of one window, although
/// the kernel remembers every file that it replaced.
#[test]
fn a_file_replaced_while_it_is_remembered_however_often_is_made_once() {
    let mut window = Window::new(true);
    let mut old = NODE;
    for number in 0..5 {
        let new = NodeId(100 + number);
        let (orphan, replacing) =
            (format!(".holdfast/{number}"), Op::Rename { to: b"j", replaced: old });
        assert_eq!(take(&mut window, &[record(new, "t", make())]), 1, "version {number}");
        let frame = [
            (record(old, "j", rename(&orphan)), Lsn(1100)),
            (record(new, "t", replacing), Lsn(1200)),
        ];
        assert!(window.take(Lsn(1000), &frame, &[]), "version {number}");
        assert_eq!(take(&mut window, &[record(old, &orphan, REMOVE)]), 1, "version {number}");
        old = new;
    }
    let makes = |step: &&Step| matches!(step, Step::Make { .. });
    assert_eq!(window.steps.iter().filter(makes).count(), 1);
    assert!(made_at(&window, b"j").is_some_and(|(made, _)| made == old));
    assert!(!window.steps.contains(&Step::Barrier));
}

#[test]
fn a_directory_that_was_emptied_is_replaced_in_a_window_of_its_own() {
    let mut window = Window::new(false);
    let onto = Op::Rename { to: b"d", replaced: NodeId(30) };
    let frames = [record(NODE, "d/a", REMOVE), record(NodeId(31), "e", onto)];
    // Repeated, the removal would find what the new directory has under that name.
    assert_eq!(take(&mut window, &frames), 1);
}

#[test]
fn one_file_gets_any_number_of_names_in_a_window_and_stays_where_they_are_from() {
    let mut window = Window::new(false);
    let names = ["b", "c", "d", "e"].map(|to| record(NODE, "a", Op::Link { to: to.as_bytes() }));
    assert_eq!(take(&mut window, &names), names.len());
    let other = NodeId(41);
    let onto = Op::Rename { to: b"a", replaced: NODE };
    for change in [
        record(NODE, "a", Op::Remove { survivor: b"b", last: false }),
        record(NODE, "a", rename("f")),
        record(other, "t", onto),
    ] {
        assert_eq!(take(&mut window, &[change]), 0, "{change:?}");
    }
    assert_eq!(take(&mut window, &[record(NODE, "b", UNLINK)]), 1, "it is not given");
    assert_eq!(take(&mut window, &[record(NODE, "c", Op::Link { to: b"f" })]), 1);
    let made = [record(other, "t", make()), record(other, "t", onto)];
    assert_eq!(take(&mut window, &made), 1, "a new file in the place of the old one");
}

#[test]
fn a_second_name_that_comes_and_goes_costs_nothing_however_often() {
    let mut window = Window::new(false);
    for _ in 0..5 {
        let frames = [record(NODE, "a", Op::Link { to: b"l" }), record(NODE, "l", UNLINK)];
        assert_eq!(take(&mut window, &frames), 2);
    }
    assert!(window.steps.iter().all(|step| *step == Step::Nothing));
    assert_eq!(take(&mut window, &[record(NODE, "a", rename("b"))]), 1, "it may go from there");
}

/// A file with a name of its own gets that of the lock, and loses both.
fn life_of_a_lock(node: NodeId) -> [Record<'static>; 4] {
    [
        record(node, "t", make()),
        record(node, "t", Op::Link { to: b"l" }),
        record(node, "t", Op::Remove { survivor: b"l", last: false }),
        record(node, "l", REMOVE),
    ]
}

#[test]
fn a_lock_that_is_made_by_a_second_name_costs_nothing_however_often() {
    for repeats in [false, true] {
        let mut window = Window::new(repeats);
        for number in 0..5 {
            assert_eq!(take(&mut window, &life_of_a_lock(NodeId(100 + number))), 4);
        }
        let leaves = |step: &Step| matches!(step, Step::Nothing | Step::Remove { .. });
        assert!(window.steps.iter().all(leaves));
        assert!(window.contents.is_empty());
    }
}

#[test]
fn a_file_that_keeps_its_second_name_is_made_under_that_with_all_others_from_there() {
    let mut window = Window::new(false);
    let frames = [
        record(NODE, "t", make()),
        record(NODE, "t", Op::Link { to: b"l" }),
        record(NODE, "t", Op::Link { to: b"m" }),
        record(NODE, "t", Op::Write { offset: 0, bytes: 8 }),
        record(NODE, "t", Op::Remove { survivor: b"l", last: false }),
    ];
    assert_eq!(take(&mut window, &frames), 5);
    assert_eq!(made_at(&window, b"l"), Some((NODE, None)));
    assert_eq!(window.contents[&NODE].path, b"l");
    let others: Vec<_> = window.steps[2..].iter().collect();
    let (from, to) = (b"l".to_vec(), b"m".to_vec());
    assert_eq!(others, [&Step::Link { node: NODE, parent: NodeId(1), from, to }]);
}

/// Otherwise a lock that was there when the window began would end each further one too.
#[test]
fn a_lock_comes_to_stand_where_an_old_one_went() {
    let mut window = Window::new(true);
    assert_eq!(take(&mut window, &[record(NODE, "t", UNLINK), record(NODE, "l", REMOVE)]), 2);
    for number in 0..5 {
        assert_eq!(take(&mut window, &life_of_a_lock(NodeId(100 + number))), 4);
    }
}

/// A directory that is made, filled, renamed, emptied and removed.
fn life_of_a_renamed_directory(first: u64) -> [Record<'static>; 7] {
    let [directory, file, below] = [0, 1, 2].map(|more| NodeId(first + more));
    [
        record(directory, "d", make_directory()),
        record(below, "d/s", make_directory()),
        record(file, "d/s/x", make()),
        record(directory, "d", rename("e")),
        record(file, "e/s/x", REMOVE),
        record(below, "e/s", Op::RemoveDir),
        record(directory, "e", Op::RemoveDir),
    ]
}

#[test]
fn a_new_directory_that_is_renamed_is_made_under_its_last_name_with_all_in_it() {
    let mut window = Window::new(false);
    let life = life_of_a_renamed_directory(100);
    assert_eq!(take(&mut window, &life[..4]), 4);
    let made: Vec<_> = [&b"e"[..], b"e/s", b"e/s/x"].map(|at| made_at(&window, at)).into();
    assert_eq!(made, [100, 102, 101].map(|node| Some((NodeId(node), None))));
    let done = window.steps.iter().filter(|step| **step != Step::Nothing).count();
    assert_eq!((done, &window.contents[&NodeId(101)].path[..]), (3, &b"e/s/x"[..]));
    assert!(window.directory_times.contains_key(&b"e/s"[..]));
    assert!(!window.directory_times.contains_key(&b"d/s"[..]));
}

#[test]
fn a_directory_that_is_made_renamed_and_removed_costs_nothing_however_often() {
    let mut window = Window::new(false);
    for number in 0..5 {
        assert_eq!(take(&mut window, &life_of_a_renamed_directory(100 + 10 * number)), 7);
    }
    assert!(window.steps.iter().all(|step| *step == Step::Nothing));
    assert!(window.contents.is_empty());
}

#[test]
fn a_repetition_removes_what_may_be_in_a_renamed_directory_before_the_directory() {
    let mut window = Window::new(true);
    for number in 0..3 {
        assert_eq!(take(&mut window, &life_of_a_renamed_directory(100 + 10 * number)), 7);
    }
    for (inner, outer) in [("d/s/x", "d/s"), ("d/s", "d"), ("e/s/x", "e/s"), ("e/s", "e")] {
        let last = |at: &str| {
            window.steps.iter().rposition(|step| match step {
                Step::Remove { path, .. } | Step::RemoveDir { path, .. } => path == at.as_bytes(),
                _ => false,
            })
        };
        assert!(last(inner).is_some() && last(inner) < last(outer), "{inner}");
    }
}

/// Otherwise one that was there when the window began would end each further one too.
#[test]
fn a_new_directory_comes_to_stand_where_an_old_one_went() {
    let mut window = Window::new(true);
    let gone = [record(NodeId(30), "e/s/x", REMOVE), record(NodeId(31), "e/s", Op::RemoveDir)];
    assert_eq!(take(&mut window, &gone), 2);
    assert_eq!(take(&mut window, &[record(NODE, "e", Op::RemoveDir)]), 1);
    assert!(!window.comes_again(b"e"));
    for number in 0..5 {
        assert_eq!(take(&mut window, &life_of_a_renamed_directory(100 + 10 * number)), 7);
        assert!(window.comes_again(b"e"));
    }
    assert_eq!(take(&mut window, &[record(NodeId(200), "e", make())]), 0, "a file does not");
}

#[test]
fn a_new_directory_with_something_old_in_it_is_renamed_in_a_window_of_its_own() {
    for inside in [
        record(NodeId(20), "a", rename("d/a")),
        record(NodeId(20), "a", Op::Link { to: b"d/a" }),
        record(NodeId(41), "d/x", Op::Link { to: b"y" }),
    ] {
        let mut window = Window::new(false);
        let made = [record(NODE, "d", make_directory()), record(NodeId(41), "d/x", make())];
        assert_eq!(take(&mut window, &made), 2);
        assert_eq!(take(&mut window, &[inside, record(NODE, "d", rename("e"))]), 1, "{inside:?}");
    }
}

fn exchange(to: &str, other: u64) -> Op<'_> {
    Op::Exchange { to: to.as_bytes(), other: NodeId(other), from_parent: NodeId(1) }
}

#[test]
fn names_that_change_places_again_and_again_are_one_step() {
    for times in 1..9_usize {
        let mut window = Window { tells_inodes: true, ..Window::new(false) };
        // Said from either side.
        let both =
            [record(NODE, "a", exchange("b", 41)), record(NodeId(40), "b", exchange("a", 41))];
        let all: Vec<_> = both.iter().copied().cycle().take(times).collect();
        assert_eq!(take(&mut window, &all), times);
        let [Step::Exchange { is_back, at, .. }] = &window.steps[..] else {
            panic!("{:?}", window.steps)
        };
        assert_eq!((*is_back, *at), (times % 2 == 0, Lsn(1000)));
        assert_eq!(window.unlogged_bytes, 1 << 20, "it is paid for once");
    }
}

#[test]
fn names_that_change_places_in_a_chain_or_on_a_home_that_tells_no_inodes_begin_windows() {
    let chain = [record(NODE, "a", exchange("b", 41)), record(NODE, "b", exchange("c", 42))];
    let again = [record(NODE, "a", exchange("b", 41)), record(NODE, "b", exchange("a", 41))];
    assert_eq!(take(&mut Window { tells_inodes: true, ..Window::new(false) }, &chain), 1);
    assert_eq!(take(&mut Window::new(false), &again), 1);
}

#[test]
fn what_is_done_below_a_name_that_has_changed_places_keeps_it_from_changing_back() {
    let mut window = Window { tells_inodes: true, ..Window::new(false) };
    let all = [
        record(NODE, "a", exchange("b", 41)),
        record(NodeId(50), "a/x", make()),
        record(NodeId(41), "a", exchange("b", 40)),
    ];
    assert_eq!(take(&mut window, &all), 2);
}

#[test]
fn a_file_that_loses_name_after_name_gives_the_others_from_where_it_is_made_last() {
    let names: Vec<String> = (0..50).map(|name| format!("n{name:02}")).collect();
    let owned = Op::Change { change: Change { uid: Some(7), ..Change::default() } };
    let mut frames = vec![record(NODE, "n00", make())];
    for name in &names[1..] {
        frames.push(record(NODE, "n00", Op::Link { to: name.as_bytes() }));
        frames.push(record(NODE, "n00", owned));
    }
    for pair in names.windows(2).take(40) {
        let survivor = pair[1].as_bytes();
        frames.push(record(NODE, &pair[0], Op::Remove { survivor, last: false }));
    }
    let mut window = Window::new(false);
    assert_eq!(take(&mut window, &frames), frames.len());
    assert_eq!(made_at(&window, b"n40"), Some((NODE, None)));
    assert_eq!(window.contents[&NODE].path, b"n40");
    let links = window.steps.iter().filter_map(|step| match step {
        Step::Link { from, to, .. } => Some((from.clone(), to.clone())),
        _ => None,
    });
    let left = names[41..].iter().map(|name| (b"n40".to_vec(), name.clone().into_bytes()));
    assert!(links.eq(left), "{:?}", window.steps);
    assert!(names[40..].iter().all(|name| window.may_own(NodeId(0), name.as_bytes(), 7)));
}
