//! What the kernel remembers is never forgotten here, whichever process told it.
//!
//! The kernel says how often it was told of an inode when it forgets that inode; it may look the
//! name up again before it has said so.

use holdfast_io::tree::{Errno, NewNode, NodeId, ROOT, Tree};
use holdfast_io::{Files, Kind};
use holdfast_volume::DirectoryVolume;

use crate::world::{Opened, World};

fn file(tree: &DirectoryVolume, name: &[u8]) -> NodeId {
    let new =
        NewNode { kind: Kind::File, mode: 0o600, umask: 0, uid: 1, gid: 2, rdev: 0, target: b"" };
    tree.make(ROOT, name, &new).expect("a free name").node
}

fn settle(volume: &Opened) {
    volume.drain_step().expect("a sound disk");
    while !volume.clean_step().expect("a sound home").is_idle() {}
}

/// A file `f` that the kernel was told of twice, then a death.
fn after_a_death() -> (World, Opened, NodeId) {
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = file(&volume, b"f");
    assert_eq!(volume.lookup(ROOT, b"f").expect("just made").node, node);
    settle(&volume);
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    (world, volume, node)
}

fn knows(volume: &Opened, node: NodeId) -> bool {
    settle(volume);
    match volume.attributes(node) {
        Ok(found) => found.node == node,
        Err(errno) => {
            assert_eq!(errno, Errno::STALE);
            false
        }
    }
}

#[test]
fn a_forget_that_a_lookup_overtakes_after_a_death_leaves_what_the_lookup_found() {
    let (_world, volume, node) = after_a_death();
    assert_eq!(volume.lookup(ROOT, b"f").expect("a name").node, node);
    volume.forget(node, 2);
    assert!(knows(&volume, node), "the kernel was told of it once more");
    volume.forget(node, 1);
    assert!(!knows(&volume, node), "the kernel has forgotten it");
}

#[test]
fn so_does_a_forget_that_was_overtaken_before_the_death() {
    let (_world, volume, node) = after_a_death();
    volume.forget(node, 1);
    assert!(knows(&volume, node), "the process that died told of it twice");
    volume.forget(node, 1);
    assert!(!knows(&volume, node), "the kernel has forgotten it");
}

#[test]
fn how_often_the_kernel_was_told_survives_every_death() {
    let (world, mut volume, node) = after_a_death();
    for _ in 0..3 {
        assert_eq!(volume.lookup(ROOT, b"f").expect("a name").node, node);
        drop(volume);
        (volume, _) = world.open().expect("the region has everything");
    }
    volume.forget(node, 4);
    assert!(knows(&volume, node), "told five times");
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    assert!(knows(&volume, node), "told once more than forgotten");
    volume.forget(node, 1);
    assert!(!knows(&volume, node));
}

#[test]
fn an_open_file_without_a_name_goes_when_the_kernel_forgets_it_after_a_death() {
    let (world, volume, node) = after_a_death();
    volume.remove_file(ROOT, b"f").expect("a name");
    settle(&volume);
    drop(volume);
    let (volume, _) = world.open().expect("the region has everything");
    volume.forget(node, 1);
    assert!(knows(&volume, node), "still open");
    volume.forget(node, 1);
    settle(&volume);
    let orphans = world.home().read_dir(".holdfast".as_ref()).expect("made for the orphan");
    assert!(orphans.is_empty(), "nobody can reach it any more");
}
