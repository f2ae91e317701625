//! The same changes on a volume and on this machine's own file system: after each, both tell the
//! same of every name, size, link, byte, block and hole.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use holdfast_io::fake::Random;
use holdfast_io::real::RealFiles;
use holdfast_io::tree::{Errno, ROOT, Tree};
use holdfast_io::{Change, Files, Kind, OpenHow, Seek};
use holdfast_volume::DirectoryVolume;

use crate::death::die_while_opening;
use crate::model::{Doing, any_doing, apply};
use crate::seeds::for_each_seed;
use crate::world::{Opened, World};

/// What a program can ask of a name.
#[derive(PartialEq)]
struct Told {
    kind: Kind,
    mode: u32,
    /// Of directories file systems count differently.
    links: Option<u32>,
    size_bytes: Option<u64>,
    has_blocks: Option<bool>,
    /// Where data begins and ends.
    data: Vec<(u64, u64)>,
    bytes: Vec<u8>,
}

/// Without the bytes, which are too many to be read.
impl fmt::Debug for Told {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Told { kind, mode, links, size_bytes, has_blocks, data, .. } = self;
        write!(out, "{kind:?} {mode:o} {links:?} {size_bytes:?} {has_blocks:?} {data:?}")
    }
}

type Image = BTreeMap<String, Told>;

/// Does it to ordinary files.
fn apply_to_files(files: &dyn Files, doing: &Doing) -> Result<(), Errno> {
    let write = OpenHow { write: true, ..OpenHow::default() };
    let open = |path: &String| files.open(Path::new(path), write);
    match doing {
        Doing::Make { path, kind: Kind::Directory } => files.make_dir(Path::new(path), 0o750)?,
        Doing::Make { path, kind: Kind::Symlink } => files.make_symlink(Path::new(path), b"x/y")?,
        Doing::Make { path, kind } => files.make_node(Path::new(path), *kind, 0o750, 0)?,
        Doing::Write { path, offset, byte, bytes } => {
            open(path)?.write_all_at(&vec![*byte; *bytes], *offset)?;
        }
        Doing::SetSize { path, bytes } => open(path)?.set_len(*bytes)?,
        Doing::Punch { path, offset, bytes } => open(path)?.punch(*offset, *bytes)?,
        Doing::SetMode { path, mode } => {
            let change = Change { mode: Some(*mode), ..Change::default() };
            files.change(Path::new(path), &change)?;
        }
        Doing::Link { from, to } => files.link(Path::new(from), Path::new(to))?,
        Doing::Rename { from, to } => files.rename(Path::new(from), Path::new(to))?,
        Doing::Remove { path } => files.remove_file(Path::new(path))?,
        Doing::RemoveDir { path } => files.remove_dir(Path::new(path))?,
        // Only a fuller life has others.
        _ => {}
    }
    Ok(())
}

fn data_of(size_bytes: u64, seek: impl Fn(u64, Seek) -> Option<u64>) -> Vec<(u64, u64)> {
    let (mut found, mut at) = (Vec::new(), 0);
    while let Some(data) = seek(at, Seek::Data) {
        at = seek(data, Seek::Hole).expect("a hole behind the data");
        found.push((data, at));
        assert!(at <= size_bytes, "a hole behind the end");
    }
    found
}

fn told_by_files(files: &dyn Files, path: &str) -> Told {
    let path = Path::new(path);
    let found = files.metadata(path).expect("a name just listed");
    let is_file = found.kind == Kind::File;
    let (mut data, mut bytes) = (Vec::new(), Vec::new());
    if is_file {
        let file = files.open(path, OpenHow::default()).expect("a file just listed");
        bytes = vec![0; usize::try_from(found.size_bytes).expect("small")];
        file.read_full_at(&mut bytes, 0).expect("a file that can be read");
        data = data_of(found.size_bytes, |at, what| file.seek(at, what).expect("it can seek"));
    }
    Told {
        kind: found.kind,
        mode: found.mode,
        links: is_file.then_some(found.links),
        size_bytes: is_file.then_some(found.size_bytes),
        has_blocks: is_file.then_some(found.allocated_bytes > 0),
        data,
        bytes,
    }
}

fn image_of_files(files: &dyn Files) -> Image {
    let (mut image, mut directories) = (Image::new(), vec![String::new()]);
    while let Some(directory) = directories.pop() {
        for entry in files.read_dir(Path::new(&directory)).expect("a directory") {
            let name = String::from_utf8(entry.name).expect("a name made here");
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            if entry.kind == Kind::Directory {
                directories.push(path.clone());
            }
            image.insert(path.clone(), told_by_files(files, &path));
        }
    }
    image
}

fn image_of_tree(tree: &DirectoryVolume) -> Image {
    let (mut image, mut directories) = (Image::new(), vec![(ROOT, String::new())]);
    while let Some((node, directory)) = directories.pop() {
        let mut names = Vec::new();
        let listed = tree.list(node, 0, &mut |item| {
            names.push(String::from_utf8(item.name.to_vec()).expect("a name made here"));
            true
        });
        listed.expect("a directory");
        for name in names {
            let found = tree.lookup(node, name.as_bytes()).expect("a name just listed");
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            if found.kind == Kind::Directory {
                directories.push((found.node, path.clone()));
            }
            let is_file = found.kind == Kind::File;
            let mut bytes = vec![0; if is_file { found.size_bytes as usize } else { 0 }];
            let mut data = Vec::new();
            if is_file {
                tree.read(found.node, &mut bytes, 0).expect("a file that can be read");
                let seek = |at, what| tree.seek(found.node, at, what).ok();
                data = data_of(found.size_bytes, seek);
            }
            let told = Told {
                kind: found.kind,
                mode: found.mode,
                links: is_file.then_some(found.links),
                size_bytes: is_file.then_some(found.size_bytes),
                has_blocks: is_file.then_some(found.allocated_bytes > 0),
                data,
                bytes,
            };
            image.insert(path, told);
        }
    }
    image
}

fn bring_home(volume: &Opened) {
    while volume.drain_step().expect("a sound log") > 0 {}
    while !volume.clean_step().expect("a sound home").is_idle() {}
}

/// A hole up to the end of a file takes the rest of its last block with it on this machine. A
/// volume keeps that block, and so does its home.
fn reaches_the_end(files: &dyn Files, doing: &Doing) -> bool {
    let Doing::Punch { path, offset, bytes } = doing else { return false };
    let found = files.metadata(Path::new(path));
    found.is_ok_and(|found| offset + bytes >= found.size_bytes)
}

fn live(seed: u64) {
    let folder = tempfile::tempdir().expect("a folder");
    let files = RealFiles::open(folder.path()).expect("just made");
    let world = World::new(seed);
    let (mut volume, _) = world.open().expect("a new volume");
    let mut random = Random::new(seed);
    for step in 0..150 {
        let told = format!("seed {seed}, step {step}");
        let doing = any_doing(&mut random);
        if reaches_the_end(&files, &doing) {
            continue;
        }
        let (here, there) = (apply(&volume, &doing), apply_to_files(&files, &doing));
        assert_eq!(here.is_ok(), there.is_ok(), "{told}: {doing:?}: {here:?} beside {there:?}");
        assert_eq!(image_of_tree(&volume), image_of_files(&files), "{told}: after {doing:?}");
        match random.below(20) {
            0 | 1 => bring_home(&volume),
            2 => {
                drop(volume);
                die_while_opening(&world, &mut random);
                volume = world.open().expect("the region has everything").0;
            }
            _ => {}
        }
    }
}

#[test]
fn a_volume_tells_what_the_machines_own_file_system_tells() {
    for_each_seed("beside::a_volume_tells", &[], 0..12, live);
}
