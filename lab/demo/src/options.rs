//! Options that all demonstrations share.
//!
//! Promise: the same words mean the same with every database.
//! Never: acts.

use std::path::PathBuf;

/// Options of `holdfast-demo ...`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How often to kill, the database and the front end in turn.
    #[arg(long, default_value_t = 10)]
    pub(super) kills: u32,
    /// Seconds of each timed run.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) seconds: u32,
    /// How often each setting is measured; the figures are medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) repetitions: u32,
    /// Folder for figures (.json), plot (.svg) and report (.html), named after the demonstration.
    #[arg(long, default_value = "holdfast-demo", value_name = "DIR")]
    pub(super) out: PathBuf,
    /// One short repetition and two kills: figures not to be quoted.
    #[arg(long, conflicts_with_all = ["kills", "seconds", "repetitions"])]
    pub(super) quick: bool,
    /// Draw the moments of the kills from this seed; each run prints the one it used.
    #[arg(long)]
    pub(super) seed: Option<u64>,
    /// Print the figures as JSON instead of a table.
    #[arg(long)]
    pub(super) json: bool,
    /// The command to show [default: `holdfast` beside this program].
    #[arg(long, value_name = "PATH")]
    pub(super) holdfast: Option<PathBuf>,
    /// The modelled disk [default: `holdfast-slowdisk` beside this program].
    #[arg(long, value_name = "PATH")]
    pub(super) slow_disk: Option<PathBuf>,
}

impl Options {
    /// The same options with what `--quick` stands for filled in.
    pub(super) fn resolved(mut self) -> Options {
        if self.quick {
            (self.kills, self.seconds, self.repetitions) = (2, 2, 1);
        }
        self
    }

    /// The seed asked for, or one of this process.
    pub(super) fn seed(&self) -> u64 {
        self.seed.unwrap_or_else(|| u64::from(std::process::id()))
    }
}
