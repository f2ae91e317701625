//! What an attachment would find of a log and its memory, and what it would refuse.
//!
//! Promise: everything that says so, or acts on it, asks here, and the answer is what an attachment
//! comes to: it is refused as that would be.
//! Never: changes anything, or looks at a home.

use super::logs::{open_problem, refuse_too_small};
use crate::bond::{Loss, RegionNote};
use crate::config::MemoryConfig;
use crate::observe::region_problem;
use crate::problem::Outcome;
use holdfast_io::Files;
use holdfast_log::{Foreseen, Log, LogConfig, OpenError};
use holdfast_memory::{AttachError, Observed, Region};

/// What there is.
pub(super) struct Seen {
    /// The region, if there is one.
    pub(super) region: Option<Observed>,
    /// What one that is gone may have cost.
    pub(super) loss: Option<Loss>,
    /// What the log goes on from.
    pub(super) log: Foreseen,
}

/// Looks at the memory and the log of `service`, `volume/NAME` or `log/NAME`. `say` makes a problem
/// of what a log is not opened for.
pub(super) fn foresee(
    service: &str,
    memory: &MemoryConfig,
    (files, config): (&dyn Files, &LogConfig),
    say: &dyn Fn(&OpenError) -> crate::problem::Problem,
) -> Outcome<Seen> {
    let medium = memory.medium();
    let (region, loss) = match Region::observe(&medium) {
        Ok(seen) => (Some(seen), None),
        Err(AttachError::Missing | AttachError::OtherBoot) => {
            (None, RegionNote::without(service, memory, files)?)
        }
        Err(error) => return Err(region_problem("looking at", (service, &medium), &error)),
    };
    let log = Log::foresee(files, region.as_ref(), config).map_err(|error| say(&error))?;
    if log.ring.is_none() {
        refuse_too_small(service, memory, files)?;
    }
    Ok(Seen { region, loss, log })
}

/// [`foresee`], refused in the words of an attachment.
pub(super) fn refuse(
    service: &str,
    memory: &MemoryConfig,
    log: (&dyn Files, &LogConfig),
) -> Outcome<()> {
    foresee(service, memory, log, &|error| open_problem(service, error)).map(drop)
}
