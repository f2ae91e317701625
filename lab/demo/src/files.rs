//! Trees of files, compared byte for byte, and synced.
//!
//! Promise: two trees differ if a name, a byte, a mode or an owner does.
//! Never: changes a file.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A tree of files as a program sees it: path, and what would differ if a byte did.
pub(super) type Tree = BTreeMap<PathBuf, FileDigest>;

/// One file or directory of a [`Tree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileDigest {
    mode: u32,
    uid: u32,
    bytes: u64,
    hash: u64,
}

/// Reads every file below `root`.
pub(super) fn tree(root: &Path) -> io::Result<Tree> {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata()?;
            let (mut bytes, mut hash) = (0, 0);
            if metadata.is_dir() {
                folders.push(path.clone());
            } else {
                (bytes, hash) = (metadata.len(), hash_of(&path)?);
            }
            let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let (mode, uid) = (metadata.mode(), metadata.uid());
            found.insert(name, FileDigest { mode, uid, bytes, hash });
        }
    }
    Ok(found)
}

fn hash_of(path: &Path) -> io::Result<u64> {
    let (mut file, mut hasher) = (fs::File::open(path)?, DefaultHasher::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            bytes => hasher.write(&buffer[..bytes]),
        }
    }
}

/// Syncs every file and directory below `root`.
pub(super) fn sync(root: &Path) -> io::Result<()> {
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        fs::File::open(&folder)?.sync_all()?;
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                folders.push(entry.path());
            } else if kind.is_file() {
                fs::File::open(entry.path())?.sync_all()?;
            }
        }
    }
    Ok(())
}

/// Names that differ between two trees.
pub(super) fn differences(one: &Tree, other: &Tree) -> Vec<PathBuf> {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests;
