//! What a volume is opened from: its home, its log, and what is said where one of them fails.
//!
//! Promise: home and log are taken by one process at a time; every problem names the volume and
//! says what to do.
//! Never: opens a log.

use holdfast_attach::bond::Bond;
use holdfast_attach::foreseen::Decided;
use holdfast_attach::home::Home;
use holdfast_attach::homes::refuse_strange;
use holdfast_attach::logs::{THE_DISK, catalogue_problem, open_problem, take_log_of};
use holdfast_attach::stuck::state_of;
use holdfast_attach::users::refuse_used;
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::claims::Storage;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::shortage::AGAIN;
use holdfast_config::{VolumeConfig, Way};
use holdfast_io::Files;
use holdfast_io::real::{RealFiles, RootNotes};
use holdfast_keeper::orders::Server;
use holdfast_log::{CommitError, OpenError, ReadError};
use holdfast_machine::advice::cure;
use holdfast_machine::lock::{take_directory, take_home};
use holdfast_power::lease::Page;
use holdfast_volume::{CleanError, VolumeError};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

/// Where a volume's log is.
pub(super) enum Place {
    /// In this directory, for this process.
    Here(Arc<dyn Files>),
    /// With the server.
    Server(Server),
}

/// What a volume is opened from.
pub struct Parts {
    pub(super) name: String,
    pub(super) volume: VolumeConfig,
    pub(super) home: Home,
    pub(super) log: Place,
    /// What home and log are on. Nobody is refused for it who only gives back what is there.
    pub(super) storage: Storage,
    /// The keeper's term, if other hosts stand by.
    pub(super) term: Option<u64>,
    /// Where the keeper says until when memory may acknowledge, if it ever may for a while only.
    pub(super) lease: Option<Page>,
}

impl Parts {
    /// Opens and locks the directories of a volume that no keeper has, whatever its way.
    pub(super) fn take(name: &str, volume: &VolumeConfig) -> Outcome<Parts> {
        let home = take_home(&volume.home)?;
        refuse_strange(&format!("opening volume {name}"), (&volume.home, &home))?;
        let log = RealFiles::from_fd(take_log_of(name, volume)?);
        let decided = Decided::look(name, (volume, &home), &log, Way::Direct)?;
        decided.note(name, (volume, &home), &log)?;
        Parts::of(name, volume, (home, log))
    }

    /// [`Self::take`] of a volume whose log alone is to be changed, and whose home is its own.
    pub(super) fn take_log(name: &str, volume: &VolumeConfig) -> Outcome<Parts> {
        let home = take_home(&volume.home)?;
        refuse_strange(&format!("opening volume {name}"), (&volume.home, &home))?;
        let log = RealFiles::from_fd(take_log_of(name, volume)?);
        let bond = Bond::look(name, (volume, &home), &log)?;
        bond.map_or(Ok(()), |bond| bond.check())?;
        Parts::of(name, volume, (home, log))
    }

    /// Opens and locks the directories of a volume whose home is to stay as it is.
    pub fn take_unbound(name: &str, volume: &VolumeConfig) -> Outcome<Parts> {
        let home = take_home(&volume.home)?;
        let log = RealFiles::from_fd(take_directory("log", &volume.log)?);
        Parts::of(name, volume, (home, log))
    }

    fn of(name: &str, volume: &VolumeConfig, taken: (OwnedFd, RealFiles)) -> Outcome<Parts> {
        let (home, log) = taken;
        let home = Home::taken(&volume.home, home)?;
        let (name, volume, storage) = (name.to_owned(), volume.clone(), Storage::Disk);
        let (log, term, lease) = (Place::Here(Arc::new(log)), None, None);
        Ok(Parts { name, volume, home, log, storage, term, lease })
    }

    /// Refuses a home that a program came to use after the keeper had looked. By now it is barred,
    /// and whatever is mounted over it is there, so nobody comes any more.
    pub(super) fn refuse_used(&self) -> Outcome<()> {
        let home = self.home.wearer();
        refuse_used(&self.what("attaching"), (&self.volume.home, home.as_fd()), home.shown())
    }

    /// A log that could not take more. One that failed for good meets every further attempt with
    /// the same failure, until somebody has seen to its disk.
    pub fn commit_problem(&self, doing: &str, error: &CommitError) -> Problem {
        let name = &self.name;
        let (exit, remedy) = match error {
            CommitError::Poisoned(_) => (
                Exit::Damaged,
                format!(
                    "the memory is kept; see to the log's disk, then `holdfast volume mend \
                     {name}` and `holdfast mount {name}`"
                ),
            ),
            CommitError::Unprepared(error) => (
                Exit::Failed,
                format!("the memory is kept; {}, then mount again", cure(error, THE_DISK)),
            ),
            _ => (Exit::Failed, "the memory is kept; mount again".to_owned()),
        };
        Problem::new(exit, self.what(doing), error, remedy)
    }

    pub(crate) fn volume_problem(&self, error: VolumeError) -> Problem {
        match error {
            VolumeError::Log(error) => self.log_problem(&error),
            VolumeError::Clean(CleanError::Log(error)) => self.commit_problem("opening", &error),
            VolumeError::Clean(CleanError::Read(error @ ReadError::Damaged(_))) => {
                self.damage_problem("opening", &error)
            }
            VolumeError::Record(..) => Problem::new(
                Exit::Damaged,
                self.what("opening"),
                error,
                "open it with the version that wrote it",
            ),
            VolumeError::Unfit(_) => {
                let remedy = "nothing is lost; name a home on ext4, XFS, Btrfs, F2FS or tmpfs";
                Problem::new(Exit::Usage, self.what("opening"), error, remedy)
            }
            VolumeError::Clean(CleanError::Home { error: ref why, .. }) if is_full(why) => {
                let remedy = format!("{AGAIN}, and nothing is lost: make room in the home");
                let remedy = self.or_skip(&remedy);
                let problem = Problem::new(Exit::Failed, self.what("opening"), error, remedy);
                Problem { passes: true, ..problem }
            }
            error => {
                let remedy = "nothing is lost; mend the home's disk, then mount again";
                Problem::new(Exit::Failed, self.what("opening"), error, self.or_skip(remedy))
            }
        }
    }

    /// What memory has lost, and the log's disk does not have either.
    pub(super) fn damage_problem(&self, doing: &str, error: &ReadError) -> Problem {
        let remedy = format!(
            "what is damaged in memory and on the log's disk is lost, all else is kept: `holdfast \
             volume check {}` says where, and what to do",
            self.name
        );
        Problem::new(Exit::Damaged, self.what(doing), error, remedy)
    }

    /// A remedy, with the one that gives up a change that the home refuses, if it is stuck at one.
    fn or_skip(&self, remedy: &str) -> String {
        match state_of(&self.volume.log) {
            (Some(stuck), _) => format!(
                "{remedy}; or give up the change that it is stuck at ({stuck}), which is kept \
                 aside: holdfast volume skip {}",
                self.name
            ),
            (None, _) => remedy.to_owned(),
        }
    }

    /// Why its log cannot be opened, and what to do.
    pub fn log_problem(&self, error: &OpenError) -> Problem {
        let (service, what) = (self.service(), self.what("opening the log of"));
        let medium = self.volume.medium();
        let about = match &self.log {
            Place::Here(log) => catalogue_problem((&what, &service), &**log, &medium),
            Place::Server(_) => None,
        };
        about.unwrap_or_else(|| open_problem(&service, error))
    }

    /// The name of its log as a service: `volume/NAME`.
    pub fn service(&self) -> String {
        format!("{VOLUME_PREFIX}{}", self.name)
    }

    pub(super) fn what(&self, doing: &str) -> String {
        format!("{doing} volume {}", self.name)
    }
}

/// Whether room, or a quota, is all that lacks.
pub(crate) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
