//! Access control lists as long as a home takes them, handed down by directories: whatever is
//! acknowledged, the home takes.

use holdfast_io::Kind;
use holdfast_io::fake::Random;
use holdfast_io::tree::{Errno, NewNode, NodeId, ROOT, SetAttributes, SetXattr, Tree};
use holdfast_volume::DirectoryVolume;

use crate::death::half_apply;
use crate::model::{image_of, image_through};
use crate::seeds::for_each_seed;
use crate::world::{ONCE, Opened, World};

const ACCESS: &[u8] = b"system.posix_acl_access";
const DEFAULT: &[u8] = b"system.posix_acl_default";
const STEPS: u64 = 300;
/// Directories; the empty name is the root.
const DIRECTORIES: [&str; 4] = ["", "a", "b", "c"];

/// A list that names so many users.
fn list(users: u32) -> Vec<u8> {
    let entry = |tag: u16, id: u32| [&tag.to_le_bytes()[..], &[7, 0], &id.to_le_bytes()].concat();
    let named = (0..users).flat_map(|user| entry(2, 10_000 + user));
    let mut bytes = [&2_u32.to_le_bytes()[..], &entry(1, u32::MAX)].concat();
    bytes.extend(named);
    [4, 0x10, 0x20].into_iter().for_each(|tag| bytes.extend(entry(tag, u32::MAX)));
    bytes
}

fn new(kind: Kind) -> NewNode<'static> {
    NewNode { kind, mode: 0o777, umask: 0, uid: 0, gid: 0, rdev: 0, target: b"t" }
}

/// Of lists of which one, or two, or none fit on an inode together.
fn any_list(random: &mut Random) -> Vec<u8> {
    list([1, 100, 200, 255, 300, 495, 600][random.below(7) as usize])
}

fn set(tree: &DirectoryVolume, node: NodeId, name: &[u8], value: &[u8]) -> Result<(), Errno> {
    tree.set_xattr(node, name, value, &SetXattr::default())
}

/// One change, perhaps refused.
fn step(tree: &DirectoryVolume, random: &mut Random) -> Result<(), Errno> {
    let name = DIRECTORIES[random.below(4) as usize];
    let directory = match name {
        "" => ROOT,
        name => match tree.lookup(ROOT, name.as_bytes()) {
            Err(Errno::NOENT) => tree.make(ROOT, name.as_bytes(), &new(Kind::Directory))?.node,
            found => found?.node,
        },
    };
    let name = format!("n{}", random.below(4)).into_bytes();
    let kind = [Kind::Directory, Kind::File, Kind::Symlink][random.below(3) as usize];
    match random.below(9) {
        0 | 1 => set(tree, directory, DEFAULT, &any_list(random)),
        2 => tree.remove_xattr(directory, DEFAULT, ONCE),
        3..6 => tree.make(directory, &name, &new(kind)).map(drop),
        6 => {
            let made = tree.make_unnamed(directory, &new(Kind::File))?.node;
            tree.link(made, directory, &name).map(drop)
        }
        7 => tree.remove_file(directory, &name).or_else(|_| tree.remove_dir(directory, &name)),
        _ => {
            let node = tree.lookup(directory, &name)?.node;
            let mode = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
            let _ = set(tree, node, ACCESS, &any_list(random));
            let _ = set(tree, node, b"user.x", &vec![7; random.below(2000) as usize]);
            tree.set_attributes(node, &mode).map(drop)
        }
    }
}

/// Everything comes home, or the test has found what should have been refused.
fn bring_home(volume: &Opened, told: &str) {
    volume.log().commit(volume.log().marks().tail).expect("a sound disk");
    loop {
        let cleaned = volume.clean_step();
        let cleaned = cleaned.unwrap_or_else(|error| panic!("{told}: acknowledged, but {error}"));
        if cleaned.is_idle() {
            return;
        }
    }
}

fn live(seed: u64) {
    let world = World::new(seed);
    let mut random = Random::new(seed);
    let mut volume = world.open().expect("a new log").0;
    for number in 0..STEPS {
        let told = format!("seed {seed}, step {number}");
        let _ = step(&volume, &mut random);
        match random.below(20) {
            0 => bring_home(&volume, &told),
            1 => {
                half_apply(&world, &volume, &mut random);
                drop(volume);
                volume = world.open().unwrap_or_else(|error| panic!("{told}: {error}")).0;
            }
            _ if volume.log().marks().tail.since(volume.log().marks().released) > 500 << 10 => {
                bring_home(&volume, &told);
            }
            _ => {}
        }
    }
    bring_home(&volume, &format!("seed {seed}, at the end"));
    let seen = image_through(&volume);
    volume.detach().expect("a sound home");
    assert_eq!(image_of(&*world.home()), seen, "seed {seed}");
}

#[test]
fn whatever_lists_are_handed_down_the_home_takes_what_is_acknowledged() {
    for_each_seed("lists::whatever_lists", &[], 0..16, live);
}

/// As on a file system of Linux: the two lists of a directory do not fit on one inode.
#[test]
fn a_directory_that_would_get_more_lists_than_an_inode_takes_is_not_made() {
    let world = World::new(1);
    let volume = world.open().expect("a new log").0;
    let directory = volume.make(ROOT, b"d", &new(Kind::Directory)).expect("a free name").node;
    set(&volume, directory, DEFAULT, &list(255)).expect("one list fits");
    let made = volume.make(directory, b"sub", &new(Kind::Directory));
    assert_eq!(made.map(drop), Err(Errno(28)), "refused before it is acknowledged");
    volume.make(directory, b"file", &new(Kind::File)).expect("a file gets one list");
    bring_home(&volume, "255 users");
}
