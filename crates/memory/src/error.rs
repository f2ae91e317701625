//! Why a region could not be made or attached, and what to do about it.
//!
//! Promise: another version, damage, a living server and a failed system call are told apart.
//! Never: means that anything in an existing region was changed.

use std::fmt;
use std::io;
use std::path::PathBuf;

/// Why [`crate::Region::create`] made nothing.
#[derive(Debug)]
#[non_exhaustive]
pub enum CreateError {
    /// There is a region at the path, or one is being made. Attach it, or remove it first.
    Exists {
        /// Where.
        path: PathBuf,
    },
    /// The path holds something that is no region. Choose another path, or wipe it by hand.
    Occupied {
        /// Where.
        path: PathBuf,
    },
    /// The device is too small for the region asked for.
    TooSmall {
        /// Bytes the device has.
        have: u64,
        /// Bytes the region needs.
        need: u64,
    },
    /// The path does not lie on a mounted hugetlbfs. Mount one, or choose another medium.
    NotHugeTlb {
        /// Where.
        path: PathBuf,
    },
    /// Another user owns what is at the path, can write it, or could exchange it. Remove that, or
    /// choose a path in a folder that only you can write.
    Exposed {
        /// Which part of the path, and why.
        why: String,
    },
    /// The region asked for cannot exist.
    BadSpec(&'static str),
    /// The system refused; nothing is left behind.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

/// Why [`crate::Region::attach`] or [`crate::Region::observe`] gave no region.
#[derive(Debug)]
#[non_exhaustive]
pub enum AttachError {
    /// There is none: no file, or one whose making never finished. Create it.
    Missing,
    /// Another process serves it. Wait for it to end, or stop it.
    InUse {
        /// The serving process; 0 if it has not said yet.
        pid: u32,
    },
    /// Another host has attached it in a newer term than the caller's. It is that host's now.
    NewerTerm {
        /// That host's term.
        found: u64,
    },
    /// It is whole, and of a version this program does not know. Use the program that made it.
    OtherVersion {
        /// The version found.
        found: u32,
        /// The version this program knows.
        known: u32,
    },
    /// It lives on another medium than the one asked for. Correct the configuration.
    OtherMedium {
        /// The medium it was made on.
        found: &'static str,
    },
    /// It holds something else than was asked for. Correct the configuration.
    OtherContent {
        /// What it holds, by the name its maker gave it; zeros for the ring of a log.
        found: [u8; 8],
    },
    /// The system was started again since somebody used it, and its medium does not outlive that:
    /// what is in it comes from several moments. Remove it and create it anew.
    OtherBoot,
    /// Another user owns what is at the path, can write it, or could exchange it. Remove that, or
    /// choose a path in a folder that only you can write.
    Exposed {
        /// Which part of the path, and why.
        why: String,
    },
    /// Something else has the name of its file: what that was may be whole elsewhere. Put it back.
    InTheWay {
        /// What has it.
        what: &'static str,
    },
    /// A field does not hold what it must. Rescue what [`crate::Observed`] can still read.
    Damaged {
        /// The field, by its name in FORMAT.md.
        field: &'static str,
        /// Where it lies, in bytes from the start of the region.
        offset: u64,
    },
    /// The system refused.
    Io {
        /// What was being done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },
}

impl fmt::Display for CreateError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exists { path } => write!(
                out,
                "{} already holds a region: attach it, or remove it first",
                path.display()
            ),
            Self::Occupied { path } => write!(
                out,
                "{} holds something that is no region: choose another path, or wipe it first",
                path.display()
            ),
            Self::TooSmall { have, need } => {
                write!(out, "the device has {have} bytes, the region needs {need}")
            }
            Self::NotHugeTlb { path } => {
                write!(out, "{} does not lie on a mounted hugetlbfs", path.display())
            }
            Self::Exposed { why } => out.write_str(why),
            Self::BadSpec(why) => write!(out, "no such region can exist: {why}"),
            Self::Io { doing, source } => write!(out, "cannot {doing}: {source}"),
        }
    }
}

impl fmt::Display for AttachError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing => write!(out, "there is no region: create it"),
            Self::InUse { pid } => write!(out, "process {pid} serves the region"),
            Self::NewerTerm { found } => {
                write!(out, "stale term: another host has the region, in term {found}")
            }
            Self::OtherVersion { found, known } => {
                write!(out, "the region has format version {found}, this program knows {known}")
            }
            Self::OtherMedium { found } => {
                write!(out, "the region was made on medium {found}: correct the configuration")
            }
            Self::OtherContent { found } => write!(
                out,
                "the region holds {}: correct the configuration",
                if *found == [0; 8] {
                    "the ring of a log".into()
                } else {
                    found.escape_ascii().to_string()
                }
            ),
            Self::OtherBoot => out.write_str(
                "the system was started again since the region was used, which its medium does not \
                 outlive: remove it and create it anew",
            ),
            Self::Exposed { why } => out.write_str(why),
            Self::InTheWay { what } => {
                write!(out, "a {what} has the name of the region's file")
            }
            Self::Damaged { field, offset } => {
                write!(out, "the region is damaged: {field} at byte {offset}")
            }
            Self::Io { doing, source } => write!(out, "cannot {doing}: {source}"),
        }
    }
}

impl std::error::Error for CreateError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

impl std::error::Error for AttachError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
