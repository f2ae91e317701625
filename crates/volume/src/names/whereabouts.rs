//! Which node the home has at a path, as far as this process knows.
//!
//! Promise: what is told has the path at this moment of cleaning.
//! Never: changes what is known, or the home.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use holdfast_io::{Files, Metadata};

use super::places::LISTED_MAX;
use super::{Names, Place, inode_of};
use holdfast_io::tree::{NodeId, ROOT};

impl Names {
    /// True if another node than this has come home at the path, and is what was found there.
    pub(crate) fn is_taken_home(
        &self,
        home: &dyn Files,
        node: NodeId,
        path: &Path,
        found: &Metadata,
    ) -> bool {
        let other = self.by_home_inode.get(&inode_of(found)).filter(|other| **other != node);
        other.is_some_and(|other| self.is_home_at(home, *other, path))
    }

    /// True if the home has the node at the path, as far as this process knows.
    pub(crate) fn is_home_at(&self, home: &dyn Files, node: NodeId, path: &Path) -> bool {
        self.home_place(home, node, path).is_some()
    }

    /// Which of the places that the home has the node at the path is, as far as this process knows.
    /// Where a file has one name in very many directories, the directory's inode tells which one
    /// that is, nearly always.
    pub(super) fn home_place(&self, home: &dyn Files, node: NodeId, path: &Path) -> Option<Place> {
        let places = &self.entry(node)?.home;
        let name = path.file_name()?.as_bytes();
        let is_there = |place: &&Place| self.home_path_of(place).is_some_and(|at| at == path);
        if places.named(name).nth(LISTED_MAX).is_some()
            && let Some(parent) = self.directory_at(home, path.parent()?)
        {
            let likely = Place { parent, name: name.into() };
            if places.contains(&likely) && is_there(&&likely) {
                return Some(likely);
            }
        }
        places.named(name).find(is_there).cloned()
    }

    /// The directory that most likely stands at a path of the home.
    fn directory_at(&self, home: &dyn Files, path: &Path) -> Option<NodeId> {
        if path.as_os_str().is_empty() {
            return Some(ROOT);
        }
        self.by_home_inode.get(&inode_of(&home.metadata(path).ok()?)).copied()
    }
}
