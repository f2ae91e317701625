//! `holdfast region ...`, as data.
//!
//! Promise: every flag says what it does.
//! Never: acts; `commands::region` does.

use clap::Subcommand;
use std::path::PathBuf;

/// `holdfast region ...`
#[derive(Debug, Subcommand)]
pub(crate) enum RegionCommand {
    /// Find out whether a restart of the system spares reserved memory.
    ///
    /// The first call writes a pattern. Then restart the system, as it would fail: by a panic. This
    /// command never does that. The second call looks which bytes are as they were written, and
    /// keeps what it found beside the regions, as holdfast-proof: volumes whose regions are in this
    /// folder acknowledge from memory what must survive `os` only with a proof that every byte was
    /// kept, under the firmware of today. Ends with exit code 3 if bytes were lost.
    Probe {
        /// The folder of the regions: on a file system that is mounted with `-o dax`.
        #[arg(long, value_name = "DIR")]
        path: PathBuf,
        /// How much is written, a multiple of 4KiB; it is given back when it was looked at.
        #[arg(long, value_name = "SIZE", default_value = "16MiB")]
        #[arg(value_parser = holdfast_config::sizes::parse)]
        size: u64,
    },
}
