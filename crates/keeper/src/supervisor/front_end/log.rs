//! The log and the home of a volume, while they are taken away.
//!
//! Promise: a home that was moved is told with its place; one whose barrier somebody took away is
//! barred again, and that is told until the volume is attached anew; a log whose files were removed
//! is there again before the next front end looks for it, and the home is noted beside it; the
//! front end that wrote into files without a name is replaced.
//! Never: touches a log that was only moved, or that nobody has served yet.

use super::state::{Front, Supervisor};
use crate::supervisor::life::known::State;
use crate::supervisor::log_place::{Step, reason};
use holdfast_attach::barrier::{Opened, bar_again, has_barrier, is_open};
use holdfast_attach::bond::has_note;
use holdfast_attach::whereabouts::{Home, Lost, home_elsewhere};
use holdfast_client::protocol::VOLUME_PREFIX;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{VolumeConfig, Way};
use holdfast_io::private;
use holdfast_io::real::RealFiles;
use holdfast_machine::bounded;
use std::os::fd::OwnedFd;
use std::path::Path;

impl Supervisor {
    /// Tells where the home is if somebody moved it: what comes home goes there.
    pub(super) fn look_at_home(&self) {
        let (Some(volume), Some(home)) = (&self.orders.volume, &self.held.home) else { return };
        let elsewhere = home_elsewhere(home, &volume.home);
        let was_elsewhere = self.watched.lock().of.home_elsewhere.is_some();
        match &elsewhere {
            Some(there) if !was_elsewhere => {
                tracing::error!(volume = self.orders.name, there, "its home was moved");
            }
            None if was_elsewhere => {
                tracing::info!(volume = self.orders.name, "its home is where it was");
            }
            _ => {}
        }
        self.watched.change(|s| s.of.home_elsewhere = elsewhere);
    }

    /// Bars the home again if somebody let others into it. Whoever serves it lowers the barrier
    /// itself when it is given back.
    pub(super) fn look_at_barrier(&mut self) {
        let (Some(volume), Some(home)) = (&self.orders.volume, &self.held.home) else { return };
        if self.watch.has_no_barrier || self.watched.lock().state != State::Serving {
            return;
        }
        let Some(held) = is_open(home).then(|| home.try_clone().ok()).flatten() else { return };
        let (watched, name, path) =
            (self.watched.clone(), self.orders.name.clone(), volume.home.clone());
        // It is told, however late the home answers.
        let bar = move |_: &Path| {
            let Some(told) = barred_text(&name, &path, &held) else {
                return has_barrier(&held).unwrap_or(true);
            };
            // Whoever does it over and over fills no log.
            if watched.lock().of.home_entered.is_none() {
                tracing::error!(volume = name, "{told}");
            }
            watched.change(|s| s.of.home_entered = Some(told));
            true
        };
        let has_one = bounded::read(&volume.home, bar);
        self.watch.has_no_barrier = has_one == Ok(false);
    }

    /// Has another front end serve where the log's files were removed.
    pub(super) fn look_at_log(&mut self, front: Front) -> Front {
        let (Some(volume), true) = (self.orders.volume.clone(), self.may_renew(&front)) else {
            return front;
        };
        if volume.way == Way::Queue {
            self.note_covered_home(&volume);
            return front;
        }
        let Some(held) = &self.held.log else { return front };
        let may_end = self.watched.hindrance(&self.orders.whose()).is_none();
        let service = self.service();
        let step =
            self.log_place.look(&lost(&service, &volume, self.held.home.as_ref()), held, may_end);
        let trouble = self.log_place.trouble().map(str::to_owned);
        self.watched.change(|s| s.of.log_trouble = trouble);
        match step {
            Step::GoOn => front,
            Step::Renew => self.renew(front),
            Step::Replace(made) => {
                self.take_log(made);
                self.renew(front)
            }
        }
    }

    /// Before a front end looks for the log, when none has it.
    pub(super) fn restore_log(&mut self) -> Outcome<()> {
        let Some(volume) = self.orders.volume.clone().filter(|_| self.has_served()) else {
            return Ok(());
        };
        let Some(held) = &self.held.log else { return Ok(()) };
        let service = self.service();
        if let Some(made) =
            self.log_place.restore(&lost(&service, &volume, self.held.home.as_ref()), held)?
        {
            self.take_log(made);
        }
        self.watched.change(|s| s.of.log_trouble = None);
        Ok(())
    }

    /// Why a front end did not come to serve, if its log's files had been removed.
    pub(super) fn log_reason(&self, said: Problem) -> Problem {
        match (&self.orders.volume, &self.held.log) {
            (Some(volume), Some(held)) if self.has_served() => {
                reason(&lost(&self.service(), volume, None), held, said)
            }
            _ => said,
        }
    }

    /// Whether what is held as the log's directory was one, in this keeper or in an earlier one.
    fn has_served(&self) -> bool {
        self.was_ever_ready || self.was_served
    }

    fn service(&self) -> String {
        format!("{VOLUME_PREFIX}{}", self.orders.name)
    }

    /// The log is in another directory from now on.
    fn take_log(&mut self, made: OwnedFd) {
        if let Some(kept) = &self.held.kept {
            kept.keep_log_anew(&self.orders.whose(), &made);
        }
        self.held.log = Some(made);
    }

    /// Whoever has the log makes sure that the home is noted beside it, but cannot reach a home
    /// that the mount of its own volume covers.
    fn note_covered_home(&self, volume: &VolumeConfig) {
        if volume.mount.as_ref() != Some(&volume.home) {
            return;
        }
        let lacks_note = |log: &Path| {
            let log = private::directory_there(log).ok()?;
            (!has_note(&RealFiles::from_fd(log.try_clone().ok()?))).then_some(log)
        };
        let Ok(Some(log)) = bounded::read(&volume.log, lacks_note) else { return };
        let noted = lost(&self.service(), volume, self.held.home.as_ref()).note_home(&log);
        noted.unwrap_or_else(|problem| tracing::error!("{problem}"));
    }
}

/// Bars a home again, and says so if it had to be.
fn barred_text(name: &str, path: &Path, home: &OwnedFd) -> Option<String> {
    match bar_again(home) {
        Ok(opened) => opened.map(|opened| entered_text(name, path, opened)),
        Err(error) => {
            let home = path.display();
            Some(format!(
                "{home} lets others in, and cannot be barred again: {error}; mend its disk"
            ))
        }
    }
}

/// That a home was open to others, for people.
fn entered_text(name: &str, path: &Path, Opened { mode, owner }: Opened) -> String {
    let home = path.display();
    format!(
        "root or the owner of {home}, user {owner}, gave it the permissions {mode:o} while it was \
         served; they were taken away again, and whom they let in meanwhile may have changed it, \
         and may have it open: `holdfast umount {name}`, see what is in it, then `holdfast mount \
         {name}`"
    )
}

fn lost<'a>(service: &'a str, volume: &'a VolumeConfig, home: Option<&'a OwnedFd>) -> Lost<'a> {
    let (medium, config) = (volume.medium(), volume.log_config());
    let home = home.map(|home| Home::Held(&volume.home, home));
    Lost { service, log: &volume.log, medium, config, home, is_of_store: false }
}
