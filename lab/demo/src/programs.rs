//! The programs that a demonstration shows, and runs on.
//!
//! Promise: they are found before anything is done, or it is said how to get them.
//! Never: starts one.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use super::error::{DemoError, During};

/// The command.
const HOLDFAST: &str = "holdfast";
/// The modelled disk.
const SLOW_DISK: &str = "holdfast-slowdisk";

/// Where they are, without links: by these names the sweep knows them.
#[derive(Clone, Debug)]
pub(super) struct Programs {
    pub(super) holdfast: PathBuf,
    pub(super) slow_disk: PathBuf,
    /// This program, which plays other parts too, under other subcommands.
    pub(super) this: PathBuf,
}

impl Programs {
    /// Those that were named; what was not stands beside this program.
    pub(super) fn find(
        holdfast: Option<&Path>,
        slow_disk: Option<&Path>,
    ) -> Result<Programs, DemoError> {
        let this = std::env::current_exe().during(|| "finding this program".into())?;
        Ok(Programs {
            holdfast: found(&this, HOLDFAST, holdfast, "--holdfast")?,
            slow_disk: found(&this, SLOW_DISK, slow_disk, "--slow-disk")?,
            this,
        })
    }

    /// What their processes are known by.
    pub(super) fn names(&self) -> impl Iterator<Item = &OsStr> {
        [&self.holdfast, &self.slow_disk, &self.this].into_iter().filter_map(|it| it.file_name())
    }
}

/// The program of a package, without links on its way: the one that an option named, or the one
/// beside this program.
fn found(
    this: &Path,
    package: &str,
    named: Option<&Path>,
    option: &str,
) -> Result<PathBuf, DemoError> {
    let path = named.map_or_else(|| this.with_file_name(package), Path::to_owned);
    path.canonicalize().map_err(|error| {
        let cause = format!(
            "{error}; build it: `cargo build --release --package {package}`, or name another with \
             {option}"
        );
        DemoError::new(format!("looking for {}", path.display()), cause)
    })
}

#[cfg(test)]
mod tests;
