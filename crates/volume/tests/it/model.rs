//! What a file tree is, without log, home or crash; and a random life for it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::world::ONCE;
use holdfast_io::fake::Random;
use holdfast_io::tree::{
    Allocate, Attributes, Errno, NewNode, NodeId, ROOT, RenameHow, SetAttributes, SetXattr, Tree,
};
use holdfast_io::{Files, Kind, Metadata, OpenHow};
use holdfast_volume::DirectoryVolume;

/// What stands under a path.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Item {
    File { mode: u32, owner: Owner, links: u32, times_ns: Times, xattrs: Xattrs, bytes: Vec<u8> },
    Directory { mode: u32, owner: Owner, links: u32, times_ns: Times, xattrs: Xattrs },
    Symlink { owner: Owner, xattrs: Xattrs, target: Vec<u8> },
}

/// Of the last access, and of the last change of the contents.
type Times = [i128; 2];

/// Extended attributes: name and value.
pub(crate) type Xattrs = BTreeMap<String, Vec<u8>>;

/// User and group.
pub(crate) type Owner = (u32, u32);

/// Files are told as runs of equal bytes: `100x0 20x3`.
impl fmt::Debug for Item {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Item::File { mode, owner, links, times_ns, xattrs, bytes } => {
                write!(out, "File {mode:o} of {owner:?}, {links} links, at {times_ns:?}")?;
                write!(out, ", {xattrs:?}:")?;
                bytes
                    .chunk_by(|one, next| one == next)
                    .try_for_each(|run| write!(out, " {}x{}", run.len(), run[0]))
            }
            Item::Directory { mode, owner, links, times_ns, xattrs } => {
                let told = format!("{mode:o} of {owner:?}, {links} links, at {times_ns:?}");
                write!(out, "Directory {told}, {xattrs:?}")
            }
            Item::Symlink { owner, xattrs, target } => {
                write!(out, "Symlink of {owner:?}, {xattrs:?}, {target:?}")
            }
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
    let Metadata { mode, links, accessed_ns, modified_ns, .. } = metadata;
    let times_ns = [accessed_ns, modified_ns];
    let owner = (metadata.uid, metadata.gid);
    let names = files.xattr_names(path).expect("a name just listed");
    let value = |name: &Vec<u8>| files.xattr(path, name).expect("a sound disk").expect("listed");
    let xattrs = names.iter().map(|name| (text(name), value(name))).collect();
    match metadata.kind {
        Kind::Directory => Item::Directory { mode, owner, links, times_ns, xattrs },
        Kind::Symlink => {
            Item::Symlink { owner, xattrs, target: files.read_link(path).expect("a link") }
        }
        _ => {
            let file = files.open(path, OpenHow::default()).expect("a file just listed");
            let mut bytes = vec![0; usize::try_from(metadata.size_bytes).expect("small")];
            file.read_full_at(&mut bytes, 0).expect("a file that can be read");
            Item::File { mode, owner, links, times_ns, xattrs, bytes }
        }
    }
}

fn text(name: &[u8]) -> String {
    String::from_utf8(name.to_vec()).expect("a name made here")
}

/// What a volume tells of a node's extended attributes.
fn xattrs_of(tree: &DirectoryVolume, node: NodeId) -> Xattrs {
    let names = tree.xattr_names(node).expect("a node just found");
    let value = |name: &[u8]| tree.xattr(node, name).expect("a name just listed");
    names.iter().map(|name| (text(name), value(name))).collect()
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
            let Attributes { mode, links, accessed_ns, modified_ns, .. } = found;
            let times_ns = [accessed_ns, modified_ns];
            let owner = (found.uid, found.gid);
            let xattrs = xattrs_of(tree, found.node);
            let item = match found.kind {
                Kind::Directory => {
                    directories.push((found.node, path.clone()));
                    Item::Directory { mode, owner, links, times_ns, xattrs }
                }
                Kind::Symlink => Item::Symlink {
                    owner,
                    xattrs,
                    target: tree.read_link(found.node).expect("a link"),
                },
                _ => {
                    let mut bytes = vec![0; usize::try_from(found.size_bytes).expect("small")];
                    let got = tree
                        .read(found.node, &mut bytes, 0)
                        .unwrap_or_else(|errno| panic!("{path} cannot be read: {errno:?}"));
                    assert_eq!(got, bytes.len(), "{path} is shorter than it says");
                    Item::File { mode, owner, links, times_ns, xattrs, bytes }
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
        if let Item::File { times_ns, .. } | Item::Directory { times_ns, .. } = item {
            *times_ns = [0; 2];
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
    SetTime { path: String, modified_ns: i128 },
    Punch { path: String, offset: u64, bytes: u64 },
    Link { from: String, to: String },
    Rename { from: String, to: String },
    Remove { path: String },
    RemoveDir { path: String },
    Exchange { from: String, to: String },
    SetXattr { path: String, name: &'static str, value: Vec<u8> },
    RemoveXattr { path: String, name: &'static str },
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
            // Now and then nothing.
            let bytes = random.below(3000).saturating_sub(60) as usize;
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
        _ => Doing::SetTime { path, modified_ns: any_time_ns(random) },
    }
}

/// Every other one lies behind the year 2262, where 64 bits of nanoseconds end.
fn any_time_ns(random: &mut Random) -> i128 {
    let drawn = random.below(1 << 40);
    if drawn.is_multiple_of(2) { drawn.into() } else { i128::from(drawn) + (1 << 63) }
}

const XATTRS: [&str; 6] = [
    "user.a",
    "user.b",
    "trusted.c",
    "security.capability",
    "system.posix_acl_access",
    "system.posix_acl_default",
];

/// What only a rich life has: extended attributes, and names that change places.
pub(crate) fn any_rich_doing(random: &mut Random) -> Doing {
    let path = if random.chance(30) {
        DIRECTORIES[random.below(3) as usize].into()
    } else {
        any_path(random)
    };
    let name = XATTRS[random.below(6) as usize];
    if random.chance(25) {
        return Doing::Exchange { from: path, to: any_path(random) };
    }
    match random.below(4) {
        0 => Doing::RemoveXattr { path, name },
        _ if name.starts_with("system.") => Doing::SetXattr { path, name, value: any_acl(random) },
        // Up to three times as much as a node can have.
        _ if random.chance(10) => {
            let value = vec![1; 2000 + random.below(4000) as usize];
            Doing::SetXattr { path, name, value }
        }
        _ => Doing::SetXattr { path, name, value: vec![2; random.below(300) as usize] },
    }
}

/// A list that names a user or a group, or only says what a mode does.
pub(crate) fn any_acl(random: &mut Random) -> Vec<u8> {
    let named = [2_u16, 8][random.below(2) as usize];
    let tags: &[u16] = match random.below(3) {
        0 => &[1, 4, 32],
        _ if named == 2 => &[1, 2, 4, 16, 32],
        _ => &[1, 4, 8, 16, 32],
    };
    let mut bytes = 2_u32.to_le_bytes().to_vec();
    for tag in tags {
        let id = if matches!(tag, 2 | 8) { 7 } else { u32::MAX };
        bytes.extend(tag.to_le_bytes());
        bytes.extend((random.below(8) as u16).to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    bytes
}

/// A program's life in a tree: changes, and files it has open.
pub(crate) struct Life {
    random: Random,
    /// Drawn from for what the plain life does not have, so that both make the same changes.
    more: Option<Random>,
    /// The same for what the full life does not have.
    rich: Option<Random>,
    pub(crate) opened: Vec<NodeId>,
}

impl Life {
    /// A life of changes by path alone.
    pub(crate) fn plain(seed: u64) -> Life {
        Life { random: Random::new(seed), more: None, rich: None, opened: Vec::new() }
    }

    /// With open files, nodes that the kernel forgets, owners and times.
    pub(crate) fn full(seed: u64) -> Life {
        let more = Some(Random::new(seed ^ 0xf11e));
        Life { random: Random::new(seed), more, rich: None, opened: Vec::new() }
    }

    /// With extended attributes, exchanges and files without names besides.
    pub(crate) fn rich(seed: u64) -> Life {
        Life { rich: Some(Random::new(seed ^ 0x51c4)), ..Life::full(seed) }
    }

    /// True for a full life.
    pub(crate) fn has_more(&self) -> bool {
        self.more.is_some()
    }

    /// True for a rich life.
    pub(crate) fn is_rich(&self) -> bool {
        self.rich.is_some()
    }

    /// The dice of the plain life, for those who add deaths and cuts.
    pub(crate) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    /// One change. Returns whether it was made.
    pub(crate) fn step(&mut self, tree: &DirectoryVolume) -> bool {
        let doing = any_doing(&mut self.random);
        let leaving = match &doing {
            Doing::Remove { path } | Doing::Rename { to: path, .. } => walk(tree, path).ok(),
            _ => None,
        };
        let done = apply(tree, &doing).is_ok();
        if let Some(node) = leaving.filter(|_| done) {
            self.forget_nameless(tree, node);
        }
        done
    }

    /// The kernel forgets at once what has no name any more and nobody has open. A death may come
    /// between the two.
    fn forget_nameless(&mut self, tree: &DirectoryVolume, node: NodeId) {
        let links = tree.attributes(node).map(|found| found.links);
        if links == Ok(0) && !self.opened.contains(&node) {
            tree.forget(node, u64::MAX);
        }
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

    /// What a rich life does besides, one change at the most.
    pub(crate) fn step_rich(&mut self, tree: &DirectoryVolume) {
        let Some(mut rich) = self.rich.take() else { return };
        match rich.below(8) {
            0 => self.make_unnamed(tree, &mut rich),
            1 => self.link_open(tree, &any_path(&mut rich)),
            _ => drop(apply(tree, &any_rich_doing(&mut rich)).is_ok()),
        }
        self.rich = Some(rich);
    }

    /// A file without a name, below a directory that may hand a list down.
    fn make_unnamed(&mut self, tree: &DirectoryVolume, rich: &mut Random) {
        let Ok(directory) = walk(tree, DIRECTORIES[rich.below(3) as usize]) else { return };
        let (uid, gid, rdev, target) = (0, 0, 0, &b""[..]);
        let new = NewNode { kind: Kind::File, mode: 0o666, umask: 0o22, uid, gid, rdev, target };
        let Ok(made) = tree.make_unnamed(directory, &new) else { return };
        assert_eq!(made.links, 0, "it has no name");
        tree.opened(made.node).expect("it is there");
        self.opened.push(made.node);
    }

    /// The newest open file gets a name more, or its first.
    fn link_open(&mut self, tree: &DirectoryVolume, path: &str) {
        let Some(node) = self.opened.last() else { return };
        let Ok((parent, name)) = split(tree, path) else { return };
        let _ = tree.link(*node, parent, name);
    }

    fn open(&mut self, tree: &DirectoryVolume, path: &str) {
        let Ok(node) = walk(tree, path) else { return };
        if tree.attributes(node).is_ok_and(|found| found.kind == Kind::File) {
            self.opened.push(node);
        }
    }

    fn close(&mut self, tree: &DirectoryVolume, index: usize) {
        if index >= self.opened.len() {
            return;
        }
        let node = self.opened.swap_remove(index);
        tree.attributes(node).expect("a node that was open");
        self.forget_nameless(tree, node);
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
            let new =
                NewNode { kind: *kind, mode, umask: 0, uid: 0, gid: 0, rdev: 0, target: b"x/y" };
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
            let accessed_ns = Some(modified_ns / 2);
            let modified_ns = Some(*modified_ns);
            let set = SetAttributes { accessed_ns, modified_ns, ..SetAttributes::default() };
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
        Doing::Exchange { from, to } => {
            let (from, to) = (split(tree, from)?, split(tree, to)?);
            tree.rename(from, to, RenameHow::Exchange(ONCE))
        }
        Doing::SetXattr { path, name, value } => {
            tree.set_xattr(walk(tree, path)?, name.as_bytes(), value, &SetXattr::default())
        }
        Doing::RemoveXattr { path, name } => {
            tree.remove_xattr(walk(tree, path)?, name.as_bytes(), ONCE)
        }
    }
}
