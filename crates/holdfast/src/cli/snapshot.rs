//! `holdfast snapshot ...`, as data.
//!
//! Promise: every command says what becomes of what is kept.
//! Never: acts; `commands::snapshot` does.

use clap::Subcommand;

/// `holdfast snapshot ...`
#[derive(Debug, Subcommand)]
pub(crate) enum SnapshotCommand {
    /// Make room for snapshots in durable memory. All of it is taken at once.
    Make {
        /// The service, as named in the configuration.
        service: String,
    },
    /// Tell of the snapshots that a service has.
    List {
        /// The service, as named in the configuration.
        service: String,
    },
    /// Remove a snapshot, or all of a service with its memory.
    Remove {
        /// SERVICE/NAME for one snapshot; SERVICE for all of them, while no keeper runs.
        name: String,
    },
}
