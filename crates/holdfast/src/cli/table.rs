//! `holdfast table ...`, as data.
//!
//! Promise: every command says what becomes of what there is.
//! Never: acts; `commands::table` does.

use clap::Subcommand;

/// `holdfast table ...`
#[derive(Debug, Subcommand)]
pub(crate) enum TableCommand {
    /// Make the store for tables, with nothing in it. What is there already stays as it is.
    Make {
        /// The tables, as named in the configuration.
        name: String,
    },
    /// Compare all rows with all indexes, while nobody serves them.
    Check {
        /// The tables, as named in the configuration.
        name: String,
    },
}
