//! What programs rely on.

use holdfast_io::tree::{
    Allocate, Asked, Errno, NewNode, NodeId, ROOT, RenameHow, Seek, SetAttributes, Tree,
};
use holdfast_io::{Files, Kind, OpenHow};
use holdfast_volume::DirectoryVolume;

use crate::model::{Item, image_of, image_through};
use crate::world::{Opened, World, new_node};

fn file(tree: &DirectoryVolume, name: &str) -> NodeId {
    let new =
        NewNode { kind: Kind::File, mode: 0o600, umask: 0, uid: 1, gid: 2, rdev: 0, target: b"" };
    tree.make(ROOT, name.as_bytes(), &new).expect("a free name").node
}

fn settle(volume: &Opened) {
    volume.drain_step().expect("a sound disk");
    while !volume.clean_step().expect("a sound home").is_idle() {}
}

fn read(tree: &DirectoryVolume, node: NodeId) -> Vec<u8> {
    let size = tree.attributes(node).expect("a known node").size_bytes;
    let mut bytes = vec![0; usize::try_from(size).expect("small")];
    assert_eq!(tree.read(node, &mut bytes, 0), Ok(bytes.len()));
    bytes
}

#[test]
fn a_file_removed_while_open_lives_until_it_is_forgotten() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    volume.write(node, b"one", 0, false).expect("room");
    settle(&volume);
    volume.remove_file(ROOT, b"f").expect("a name");
    assert_eq!(volume.lookup(ROOT, b"f").map(|_| ()), Err(Errno::NOENT));
    settle(&volume);
    volume.write(node, b"two", 3, false).expect("room");
    assert_eq!(read(&volume, node), b"onetwo");
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    assert_eq!(read(&volume, node), b"onetwo", "a death took a file that is open");
    assert_eq!(volume.attributes(node).expect("known").links, 0);
    volume.forget(node, 1);
    settle(&volume);
    volume.detach().expect("a sound disk");
    assert!(world.home().read_dir("".as_ref()).expect("readable").is_empty());
}

#[test]
fn a_file_replaced_while_open_keeps_its_bytes() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let (old, new) = (file(&volume, "old"), file(&volume, "new"));
    volume.write(old, b"old", 0, false).expect("room");
    volume.write(new, b"new", 0, false).expect("room");
    volume.rename((ROOT, b"new"), (ROOT, b"old"), RenameHow::Replace).expect("both there");
    settle(&volume);
    assert_eq!(read(&volume, old), b"old");
    assert_eq!(volume.lookup(ROOT, b"old").expect("a name").node, new);
    assert_eq!(read(&volume, new), b"new");
}

#[test]
fn two_names_of_one_file_are_one_file_also_when_the_home_has_them() {
    let world = World::new(1);
    {
        let (volume, _) = world.open().expect("a new volume");
        let node = file(&volume, "one");
        assert_eq!(volume.link(node, ROOT, b"two").expect("a free name").links, 2);
        volume.detach().expect("a sound disk");
    }
    let world = World { region: crate::world::new_region(), ..world };
    let (volume, _) = world.open().expect("an old volume");
    let one = volume.lookup(ROOT, b"one").expect("a name").node;
    let two = volume.lookup(ROOT, b"two").expect("a name").node;
    assert_eq!(one, two);
    volume.write(one, b"both", 0, false).expect("room");
    volume.remove_file(ROOT, b"one").expect("a name");
    assert_eq!(volume.attributes(two).expect("known").links, 1);
    assert_eq!(read(&volume, two), b"both");
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*world.home()).len(), 1);
}

/// A name that was never looked at is another name of the file all the same.
#[test]
fn a_file_removed_while_open_lives_on_under_a_name_that_nobody_has_met() {
    let world = World::new(1);
    let home = world.home();
    let how = OpenHow { write: true, create_mode: Some(0o640), ..OpenHow::default() };
    home.open("one".as_ref(), how).expect("a new disk");
    home.link("one".as_ref(), "two".as_ref()).expect("a new disk");
    let (volume, _) = world.open().expect("a new volume");
    let node = volume.lookup(ROOT, b"one").expect("a name").node;
    volume.write(node, b"before", 0, false).expect("room");
    volume.remove_file(ROOT, b"one").expect("a name");
    volume.write(node, b" and after", 6, false).expect("it is open");
    assert_eq!(volume.attributes(node).expect("known").links, 1);
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    assert_eq!(volume.attributes(node).expect("known").links, 1);
    settle(&volume);
    assert_eq!(volume.lookup(ROOT, b"two").expect("a name").node, node);
    volume.write(node, b", for ever", 16, false).expect("it is open");
    volume.forget(node, u64::MAX);
    let again = volume.lookup(ROOT, b"two").expect("a name").node;
    assert_eq!(read(&volume, again), b"before and after, for ever");
    volume.detach().expect("a sound disk");
    let Item::File { bytes, .. } = &image_of(&*home)["two"] else { panic!("no file") };
    assert_eq!(bytes, b"before and after, for ever");
    assert_eq!(home.read_dir("".as_ref()).expect("readable").len(), 1);
}

#[test]
fn a_directory_removed_while_open_is_empty_and_keeps_its_attributes() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let new = NewNode {
        kind: Kind::Directory,
        mode: 0o700,
        umask: 0,
        uid: 1,
        gid: 2,
        rdev: 0,
        target: b"",
    };
    let node = volume.make(ROOT, b"d", &new).expect("a free name").node;
    volume.remove_dir(ROOT, b"d").expect("an empty directory");
    let mode = SetAttributes { mode: Some(0o500), ..SetAttributes::default() };
    let changed = volume.set_attributes(node, &mode).expect("somebody has it open");
    assert_eq!((changed.mode, changed.links), (0o500, 0));
    assert_eq!(volume.attributes(node).expect("known").mode, 0o500);
    volume.list(node, 0, &mut |_| panic!("a name")).expect("known");
    assert_eq!(volume.lookup(node, b"f").map(drop), Err(Errno::NOENT));
    assert_eq!(volume.make(node, b"f", &new).map(drop), Err(Errno::NOENT));
    settle(&volume);
    assert_eq!(volume.attributes(node).expect("known").links, 0);
    volume.detach().expect("a sound disk");
}

/// Whoever copies a file asks for its room first, and then for its holes.
#[test]
fn room_and_holes_are_told_before_the_home_has_the_file_as_afterwards() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    let blocks = |tree: &DirectoryVolume| tree.attributes(node).expect("known").allocated_bytes;
    let seek = |tree: &DirectoryVolume, at, what| tree.seek(node, at, what);
    volume.write(node, &[1; 10_000], 40_960, false).expect("room");
    let size = SetAttributes { size_bytes: Some(1 << 20), ..SetAttributes::default() };
    volume.set_attributes(node, &size).expect("a file");
    for _ in 0..3 {
        assert_eq!(blocks(&volume), 3 * 4096);
        assert_eq!(seek(&volume, 0, Seek::Data), Ok(40_960));
        assert_eq!(seek(&volume, 45_000, Seek::Data), Ok(45_000));
        assert_eq!(seek(&volume, 45_000, Seek::Hole), Ok(40_960 + 3 * 4096));
        assert_eq!(seek(&volume, 100_000, Seek::Data), Err(Errno::NXIO));
        assert_eq!(seek(&volume, 100_000, Seek::Hole), Ok(100_000));
        assert_eq!(seek(&volume, 1 << 20, Seek::Hole), Err(Errno::NXIO));
        settle(&volume);
    }
    volume.allocate(node, Allocate::PunchHole, 40_000, 6000).expect("a file");
    volume.allocate(node, Allocate::Reserve { keep_size: true }, 1 << 20, 4096).expect("room");
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    assert_eq!(blocks(&volume), 3 * 4096);
    assert_eq!(seek(&volume, 0, Seek::Data), Ok(40_960 + 4096));
}

#[test]
fn an_existing_directory_is_adopted_as_it_stands() {
    let world = World::new(1);
    let home = world.home();
    home.make_dir("d".as_ref(), 0o700).expect("a new disk");
    let how = OpenHow { write: true, create_mode: Some(0o640), ..OpenHow::default() };
    let there = home.open("d/f".as_ref(), how).expect("a new disk");
    there.write_all_at(&[5; 10_000], 0).expect("a new disk");
    let before = image_of(&*home);
    let (volume, _) = world.open().expect("a new volume");
    assert_eq!(image_through(&volume), before);
    let directory = volume.lookup(ROOT, b"d").expect("a name").node;
    let node = volume.lookup(directory, b"f").expect("a name").node;
    volume.write(node, &[6; 100], 5000, false).expect("room");
    let bytes = read(&volume, node);
    assert_eq!((bytes[4999], bytes[5000], bytes[5099], bytes[5100]), (5, 6, 6, 5));
    let seen = image_through(&volume);
    volume.detach().expect("a sound disk");
    assert_eq!(image_of(&*home), seen);
}

#[test]
fn a_range_given_back_reads_as_zeros_and_stays_so_on_the_home() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    volume.write(node, &[1; 9000], 0, false).expect("room");
    settle(&volume);
    volume.allocate(node, Allocate::PunchHole, 1000, 3000).expect("a file");
    volume.allocate(node, Allocate::ZeroRange { keep_size: false }, 8500, 1000).expect("a file");
    let seen = read(&volume, node);
    assert_eq!(seen.len(), 9500);
    let ones = seen.iter().filter(|byte| **byte == 1).count();
    assert_eq!(ones, 8500 - 3000);
    settle(&volume);
    assert_eq!(read(&volume, node), seen);
}

#[test]
fn an_exchange_that_is_asked_again_after_a_death_is_done_once() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let (a, b) = (file(&volume, "a"), file(&volume, "b"));
    let ask = |volume: &DirectoryVolume, request, again| {
        let how = RenameHow::Exchange(Asked { request, again });
        volume.rename((ROOT, b"a"), (ROOT, b"b"), how).expect("both are there");
        volume.lookup(ROOT, b"a").expect("it is there").node
    };
    assert_eq!(ask(&volume, 2, false), b);
    assert_eq!(ask(&volume, 2, true), b, "the same request");
    settle(&volume);
    drop(volume);
    let (volume, _) = world.open().expect("the region stays");
    assert_eq!(ask(&volume, 2, true), b, "the same request, to another process");
    assert_eq!(ask(&volume, 4, true), a, "one that died before it was carried out");
    assert_eq!(ask(&volume, 2, false), b, "a new one under an old number");
}

#[test]
fn names_that_cannot_change_places_are_refused_as_everywhere() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let new = new_node(Kind::Directory, 0o755);
    let outer = volume.make(ROOT, b"d", &new).expect("a free name").node;
    let inner = volume.make(outer, b"e", &new).expect("a free name").node;
    let swap = |one, other| {
        volume.rename(one, other, RenameHow::Exchange(Asked { request: 2, again: false }))
    };
    file(&volume, "f");
    assert_eq!(swap((ROOT, b"d"), (outer, b"e")), Err(Errno::INVAL));
    assert_eq!(swap((outer, b"e"), (ROOT, b"d")), Err(Errno::INVAL));
    assert_eq!(swap((ROOT, b"d"), (ROOT, b"none")), Err(Errno::NOENT));
    assert_eq!(swap((ROOT, b"f"), (outer, b"e")), Ok(()), "a file and a directory");
    assert_eq!(volume.lookup(ROOT, b"f").expect("it is there").node, inner);
}

#[test]
fn a_file_without_a_name_gets_one_or_goes() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let new = NewNode {
        kind: Kind::File,
        mode: 0o666,
        umask: 0o22,
        uid: 0,
        gid: 0,
        rdev: 0,
        target: b"",
    };
    let kept = volume.make_unnamed(ROOT, &new).expect("room").node;
    let lost = volume.make_unnamed(ROOT, &new).expect("room").node;
    for node in [kept, lost] {
        volume.opened(node).expect("it is there");
        volume.write(node, b"bytes", 0, false).expect("room");
    }
    settle(&volume);
    drop(volume);
    let (volume, _) = world.open().expect("the region stays");
    assert_eq!(read(&volume, lost), b"bytes", "it outlives the front end");
    let linked = volume.link(kept, ROOT, b"f").expect("a free name");
    assert_eq!((linked.links, linked.mode), (1, 0o644));
    volume.closed(lost);
    volume.forget(lost, 1);
    volume.detach().expect("a sound disk");
    let home = image_of(&*world.home());
    assert_eq!(home.keys().collect::<Vec<_>>(), ["f"], "{home:?}");
}

#[test]
fn files_without_a_name_are_gone_from_the_home_when_the_machine_starts_anew() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let new = new_node(Kind::File, 0);
    volume.make_unnamed(ROOT, &new).expect("room");
    settle(&volume);
    drop(volume);
    let home = world.home();
    assert_eq!(home.read_dir(".holdfast".as_ref()).expect("it is there").len(), 1);
    let world = world.after_power_cut(1);
    let (_volume, _) = world.open().expect("a sound disk");
    assert!(world.home().read_dir(".holdfast".as_ref()).is_err(), "it stays");
}

#[test]
fn a_full_home_refuses_growth_at_once_and_recovers_when_space_returns() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    world.files.set_capacity_bytes(Some(5 << 20));
    let results: Vec<_> = (0..200)
        .map(|step| {
            world.clock.advance_ns(1_000_000_000);
            volume.write(node, &[1; 4096], step * 4096, false)
        })
        .collect();
    assert!(results.contains(&Err(Errno::NOSPC)), "a full disk was never noticed");
    world.files.set_capacity_bytes(None);
    settle(&volume);
    assert_eq!(volume.write(node, &[2; 4096], 0, false), Ok(()));
    assert_eq!(volume.write(node, &[2; 4096], 10 << 20, false), Ok(()));
}

#[test]
fn the_names_the_volume_keeps_for_itself_are_refused() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let new = new_node(Kind::File, 0);
    for (name, errno) in [(".holdfast", Errno::PERM), ("..", Errno::INVAL), ("", Errno::INVAL)] {
        assert_eq!(volume.make(ROOT, name.as_bytes(), &new).map(|_| ()), Err(errno), "{name}");
    }
    let long = [b'x'; 256];
    assert_eq!(volume.make(ROOT, &long, &new).map(|_| ()), Err(Errno::NAMETOOLONG));
}

#[test]
fn a_hole_behind_the_end_changes_the_times_as_on_the_machines_own_file_systems() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    volume.write(node, b"short", 0, false).expect("room");
    let set = SetAttributes { modified_ns: Some(5), ..SetAttributes::default() };
    volume.set_attributes(node, &set).expect("room");
    volume.allocate(node, Allocate::PunchHole, 100_000, 4096).expect("room");
    let told = volume.attributes(node).expect("known");
    assert!(told.modified_ns > 5, "the time stays");
    assert_eq!((told.size_bytes, read(&volume, node)), (5, b"short".to_vec()));
    volume.detach().expect("a sound disk");
    let found = world.home().metadata("f".as_ref()).expect("it came home");
    assert_eq!(found.modified_ns, told.modified_ns);
}

#[test]
fn the_volumes_own_directory_is_no_link_of_the_root() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    volume.make(ROOT, b"d", &new_node(Kind::Directory, 0o700)).expect("a free name");
    let links = volume.attributes(ROOT).expect("it is there").links;
    volume.remove_file(ROOT, b"f").expect("a name");
    settle(&volume);
    assert!(world.home().metadata(".holdfast".as_ref()).is_ok(), "{node:?} is nowhere");
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    assert_eq!(volume.attributes(ROOT).expect("it is there").links, links);
}
