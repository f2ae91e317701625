//! Homes that give room in blocks of their own size, or in clusters of blocks: an ext4 each.
//!
//! The generator writes a little here and there, reserves, punches, makes files and cuts them, into
//! one window for long. Whatever is acknowledged comes home, and nothing is refused for want of
//! room of which the home has some.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use holdfast_io::fake::Random;
use holdfast_io::real::RealFiles;
use holdfast_io::tree::{Allocate, Errno, NodeId, ROOT, SetAttributes, Tree};
use holdfast_io::{Files, Kind};
use holdfast_volume::DirectoryVolume;

use crate::borders::{Mounted, new_log, open};
use crate::rules::settle;
use crate::seeds::for_each_seed;
use crate::world::new_node;

const IMAGE_BYTES: u64 = 24 << 20;
const OFFSET_MAX: u64 = 1 << 30;
const WRITE_BYTES_MAX: u64 = 3000;
/// The log takes so much before a window ends.
const WINDOW_BYTES: u64 = 500 << 10;
/// What is kept free of a home.
const MARGIN_BYTES: u64 = 4 << 20;
/// How many changes in a row are refused by a home that is full.
const REFUSED_MAX: u32 = 20;
/// What a file system gives room in, and how it is made so.
const KINDS: [(u64, &[&str]); 4] = [
    (1 << 10, &["-b", "1024"]),
    (4 << 10, &["-b", "4096"]),
    (16 << 10, &["-b", "1024", "-O", "bigalloc", "-C", "16384"]),
    (64 << 10, &["-b", "4096", "-O", "bigalloc", "-C", "65536"]),
];

/// A home of that kind; `None` where there is none.
fn home(options: &[&str]) -> Option<(tempfile::TempDir, Mounted)> {
    let folder = tempfile::tempdir().expect("a folder");
    let (image, mount) = (folder.path().join("image"), folder.path().join("mount"));
    File::create(&image).and_then(|file| file.set_len(IMAGE_BYTES)).expect("room");
    fs::create_dir(&mount).expect("room");
    let run = |program: &str, arguments: &[&str], path: &Path| {
        let done = Command::new(program).args(arguments).arg(path).output();
        done.is_ok_and(|done| done.status.success())
    };
    let plain = ["-q", "-F", "-O", "^has_journal", "-m", "0"];
    let loops = ["-o", "loop", image.to_str().expect("made here")];
    let is_made = run("mkfs.ext4", &[&plain, options].concat(), &image);
    (is_made && run("mount", &loops, &mount)).then(|| (folder, Mounted(mount)))
}

fn change(
    tree: &DirectoryVolume,
    random: &mut Random,
    nodes: &mut Vec<NodeId>,
) -> Result<(), Errno> {
    if nodes.is_empty() || random.chance(10) {
        let name = format!("f{}", nodes.len());
        nodes.push(tree.make(ROOT, name.as_bytes(), &new_node(Kind::File, 0o600))?.node);
        return Ok(());
    }
    let node = nodes[random.below(nodes.len() as u64) as usize];
    let (offset, bytes) = (random.below(OFFSET_MAX), 1 + random.below(WRITE_BYTES_MAX));
    match random.below(40) {
        0 => {
            let set = SetAttributes { size_bytes: Some(offset), ..SetAttributes::default() };
            tree.set_attributes(node, &set).map(drop)
        }
        1 => tree.allocate(node, Allocate::PunchHole, offset, bytes << 12),
        2..8 => tree.allocate(node, Allocate::Reserve { keep_size: true }, offset, bytes),
        _ => tree.write(node, &vec![7; bytes as usize], offset, false),
    }
}

fn live(seed: u64) {
    let (unit_bytes, options) = KINDS[(seed % KINDS.len() as u64) as usize];
    let Some((_folder, mounted)) = home(options) else {
        println!("there is no such ext4 here: {options:?}");
        return;
    };
    let space = || RealFiles::open(&mounted.0).expect("a home").space().expect("a home");
    assert_eq!(space().room_unit_bytes, unit_bytes, "seed {seed}: {options:?}");
    let (opened, mut random) = (open(&mounted.0, &new_log(seed)), Random::new(seed));
    let (mut nodes, mut refused) = (Vec::new(), 0);
    for step in 0.. {
        let told = format!("seed {seed}, step {step}, units of {unit_bytes}");
        let mut again = random.clone();
        let mut done = change(&opened.volume, &mut random, &mut nodes);
        if done.is_err() {
            settle(&opened, &told);
            done = change(&opened.volume, &mut again, &mut nodes);
        }
        if let Err(errno) = done {
            assert_eq!(errno, Errno::NOSPC, "{told}");
            let free_bytes = space().available_bytes.saturating_sub(MARGIN_BYTES);
            // What was asked for, a block at each end of it, and what it takes to find it.
            let asked_bytes = WRITE_BYTES_MAX + 5 * unit_bytes;
            assert!(free_bytes < asked_bytes, "{told}: refused, but {free_bytes} are free");
            refused += 1;
            if refused == REFUSED_MAX {
                break;
            }
        }
        let marks = opened.log.marks();
        if marks.tail.since(marks.released) > WINDOW_BYTES {
            settle(&opened, &told);
        }
    }
    settle(&opened, &format!("seed {seed}, at the end"));
    opened.detach().expect("a sound home");
}

#[test]
fn what_a_home_with_other_blocks_acknowledges_comes_home_until_it_is_full() {
    for_each_seed("clusters::what_a_home_with_other_blocks", &[], 0..8, live);
}
