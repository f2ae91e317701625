//! A window amounts to what its frames say, and ends before it could not be repeated.

use super::*;

const NODE: NodeId = NodeId(40);

fn record<'a>(node: NodeId, path: &'a str, op: Op<'a>) -> Record<'a> {
    Record { node, parent: NodeId(1), path: path.as_bytes(), at_ns: 5, op }
}

fn make() -> Op<'static> {
    Op::Make { kind: Kind::File, mode: 0o600, uid: 0, gid: 0, rdev: 0, target: b"" }
}

fn rename(to: &str) -> Op<'_> {
    Op::Rename { to: to.as_bytes(), replaced: NodeId(0) }
}

const REMOVE: Op<'_> = Op::Remove { survivor: b"", last: true };

/// Takes one frame per record; returns how many fitted.
fn take(window: &mut Window, records: &[Record<'_>]) -> usize {
    records
        .iter()
        .enumerate()
        .take_while(|(index, record)| {
            let lsn = Lsn(1000 * (*index as u64 + 1));
            window.take(lsn, &[(**record, lsn.advance(100))])
        })
        .count()
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
    let removal = Step::Remove { node: NODE, path: b"j".to_vec() };
    assert!(!first.steps.contains(&removal));
    assert_eq!(again.steps.iter().position(|step| *step == removal), Some(0));
    assert_eq!(again.steps[1..], first.steps[1..]);
    assert_eq!(again.contents, first.contents);
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
    assert!(window.take(Lsn(8), &[(away, Lsn(8)), (onto, Lsn(8))]));
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
fn nothing_old_comes_to_stand_where_a_passing_file_stood() {
    let onto = [rename("j"), Op::Link { to: b"j" }];
    let Op::Make { mode, uid, gid, rdev, target, .. } = make() else { unreachable!("it makes") };
    let directory = Op::Make { kind: Kind::Directory, mode, uid, gid, rdev, target };
    for op in onto {
        let mut window = Window::new(false);
        let (passing, old) = (NodeId(100), NodeId(20));
        let frames =
            [record(passing, "j", make()), record(passing, "j", REMOVE), record(old, "x", op)];
        assert_eq!(take(&mut window, &frames), 2, "{op:?}");
    }
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
