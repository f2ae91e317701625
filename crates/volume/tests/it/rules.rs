//! Directories of the home whose owners have set flags that few others have.
//!
//! The generator makes, moves, links and exchanges names between directories of an XFS that hand
//! projects down, take no symbolic links, or neither. Whatever is acknowledged comes home.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use holdfast_io::fake::Random;
use holdfast_io::tree::{Asked, Errno, Kind, NewNode, NodeId, ROOT, RenameHow, Tree};
use holdfast_volume::{DirectVolume, DirectoryVolume};

use crate::borders::{Mounted, new_log, open};
use crate::seeds::for_each_seed;
use crate::world::new_node;

const XDEV: Errno = Errno(18);
const PERM: Errno = Errno(1);
const STEPS: u64 = 250;
const DIRECTORIES: [&str; 5] = ["plain", "one", "other", "nosym", ""];

/// A home on an XFS of its own. `None` where there is none.
fn home() -> Option<(tempfile::TempDir, Mounted)> {
    let folder = tempfile::tempdir().expect("a folder");
    let image = folder.path().join("image");
    File::create(&image).and_then(|file| file.set_len(320 << 20)).expect("room");
    let mount = folder.path().join("mount");
    fs::create_dir(&mount).expect("room");
    let run = |program: &str, arguments: &[&str], path: &Path| {
        let done = Command::new(program).args(arguments).arg(path).output();
        done.is_ok_and(|done| done.status.success())
    };
    if !run("mkfs.xfs", &["-q"], &image) {
        return None;
    }
    let loops = ["-o", "loop", image.to_str().expect("made here")];
    let mounted = run("mount", &loops, &mount).then(|| Mounted(mount.clone()))?;
    for (name, flags) in [
        ("plain", &[][..]),
        ("one", &["-c", "chproj 42", "-c", "chattr +P"][..]),
        ("other", &["-c", "chproj 43", "-c", "chattr +P"]),
        ("nosym", &["-c", "chattr +n"]),
    ] {
        fs::create_dir(mount.join(name)).expect("room");
        fs::write(mount.join(name).join("f"), name).expect("room");
        symlink("f", mount.join(name).join("l")).expect("room");
        if !flags.is_empty() && !run("xfs_io", &[&["-r"], flags].concat(), &mount.join(name)) {
            return None;
        }
    }
    Some((folder, mounted))
}

/// Brings all that is acknowledged home.
pub(crate) fn settle(opened: &DirectVolume, told: &str) {
    opened.log.commit(opened.log.marks().tail).expect("a sound log");
    loop {
        let cleaned = opened.volume.clean_step();
        let cleaned = cleaned.unwrap_or_else(|error| panic!("{told}: acknowledged, but {error}"));
        if cleaned.is_idle() {
            return;
        }
    }
}

fn directory(tree: &DirectoryVolume, name: &str) -> NodeId {
    match name {
        "" => ROOT,
        name => tree.lookup(ROOT, name.as_bytes()).expect("it is there").node,
    }
}

#[test]
fn what_a_directory_of_the_home_lets_in_is_what_the_volume_lets_in() {
    let Some((_folder, mounted)) = home() else {
        println!("there is no XFS here");
        return;
    };
    let opened = open(&mounted.0, &new_log(1));
    let tree = &opened.volume;
    let [plain, one, other, nosym, _] = DIRECTORIES.map(|name| directory(tree, name));
    let moved = |from, name: &str, to, as_name: &str| {
        let (from, to) = ((from, name.as_bytes()), (to, as_name.as_bytes()));
        tree.rename(from, to, RenameHow::KeepTarget)
    };
    let link = NewNode { target: b"f", ..new_node(Kind::Symlink, 0o777) };
    let file = new_node(Kind::File, 0o600);
    let found = tree.lookup(plain, b"f").expect("it is there").node;
    assert_eq!(moved(plain, "f", one, "g"), Err(XDEV));
    assert_eq!(tree.link(found, one, b"g").map(drop), Err(XDEV));
    // It was there before the directory had a project.
    assert_eq!(moved(one, "f", one, "g"), Err(XDEV));
    tree.make(one, b"n", &file).expect("a free name");
    assert_eq!(moved(one, "n", other, "n"), Err(XDEV));
    assert_eq!(moved(one, "n", one, "m"), Ok(()));
    settle(&opened, "in one");
    assert_eq!(moved(one, "m", other, "n"), Err(XDEV));
    assert_eq!(moved(one, "m", one, "n"), Ok(()));
    assert_eq!(moved(one, "n", plain, "n"), Ok(()));
    assert_eq!(tree.make(nosym, b"s", &link).map(drop), Err(PERM));
    tree.make(plain, b"s", &link).expect("a free name");
    assert_eq!(moved(plain, "s", nosym, "s"), Err(XDEV));
    opened.detach().expect("everything comes home");
    assert!(mounted.0.join("plain/n").exists() && mounted.0.join("plain/s").is_symlink());
}

fn step(tree: &DirectoryVolume, random: &mut Random, number: u64) -> Result<(), Errno> {
    let mut place = || {
        let top = directory(tree, DIRECTORIES[random.below(5) as usize]);
        let below = tree.lookup(top, format!("d{}", random.below(3)).as_bytes());
        let inside = random.chance(50);
        (below.map_or(top, |below| if inside { below.node } else { top }), random.below(6))
    };
    let ((from, a), (to, b)) = (place(), place());
    let name = |number: u64| ["f", "l", "d0", "d1", "d2", "n"][number as usize].as_bytes();
    let kind = [Kind::Symlink, Kind::Directory, Kind::File][(random.below(3)) as usize];
    match random.below(8) {
        0..3 => {
            let new = NewNode { target: b"t", ..new_node(kind, 0o700) };
            tree.make(from, name(a), &new).map(drop)
        }
        3 | 4 => tree.rename((from, name(a)), (to, name(b)), RenameHow::Replace),
        5 => {
            let how = RenameHow::Exchange(Asked { request: number, again: false });
            tree.rename((from, name(a)), (to, name(b)), how)
        }
        6 => {
            let node = tree.lookup(from, name(a))?.node;
            tree.link(node, to, name(b)).map(drop)
        }
        _ => tree.remove_file(from, name(a)).or_else(|_| tree.remove_dir(from, name(a))),
    }
}

fn live(seed: u64) {
    let Some((_folder, mounted)) = home() else { return };
    let opened = open(&mounted.0, &new_log(seed));
    let mut random = Random::new(seed);
    let mut done = 0;
    for number in 0..STEPS {
        done += u64::from(step(&opened.volume, &mut random, number).is_ok());
        if random.chance(5) {
            settle(&opened, &format!("seed {seed}, step {number}"));
        }
    }
    settle(&opened, &format!("seed {seed}, at the end"));
    assert!(done > STEPS / 10, "seed {seed}: nearly everything is refused");
    opened.detach().expect("everything comes home");
}

#[test]
fn whatever_moves_between_directories_with_rules_comes_home() {
    for_each_seed("rules::whatever_moves", &[], 0..4, live);
}
