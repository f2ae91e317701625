//! What programs rely on.

use holdfast_io::{Files, Kind, OpenHow};
use holdfast_volume::{Allocate, DirectoryVolume, Errno, NewNode, NodeId, ROOT, RenameHow, Tree};

use crate::model::{image_of, image_through};
use crate::world::{Opened, World};

fn file(tree: &DirectoryVolume, name: &str) -> NodeId {
    let new = NewNode { kind: Kind::File, mode: 0o600, uid: 1, gid: 2, rdev: 0, target: b"" };
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
fn a_file_removed_while_open_lives_until_it_is_closed() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, "f");
    volume.opened(node).expect("a known node");
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
    volume.closed(node);
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
    volume.opened(old).expect("a known node");
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
fn a_swap_of_two_names_is_refused_because_it_could_not_be_repeated() {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    file(&volume, "a");
    file(&volume, "b");
    let swap = volume.rename((ROOT, b"a"), (ROOT, b"b"), RenameHow::Exchange);
    assert_eq!(swap, Err(Errno::INVAL));
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
    let new = NewNode { kind: Kind::File, mode: 0, uid: 0, gid: 0, rdev: 0, target: b"" };
    for (name, errno) in [(".holdfast", Errno::PERM), ("..", Errno::INVAL), ("", Errno::INVAL)] {
        assert_eq!(volume.make(ROOT, name.as_bytes(), &new).map(|_| ()), Err(errno), "{name}");
    }
    let long = [b'x'; 256];
    assert_eq!(volume.make(ROOT, &long, &new).map(|_| ()), Err(Errno::NAMETOOLONG));
}
