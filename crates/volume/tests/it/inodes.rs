//! Homes that take inodes for more than nodes: for names, for values of extended attributes.
//!
//! The generator makes nodes and names, gives nodes attributes of any length and lets them change
//! places, until the home is full. Whatever is acknowledged comes home, and nothing is refused
//! while the home has plenty of inodes.

use std::fs::{self, File};
use std::process::Command;

use holdfast_io::fake::Random;
use holdfast_io::real::RealFiles;
use holdfast_io::tree::{Asked, Errno, NodeId, ROOT, RenameHow, SetXattr, Tree};
use holdfast_io::{Files, Kind};
use holdfast_volume::{DirectVolume, DirectoryVolume};

use crate::borders::{Mounted, new_log, open};
use crate::model::{image_of, image_through};
use crate::rules::settle;
use crate::seeds::for_each_seed;
use crate::world::new_node;

const IMAGE_BYTES: u64 = 24 << 20;
const STEPS: u64 = 300;
/// Longer than a block, which an ext4 takes only where it has inodes for values.
const VALUE_BYTES_MAX: u64 = 9000;
/// All attributes of a node go into one frame.
const NAMES: u64 = 3;
/// What a tmpfs has to have free for whatever the generator draws: all attributes of a node, each
/// as long as can be, twice, as they are tried out first, and a node for that.
const PLENTY: u64 = 2 * NAMES * 9 + 1 + KEPT_FREE;

/// What a volume keeps free, and what it may have made for itself.
const KEPT_FREE: u64 = 2;

/// A file system with few inodes.
#[derive(Debug)]
enum System {
    Tmpfs(&'static str),
    Ext4(&'static [&'static str]),
}

const SYSTEMS: [System; 4] = [
    System::Tmpfs("size=64m,nr_inodes=150"),
    System::Ext4(&["-b", "4096", "-O", "ea_inode", "-N", "100"]),
    System::Ext4(&["-b", "1024", "-O", "ea_inode", "-N", "100"]),
    System::Ext4(&["-b", "4096", "-N", "100"]),
];

/// A home on one. `None` where there is none.
fn home(system: &System) -> Option<(tempfile::TempDir, Mounted)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
    File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES)).expect("room");
    fs::create_dir(&mount).expect("room");
    let run = |command: &mut Command| command.output().is_ok_and(|done| done.status.success());
    let is_mounted = match system {
        System::Tmpfs(options) => {
            let mut command = Command::new("mount");
            run(command.args(["-t", "tmpfs", "-o", options, "none"]).arg(&mount))
        }
        System::Ext4(options) => {
            let mut make = Command::new("mkfs.ext4");
            run(make.args(["-q", "-F", "-m", "0"]).args(*options).arg(&image))
                && run(Command::new("mount").args(["-o", "loop"]).args([&image, &mount]))
        }
    };
    is_mounted.then(|| (folder, Mounted(mount)))
}

/// One change, perhaps refused.
fn change(
    tree: &DirectoryVolume,
    random: &mut Random,
    nodes: &mut Vec<(String, NodeId)>,
) -> Result<(), Errno> {
    if nodes.is_empty() || random.chance(15) {
        let kind = [Kind::File, Kind::Directory][random.below(2) as usize];
        let name = format!("n{}", nodes.len());
        let node = tree.make(ROOT, name.as_bytes(), &new_node(kind, 0o700))?.node;
        nodes.push((name, node));
        return Ok(());
    }
    let [one, other] = [0; 2].map(|_| random.below(nodes.len() as u64) as usize);
    let asked = Asked { request: 0, again: false };
    match random.below(8) {
        0 => {
            let names = [one, other].map(|index| (ROOT, nodes[index].0.as_bytes()));
            tree.rename(names[0], names[1], RenameHow::Exchange(asked))?;
            (nodes[one].1, nodes[other].1) = (nodes[other].1, nodes[one].1);
            Ok(())
        }
        1 => {
            let name = format!("l{}", random.below(1000));
            tree.link(nodes[one].1, ROOT, name.as_bytes()).map(drop)
        }
        _ => {
            let name = format!("user.{}", random.below(NAMES));
            let bytes_max = if random.chance(50) { 100 } else { VALUE_BYTES_MAX };
            let mut value = vec![0; random.below(bytes_max) as usize];
            // No two are one: a file system may keep equal ones once.
            value.fill_with(|| random.below(256) as u8);
            tree.set_xattr(nodes[one].1, name.as_bytes(), &value, &SetXattr::default())
        }
    }
}

/// As [`change`], once more when everything is home if it is refused.
fn change_or_settle(
    opened: &DirectVolume,
    random: &mut Random,
    nodes: &mut Vec<(String, NodeId)>,
    told: &str,
) -> Result<(), Errno> {
    let mut again = random.clone();
    let done = change(&opened.volume, random, nodes);
    if done.is_ok() {
        return done;
    }
    settle(opened, told);
    change(&opened.volume, &mut again, nodes)
}

/// There is no room, or such a name, or it would be another one of a directory.
fn is_foreseen(errno: Errno) -> bool {
    [Errno::NOSPC, Errno::EXIST, Errno::PERM].contains(&errno)
}

fn live(seed: u64) {
    let system = &SYSTEMS[(seed % SYSTEMS.len() as u64) as usize];
    let Some((_folder, mounted)) = home(system) else {
        println!("there is no such home here: {system:?}");
        return;
    };
    let files = RealFiles::open(&mounted.0).expect("a home");
    let free = || files.space().expect("a home").free_inodes;
    let (opened, mut random) = (open(&mounted.0, &new_log(seed)), Random::new(seed));
    let mut nodes = Vec::new();
    for step in 0..STEPS {
        let told = format!("seed {seed}, step {step}, on {system:?}");
        match change_or_settle(&opened, &mut random, &mut nodes, &told) {
            // On ext4 the attributes may be too many for one node.
            Err(Errno::NOSPC) if matches!(system, System::Tmpfs(_)) => {
                assert!(free() <= PLENTY, "{told}: refused, but {} inodes are free", free());
            }
            Err(errno) => assert!(is_foreseen(errno), "{told}: {errno:?}"),
            Ok(()) => {}
        }
    }
    let told = format!("seed {seed}, at the end, on {system:?}");
    settle(&opened, &told);
    let mut names = (0..).map(|number: u32| format!("more{number}"));
    let mut make = || {
        let name = names.next().expect("numbers do not end");
        opened.volume.make(ROOT, name.as_bytes(), &new_node(Kind::File, 0o600))
    };
    while make().is_ok() {
        settle(&opened, &told);
    }
    assert!(free() <= KEPT_FREE, "{told}: full, but {} inodes are free", free());
    let seen = image_through(&opened.volume);
    opened.detach().expect("a sound home");
    assert_eq!(image_of(&files), seen, "{told}");
}

#[test]
fn what_takes_inodes_besides_nodes_comes_home_until_there_are_none() {
    for_each_seed("inodes::what_takes_inodes", &[], 0..8, live);
}
