//! What an attachment would find of a log, its memory and its home, and what it would refuse.
//!
//! An attachment looks, decides, and only then notes that it is there: what is refused is as it
//! was, and once the cause is put right it is where it was before.
//!
//! Promise: everything that says so, or acts on it, asks here, and the answer is what an attachment
//! comes to: it is refused as that would be. Nobody binds a home to its log who has not asked.
//! Never: changes anything before it has decided.

use crate::bond::{Bond, Ends, Loss, RegionNote, choose};
use crate::home::Home;
use crate::logs::{catalogue_problem, open_problem, refuse_too_small};
use crate::observe::{observe_left, refuse_poisoned, region_problem};
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{MemoryConfig, VolumeConfig, Way};
use holdfast_io::Files;
use holdfast_log::{Foreseen, Log, LogConfig, OpenError};
use holdfast_machine::holders::is_mapped_by;
use holdfast_memory::{AttachError, Observed, Region};
use holdfast_volume::words::{HOME_TOUCHED_NS, WINDOW_END};
use holdfast_volume::{Left, Told, Unapplied};
use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

/// How many changed paths are named.
pub const SHOWN_MAX: usize = 5;

/// What there is.
pub struct Seen {
    /// The region, if there is one.
    pub region: Option<Observed>,
    /// What one that is gone may have cost.
    pub loss: Option<Loss>,
    /// What the log goes on from.
    pub log: Foreseen,
}

/// Looks at the memory and the log of `service`, `volume/NAME` or `log/NAME`. `say` makes a problem
/// of what a log is not opened for.
pub fn foresee(
    service: &str,
    memory: &MemoryConfig,
    (files, config): (&dyn Files, &LogConfig),
    say: &dyn Fn(&OpenError) -> Problem,
) -> Outcome<Seen> {
    let medium = memory.medium();
    let (region, loss) = match Region::observe_to_attach(&medium) {
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
pub fn refuse(service: &str, memory: &MemoryConfig, log: (&dyn Files, &LogConfig)) -> Outcome<()> {
    foresee(service, memory, log, &|error| open_problem(service, error)).map(drop)
}

/// [`foresee`], for who is about to take the memory, in `term` if hosts have terms. What another
/// host or a process still serves moves while it is looked at, and is refused for that.
pub fn refuse_to_take(
    service: &str,
    (memory, term): (&MemoryConfig, Option<u64>),
    log: (&dyn Files, &LogConfig),
    say: &dyn Fn(&OpenError) -> Problem,
) -> Outcome<Seen> {
    foresee(service, memory, log, say).map_err(|problem| {
        let medium = memory.medium();
        let Ok(seen) = Region::observe(&medium) else { return problem };
        let (found, pid) = (seen.term(), seen.server_pid());
        let error = match term.is_some_and(|term| found > term) {
            true => AttachError::NewerTerm { found },
            false if pid != 0 && is_mapped_by(&medium, pid) => AttachError::InUse { pid },
            false => return problem,
        };
        region_problem("attaching", (service, &medium), &error)
    })
}

/// That nothing refuses an attachment, as far as can be told before it.
pub struct Decided {
    /// Where the log was found to begin and to end.
    ends: Ends,
}

impl Decided {
    /// Looks at all that an attachment may be refused for: the home, whose it is and whether
    /// somebody changed it, the log, and its memory. Nothing is changed. By the queue the server
    /// has the log and its memory, and has refused them already if need be.
    pub fn look(
        name: &str,
        (volume, home): (&VolumeConfig, &OwnedFd),
        files: &dyn Files,
        way: Way,
    ) -> Outcome<Decided> {
        let bond = Bond::look(name, (volume, home), files)?;
        if let Some(bond) = &bond {
            refuse_changed(bond, name, (volume, home), files)?;
        }
        let ends = match way {
            Way::Direct => ends_of(name, volume, files)?,
            Way::Queue => match Region::observe(&volume.medium()).map(|it| it.marks()) {
                Ok(marks) => Ends { released: Some(marks.released), durable: marks.durable },
                Err(_) => Ends { released: None, durable: u64::MAX },
            },
        };
        bond.map_or(Ok(()), |bond| bond.check_ends(&ends))?;
        Ok(Decided { ends })
    }

    /// Says in log and home that they are brought together once more. A log that is not there, or
    /// damaged, is the business of whoever opens it.
    pub fn note(
        &self,
        name: &str,
        home: (&VolumeConfig, &OwnedFd),
        files: &dyn Files,
    ) -> Outcome<()> {
        let bond = Bond::look(name, home, files)?;
        bond.map_or(Ok(()), |bond| bond.bind(&self.ends))
    }
}

/// Refuses a home that is not the log's as it was left.
fn refuse_changed(
    bond: &Bond<'_>,
    name: &str,
    (volume, home): (&VolumeConfig, &OwnedFd),
    files: &dyn Files,
) -> Outcome<()> {
    let changed = match bond.told() {
        Some(told) => changed_by_others(volume, home, files, told)?,
        None => Vec::new(),
    };
    bond.check_saying(&paths_text(&changed, SHOWN_MAX))?;
    match changed.is_empty() {
        true => Ok(()),
        false => {
            let what = format!("opening volume {name}");
            Err(changed_home(&what, name, volume, &changed, SHOWN_MAX))
        }
    }
}

/// Where the log begins and ends that an attachment would open.
fn ends_of(name: &str, volume: &VolumeConfig, files: &dyn Files) -> Outcome<Ends> {
    let (service, medium) = (format!("{VOLUME_PREFIX}{name}"), volume.medium());
    let what = format!("opening the log of volume {name}");
    // What does not even give its files back any more failed before, for the same reason.
    let failed = refuse_poisoned(&what, name, &medium).err();
    let say = |error: &OpenError| {
        let failed = failed.clone().filter(|_| matches!(error, OpenError::Io(_)));
        let about = failed.or_else(|| catalogue_problem((&what, &service), files, &medium));
        about.unwrap_or_else(|| open_problem(&service, error))
    };
    let log = (files, &volume.log_config());
    let seen = refuse_to_take(&service, (&volume.memory, None), log, &say)?;
    Ok(Ends::of(&seen.log))
}

/// What an attachment would find changed. A log or memory that cannot be read is looked at later.
pub fn changed_by_others(
    volume: &VolumeConfig,
    home: &OwnedFd,
    files: &dyn Files,
    told: Told,
) -> Outcome<Vec<PathBuf>> {
    let failed = |error: &dyn Display| {
        let what = format!("looking at home {}", volume.home.display());
        Problem::new(Exit::Failed, what, error, "mend its disk, then try again")
    };
    let taken = home.try_clone().map_err(|error| failed(&error))?;
    let taken = Home::taken(&volume.home, taken)?;
    // Memory that nobody can look into is refused for itself.
    let Ok(seen) = observe_left(&volume.medium()) else { return Ok(Vec::new()) };
    let (mut unapplied, mut fault) = (Unapplied::default(), None);
    let shown = Log::unapplied(files, seen.as_ref(), &mut |frame| {
        fault = fault.take().or(unapplied.take(frame).err());
    });
    let Ok(released) = shown else { return Ok(Vec::new()) };
    fault.map_or(Ok(()), |fault| Err(failed(&fault)))?;
    let word = |index| seen.as_ref().map_or(0, |seen| seen.word(index));
    let (touched_ns, window_end) = (word(HOME_TOUCHED_NS), word(WINDOW_END));
    let left = Left { released, touched_ns, window_end };
    let changed = unapplied.changed_by_others(&*taken.files(), left, told);
    changed.map_err(|error| failed(&error))
}

/// Refuses a home in which somebody changed what the log is about to change.
pub fn changed_home(
    what: &str,
    name: &str,
    volume: &VolumeConfig,
    changed: &[PathBuf],
    shown_max: usize,
) -> Problem {
    let (home, shown) = (volume.home.display(), paths_text(changed, shown_max));
    let why = format!(
        "somebody changed {home} since the log last wrote to it, and the log has other changes: \
         {shown}"
    );
    Problem::new(Exit::Damaged, what, why, choose(name))
}

/// Names paths, as many as this.
pub fn paths_text(paths: &[PathBuf], shown_max: usize) -> String {
    let shown: Vec<_> = paths.iter().take(shown_max).map(|path| format!("{path:?}")).collect();
    let more = paths.len().saturating_sub(shown_max);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    shown.join(", ") + &more
}
