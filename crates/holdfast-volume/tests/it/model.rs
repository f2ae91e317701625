//! What a file tree is, without log, home or crash; and a random life for it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use holdfast_io::fake::Random;
use holdfast_io::{Files, Kind, Metadata, OpenHow};
use holdfast_volume::{
    Allocate, Attributes, DirectoryVolume, Errno, NewNode, NodeId, ROOT, RenameHow, SetAttributes,
    Tree,
};

/// What stands under a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Item {
    File { mode: u32, owner: Owner, links: u32, modified_ns: i64, bytes: Vec<u8> },
    Directory { mode: u32, owner: Owner, links: u32 },
    Symlink { owner: Owner, target: Vec<u8> },
}

/// User and group.
pub(crate) type Owner = (u32, u32);

/// Files are told as runs of equal bytes: `100x0 20x3`.
impl fmt::Debug for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::File { mode, owner, links, modified_ns, bytes } => {
                write!(out, "File {mode:o} of {owner:?}, {links} links, at {modified_ns}:")?;
                bytes
                    .chunk_by(|one, next| one == next)
                    .try_for_each(|run| write!(out, " {}x{}", run.len(), run[0]))
            }
            Item::Directory { mode, owner, links } => {
                write!(out, "Directory {mode:o} of {owner:?}, {links} links")
            }
            Item::Symlink { owner, target } => write!(out, "Symlink of {owner:?}, {target:?}"),
        }
    }
}

/// A whole tree, by path.
pub(crate) type Image = BTreeMap<String, Item>;

/// Reads a whole tree through a file system.
pub(crate) fn image_of(files: &dyn Files) -> Image {
    let mut image = Image::new();
    let mut directories = vec![String::new()];
    while let Some(directory) = directories.pop() {
        for entry in files.read_dir(Path::new(&directory)).expect("a directory that can be read") {
            let name = String::from_utf8(entry.name).expect("a name made here");
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            if path == ".holdfast" {
                continue;
            }
            if entry.kind == Kind::Directory {
                directories.push(path.clone());
            }
            image.insert(path.clone(), item_of(files, &path));
        }
    }
    image
}

fn item_of(files: &dyn Files, path: &str) -> Item {
    let path = Path::new(path);
    let metadata = files.metadata(path).expect("a name just listed");
    let Metadata { mode, links, modified_ns, .. } = metadata;
    let owner = (metadata.uid, metadata.gid);
    match metadata.kind {
        Kind::Directory => Item::Directory { mode, owner, links },
        Kind::Symlink => Item::Symlink { owner, target: files.read_link(path).expect("a link") },
        _ => {
            let file = files.open(path, OpenHow::default()).expect("a file just listed");
            let mut bytes = vec![0; usize::try_from(metadata.size_bytes).expect("small")];
            file.read_full_at(&mut bytes, 0).expect("a file that can be read");
            Item::File { mode, owner, links, modified_ns, bytes }
        }
    }
}

/// Reads a whole tree through a volume.
pub(crate) fn image_through(tree: &DirectoryVolume) -> Image {
    let mut image = Image::new();
    let mut directories = vec![(ROOT, String::new())];
    while let Some((node, directory)) = directories.pop() {
        let mut listed = Vec::new();
        tree.list(node, 0, &mut |item| {
            listed.push(String::from_utf8(item.name.to_vec()).expect("a name made here"));
            true
        })
        .expect("a directory that can be listed");
        for name in listed {
            let found = tree.lookup(node, name.as_bytes()).expect("a name just listed");
            let path = if directory.is_empty() { name } else { format!("{directory}/{name}") };
            let Attributes { mode, links, modified_ns, .. } = found;
            let owner = (found.uid, found.gid);
            let item = match found.kind {
                Kind::Directory => {
                    directories.push((found.node, path.clone()));
                    Item::Directory { mode, owner, links }
                }
                Kind::Symlink => {
                    Item::Symlink { owner, target: tree.read_link(found.node).expect("a link") }
                }
                _ => {
                    let mut bytes = vec![0; usize::try_from(found.size_bytes).expect("small")];
                    let got = tree
                        .read(found.node, &mut bytes, 0)
                        .unwrap_or_else(|errno| panic!("{path} cannot be read: {errno:?}"));
                    assert_eq!(got, bytes.len(), "{path} is shorter than it says");
                    Item::File { mode, owner, links, modified_ns, bytes }
                }
            };
            image.insert(path, item);
        }
    }
    image
}

/// The same without times, which a sync of data alone does not make durable.
pub(crate) fn timeless(mut image: Image) -> Image {
    for item in image.values_mut() {
        if let Item::File { modified_ns, .. } = item {
            *modified_ns = 0;
        }
    }
    image
}

/// One change, by path, as a program would ask for it.
#[derive(Clone, Debug)]
pub(crate) enum Doing {
    Make { path: String, kind: Kind },
    Write { path: String, offset: u64, byte: u8, bytes: usize },
    SetSize { path: String, bytes: u64 },
    SetMode { path: String, mode: u32 },
    SetOwner { path: String, uid: u32, gid: u32 },
    SetTime { path: String, modified_ns: i64 },
    Punch { path: String, offset: u64, bytes: u64 },
    Link { from: String, to: String },
    Rename { from: String, to: String },
    Remove { path: String },
    RemoveDir { path: String },
}

const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
const DIRECTORIES: [&str; 3] = ["", "p", "q"];

fn any_path(random: &mut Random) -> String {
    let directory = DIRECTORIES[random.below(3) as usize];
    let name = NAMES[random.below(5) as usize];
    if directory.is_empty() { name.into() } else { format!("{directory}/{name}") }
}

/// A change drawn at random; many make no sense in the state of the moment and are refused.
pub(crate) fn any_doing(random: &mut Random) -> Doing {
    let path = any_path(random);
    let directory = DIRECTORIES[1 + random.below(2) as usize].to_string();
    match random.below(20) {
        0..=2 => Doing::Make { path, kind: Kind::File },
        3 => Doing::Make { path: directory, kind: Kind::Directory },
        4 => Doing::Make { path, kind: Kind::Symlink },
        5..=10 => {
            let bytes = 1 + random.below(3000) as usize;
            let byte = random.below(4) as u8;
            Doing::Write { path, offset: random.below(5000), byte, bytes }
        }
        11 => Doing::SetSize { path, bytes: random.below(6000) },
        12 => Doing::SetMode { path, mode: 0o600 + random.below(64) as u32 },
        13 => Doing::Punch { path, offset: random.below(4000), bytes: 1 + random.below(2000) },
        14 => Doing::Link { from: path, to: any_path(random) },
        15..=16 => Doing::Rename { from: path, to: any_path(random) },
        17 => Doing::Rename { from: directory, to: "p".into() },
        18 => Doing::Remove { path },
        _ if random.chance(50) => Doing::RemoveDir { path: directory },
        _ => Doing::Remove { path },
    }
}

/// What only a fuller life has: owners and times.
pub(crate) fn any_attribute(random: &mut Random) -> Doing {
    let path = any_path(random);
    match random.below(3) {
        0 => Doing::SetMode { path, mode: 0o6711 },
        1 => Doing::SetOwner { path, uid: random.below(3) as u32, gid: random.below(3) as u32 },
        _ => Doing::SetTime { path, modified_ns: random.below(1 << 40) as i64 },
    }
}

/// A program's life in a tree: changes, and files it has open.
pub(crate) struct Life {
    random: Random,
    /// Drawn from for what the plain life does not have, so that both make the same changes.
    more: Option<Random>,
    pub(crate) opened: Vec<NodeId>,
}

impl Life {
    /// A life of changes by path alone.
    pub(crate) fn plain(seed: u64) -> Life {
        Life { random: Random::new(seed), more: None, opened: Vec::new() }
    }

    /// With open files, nodes that the kernel forgets, owners and times.
    pub(crate) fn full(seed: u64) -> Life {
        let more = Some(Random::new(seed ^ 0xf11e));
        Life { random: Random::new(seed), more, opened: Vec::new() }
    }

    /// True for a full life.
    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// The dice of the plain life, for those who add deaths and cuts.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// One change. Returns whether it was made.
    pub(crate) fn step(&mut self, tree: &DirectoryVolume) -> bool {
        apply(tree, &any_doing(&mut self.random)).is_ok()
    }

    /// What a full life does besides, one change at the most.
    pub(crate) fn step_more(&mut self, tree: &DirectoryVolume) {
        let Some(mut more) = self.more.take() else { return };
        match more.below(8) {
            0 | 1 => self.open(tree, &any_path(&mut more)),
            2 => self.close(tree, more.below(8) as usize),
            3 => self.forget(tree, &any_path(&mut more)),
            4 => drop(apply(tree, &any_attribute(&mut more))),
            5 => self.write_open(tree, &mut more),
            _ => {}
        }
        self.more = Some(more);
    }

    fn open(&mut self, tree: &DirectoryVolume, path: &str) {
        let Ok(node) = walk(tree, path) else { return };
        if tree.attributes(node).is_ok_and(|found| found.kind == Kind::File) {
            tree.opened(node).expect("it has a name");
            self.opened.push(node);
        }
    }

    fn close(&mut self, tree: &DirectoryVolume, index: usize) {
        if index >= self.opened.len() {
            return;
        }
        let node = self.opened.swap_remove(index);
        tree.closed(node);
        let links = tree.attributes(node).expect("a node that was open").links;
        if links == 0 && !self.opened.contains(&node) {
            tree.forget(node, u64::MAX);
        }
    }

    /// The kernel forgets a file that nobody has open.
    fn forget(&mut self, tree: &DirectoryVolume, path: &str) {
        let Ok(node) = walk(tree, path) else { return };
        let is_file = tree.attributes(node).is_ok_and(|found| found.kind == Kind::File);
        if is_file && !self.opened.contains(&node) {
            tree.forget(node, u64::MAX);
        }
    }

    fn write_open(&self, tree: &DirectoryVolume, more: &mut Random) {
        if let Some(node) = self.opened.first() {
            let bytes = vec![more.below(4) as u8; 1 + more.below(2000) as usize];
            // Refused only when the power has gone.
            let _ = tree.write(*node, &bytes, more.below(3000), false);
        }
    }

    /// What the open files hold, those without a name too.
    pub(crate) fn contents(&self, tree: &DirectoryVolume) -> Vec<Vec<u8>> {
        let read = |node: &NodeId| {
            let size = tree.attributes(*node).expect("an open node").size_bytes;
            let mut bytes = vec![0; usize::try_from(size).expect("small")];
            assert_eq!(tree.read(*node, &mut bytes, 0), Ok(bytes.len()), "an open node");
            bytes
        };
        self.opened.iter().map(read).collect()
    }
}

/// Walks to a node.
pub(crate) fn walk(tree: &DirectoryVolume, path: &str) -> Result<NodeId, Errno> {
    path.split('/')
        .filter(|part| !part.is_empty())
        .try_fold(ROOT, |node, part| tree.lookup(node, part.as_bytes()).map(|found| found.node))
}

/// The directory and the last name of a path.
pub(crate) fn split<'a>(
    tree: &DirectoryVolume,
    path: &'a str,
) -> Result<(NodeId, &'a [u8]), Errno> {
    let (directory, name) = path.rsplit_once('/').unwrap_or(("", path));
    Ok((walk(tree, directory)?, name.as_bytes()))
}

/// Does it.
pub(crate) fn apply(tree: &DirectoryVolume, doing: &Doing) -> Result<(), Errno> {
    match doing {
        Doing::Make { path, kind } => {
            let (parent, name) = split(tree, path)?;
            let mode = if *kind == Kind::Symlink { 0o777 } else { 0o750 };
            let new = NewNode { kind: *kind, mode, uid: 0, gid: 0, rdev: 0, target: b"x/y" };
            tree.make(parent, name, &new).map(|_| ())
        }
        Doing::Write { path, offset, byte, bytes } => {
            tree.write(walk(tree, path)?, &vec![*byte; *bytes], *offset, false)
        }
        Doing::SetSize { path, bytes } => {
            let set = SetAttributes { size_bytes: Some(*bytes), ..SetAttributes::default() };
            tree.set_attributes(walk(tree, path)?, &set).map(|_| ())
        }
        Doing::SetMode { path, mode } => {
            let node = walk(tree, path)?;
            if tree.attributes(node)?.kind == Kind::Symlink {
                return Err(Errno::INVAL);
            }
            let set = SetAttributes { mode: Some(*mode), ..SetAttributes::default() };
            tree.set_attributes(node, &set).map(|_| ())
        }
        Doing::SetOwner { path, uid, gid } => {
            let set =
                SetAttributes { uid: Some(*uid), gid: Some(*gid), ..SetAttributes::default() };
            tree.set_attributes(walk(tree, path)?, &set).map(|_| ())
        }
        Doing::SetTime { path, modified_ns } => {
            let set = SetAttributes { modified_ns: Some(*modified_ns), ..SetAttributes::default() };
            tree.set_attributes(walk(tree, path)?, &set).map(|_| ())
        }
        Doing::Punch { path, offset, bytes } => {
            tree.allocate(walk(tree, path)?, Allocate::PunchHole, *offset, *bytes)
        }
        Doing::Link { from, to } => {
            let node = walk(tree, from)?;
            let (parent, name) = split(tree, to)?;
            tree.link(node, parent, name).map(|_| ())
        }
        Doing::Rename { from, to } => {
            let (from, to) = (split(tree, from)?, split(tree, to)?);
            tree.rename(from, to, RenameHow::Replace)
        }
        Doing::Remove { path } => {
            let (parent, name) = split(tree, path)?;
            tree.remove_file(parent, name)
        }
        Doing::RemoveDir { path } => {
            let (parent, name) = split(tree, path)?;
            tree.remove_dir(parent, name)
        }
    }
}
