//! Many names, long names, deep directories.

use holdfast_io::Kind;
use holdfast_io::tree::{Errno, NodeId, ROOT, RenameHow, Tree};
use holdfast_volume::DirectoryVolume;

use crate::model::{image_of, image_through};
use crate::world::{Opened, World, new_node};

const MANY: u32 = 5_000;

fn make(tree: &DirectoryVolume, parent: NodeId, name: &[u8], kind: Kind) -> Result<NodeId, Errno> {
    let new = new_node(kind, 0o700);
    tree.make(parent, name, &new).map(|found| found.node)
}

/// Makes room before the ring is full: here nobody else does.
fn make_room(volume: &Opened) {
    let marks = volume.log().marks();
    if marks.tail.since(marks.released) > 600 << 10 {
        while volume.drain_step().expect("a sound log") > 0 {}
        while !volume.clean_step().expect("a sound home").is_idle() {}
    }
}

fn name(number: u32) -> Vec<u8> {
    format!("a name of some length, as programs like them, {number}").into_bytes()
}

#[test]
fn a_directory_takes_as_many_names_as_somebody_puts_into_it() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    for number in 0..MANY {
        let node = make(&volume, ROOT, &name(number), Kind::File).expect("a free name");
        volume.forget(node, 1);
        make_room(&volume);
    }
    let (mut cookie, mut listed) = (0, 0);
    loop {
        let before = listed;
        let mut room = 100;
        let listing = volume.list(ROOT, cookie, &mut |item| {
            cookie = item.cookie;
            listed += 1;
            room -= 1;
            room > 0
        });
        listing.expect("a directory");
        if listed == before {
            break;
        }
    }
    assert_eq!(listed, MANY);
    for number in 0..MANY {
        let node = volume.lookup(ROOT, &name(number)).expect("a name").node;
        volume.remove_file(ROOT, &name(number)).expect("a name");
        volume.forget(node, 1);
        make_room(&volume);
    }
    volume.detach().expect("a sound disk");
    assert!(image_of(&*world.home()).is_empty());
}

#[test]
fn a_path_that_the_home_could_not_take_is_refused_before_it_is_logged() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let long = [b'x'; 250];
    let (mut at, mut depth) = (ROOT, 0);
    let refused = loop {
        match make(&volume, at, &long, Kind::Directory) {
            Ok(node) => at = node,
            Err(errno) => break errno,
        }
        depth += 1;
        assert!(depth < 100, "a path without end");
    };
    assert_eq!(refused, Errno::NAMETOOLONG);
    assert_eq!(depth, 48, "12,288 bytes");
    volume
        .write(make(&volume, at, b"f", Kind::File).expect("fits"), b"deep", 0, false)
        .expect("room");
    let seen = image_through(&volume);
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*world.home()), seen);
}

/// What lies below a directory moves with it, and may come to lie too deep to be changed there.
#[test]
fn what_a_rename_puts_too_deep_is_refused_until_it_is_moved_back() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let long = [b'x'; 255];
    let deep = |top: &[u8]| {
        let mut at = make(&volume, ROOT, top, Kind::Directory).expect("a free name");
        for _ in 0..40 {
            at = make(&volume, at, &long, Kind::Directory).expect("fits");
        }
        at
    };
    let (bottom, other) = (deep(b"a"), deep(b"b"));
    let file = make(&volume, bottom, b"f", Kind::File).expect("fits");
    volume.rename((ROOT, b"a"), (other, b"a"), RenameHow::Replace).expect("fits itself");
    assert_eq!(volume.write(file, b"lost", 0, false), Err(Errno::NAMETOOLONG));
    volume.drain_step().expect("a sound log");
    volume.clean_step().expect("a sound home");
    volume.rename((other, b"a"), (ROOT, b"a"), RenameHow::Replace).expect("a name");
    volume.write(file, b"kept", 0, false).expect("room");
    let seen = image_through(&volume);
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*world.home()), seen);
}

/// Directories that each have a name for the same file, as copies of a tree that share it do.
const COPIES: u32 = 60;

#[test]
fn a_file_loses_each_of_thousands_of_names_and_is_the_same_by_all_others() {
    for window in [1, 40, 5000] {
        let world = World::new(3);
        let (volume, _) = world.open().expect("a new volume");
        let file = make(&volume, ROOT, b"first", Kind::File).expect("a free name");
        volume.write(file, b"contents", 0, false).expect("room");
        let step = |at: u32| {
            make_room(&volume);
            if at.is_multiple_of(window) {
                while volume.drain_step().expect("a sound log") > 0 {}
                while !volume.clean_step().expect("a sound home").is_idle() {}
            }
        };
        let copies: Vec<NodeId> = (0..COPIES)
            .map(|at| make(&volume, ROOT, format!("copy {at}").as_bytes(), Kind::Directory))
            .map(|made| made.expect("a free name"))
            .collect();
        let each: Vec<(NodeId, Vec<u8>)> = (0..COPIES * 20)
            .map(|at| (copies[(at % COPIES) as usize], format!("{}", at / COPIES).into_bytes()))
            .collect();
        for (at, (copy, name)) in each.iter().enumerate() {
            assert_eq!(volume.link(file, *copy, name).expect("a free name").node, file);
            step(at as u32);
        }
        // In another order than they came in, and half of them: the rest stay.
        let (go, stay): (Vec<_>, Vec<_>) =
            each.iter().enumerate().partition(|(at, _)| at * 7 % each.len() < each.len() / 2);
        volume.remove_file(ROOT, b"first").expect("a name");
        for (at, (copy, name)) in &go {
            volume.remove_file(*copy, name).expect("a name");
            step(*at as u32);
        }
        let links = volume.attributes(file).expect("a file").links;
        assert_eq!(links as usize, stay.len(), "window {window}");
        let expected = image_through(&volume);
        volume.forget(file, 1);
        volume.detach().expect("a sound home");
        assert_eq!(image_of(&*world.home()), expected, "window {window}");
    }
}
