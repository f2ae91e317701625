//! `holdfast disk ...`, as data.
//!
//! Promise: every command says what becomes of what is on the disk.
//! Never: acts; `commands::disk` does.

use clap::Subcommand;

/// `holdfast disk ...`
#[derive(Debug, Subcommand)]
pub(crate) enum DiskCommand {
    /// Make a disk of zeros in durable memory. All its memory is taken at once.
    Make {
        /// The disk, as named in the configuration.
        name: String,
    },
    /// Give a disk's memory back. What is on it is gone for good.
    Remove {
        /// The disk, as named in the configuration.
        name: String,
    },
}
