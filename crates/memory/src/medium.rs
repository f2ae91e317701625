//! What a region is made of, and what it therefore survives.
//!
//! Promise: [`Medium::survives`] never claims more than the medium keeps when it is what it says.
//! Never: opens anything; `backing` does.

use std::path::{Path, PathBuf};

/// What a region is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Medium {
    /// Memory of this process alone. Dies with it.
    Private,
    /// A file on a tmpfs such as /dev/shm: memory that belongs to no process.
    Shm {
        /// The file.
        path: PathBuf,
    },
    /// A file on a hugetlbfs: like `Shm`, in huge pages set aside beforehand.
    HugeTlb {
        /// The file.
        path: PathBuf,
    },
    /// Persistent memory: a file on a DAX file system, or a device that is mapped without one
    /// (/dev/daxN.M), which several hosts may have. The kernel maps a block device through its
    /// page cache, so that a /dev/pmemN is no more than a `File`.
    Pmem {
        /// The file or device.
        path: PathBuf,
    },
    /// A file on any file system, through the page cache.
    File {
        /// The file.
        path: PathBuf,
    },
}

/// Which deaths the contents of a region outlive. None outlives a power failure by itself, except
/// persistent memory, whose power domain no mapping can tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MediumSurvival {
    /// The serving process may die.
    pub process: bool,
    /// The operating system may crash and start again.
    pub os: bool,
}

impl Medium {
    /// What this medium keeps if it is what it is called.
    ///
    /// For `Pmem` only the mapping can tell (see [`crate::Region::survives`]): a plain file or a
    /// device mapped through the page cache does not outlive the operating system.
    #[must_use]
    pub fn survives(&self) -> MediumSurvival {
        MediumSurvival {
            process: !matches!(self, Medium::Private),
            os: matches!(self, Medium::Pmem { .. }),
        }
    }

    /// The medium's name in configuration, messages and FORMAT.md.
    #[must_use]
    pub fn name(&self) -> &'static str {
        name_of(self.tag()).expect("every medium of ours has a name")
    }

    /// Where it lies; none for `Private`.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Medium::Private => None,
            Medium::Shm { path }
            | Medium::HugeTlb { path }
            | Medium::Pmem { path }
            | Medium::File { path } => Some(path),
        }
    }

    /// The same medium with its region at another path; memory without one stays as it is.
    #[must_use]
    pub fn at(&self, path: PathBuf) -> Medium {
        match self {
            Medium::Private => Medium::Private,
            Medium::Shm { .. } => Medium::Shm { path },
            Medium::HugeTlb { .. } => Medium::HugeTlb { path },
            Medium::Pmem { .. } => Medium::Pmem { path },
            Medium::File { .. } => Medium::File { path },
        }
    }

    /// The medium's number in the superblock.
    pub(crate) fn tag(&self) -> u32 {
        match self {
            Medium::Private => 1,
            Medium::Shm { .. } => 2,
            Medium::HugeTlb { .. } => 3,
            Medium::Pmem { .. } => 4,
            Medium::File { .. } => 5,
        }
    }
}

/// The name of the medium with number `tag`, if there is one.
pub(crate) fn name_of(tag: u32) -> Option<&'static str> {
    match tag {
        1 => Some("private"),
        2 => Some("shm"),
        3 => Some("hugetlb"),
        4 => Some("pmem"),
        5 => Some("file"),
        _ => None,
    }
}
