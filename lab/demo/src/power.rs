//! `holdfast-demo power-cut`: databases that guard themselves against torn pages no more.
//!
//! Promise: a whole database lies on a volume, with its own guard switched off (`full_page_writes`,
//! the doublewrite buffer, for SQLite its syncs). The power fails under load, again and again: all
//! processes and the region are gone, and of what the modelled disk had not synced each sector is
//! kept or lost at random. After each cut the database recovers and all its checks pass; what
//! is there is a prefix, and in class Disk all that was acknowledged. First the same database is
//! shown to break on the same disk without a volume.
//! Never: says anything about disks that lose what they have confirmed, or that mix up names.

use std::thread;
use std::time::Duration;

use holdfast_figures::{Better, Figure};

use super::cleanup::WorkDir;
use super::disks::{Disks, Setting};
use super::error::{DemoError, During};
use super::files;
use super::kills::{LOAD_UNTIL_KILLED_S, Moments, blind};
use super::outcome::Acknowledged;
use super::progress::Progress;
use super::subject::Database;
use super::ups::{Outage, Power};
use super::volume::{MustSurvive, Volume};
use crate::site::{Site, Way};

/// How often a database without a volume may be lucky.
const BARE_TRIES: u32 = 6;

/// What one cut did.
#[derive(Debug, Default)]
pub(super) struct Cut {
    /// Transactions acknowledged before it.
    pub(super) acknowledged: u64,
    /// Of those, the ones that are gone.
    pub(super) lost: u64,
    /// Numbers missing below the last one that is there.
    pub(super) holes: u64,
    /// How long it took, after the notice, until nothing was in memory alone, if that was seen.
    pub(super) drained: Option<Duration>,
    /// Why the database does not start, or what its checks say; empty if all is well.
    pub(super) complaint: String,
}

impl Cut {
    /// True if what is left is whole: damage, or a hole, is what no power cut may leave.
    pub(super) fn is_whole(&self) -> bool {
        self.holes == 0 && self.complaint.is_empty()
    }

    pub(super) fn sentence(&self) -> String {
        let Cut { acknowledged, lost, holes, complaint, drained } = self;
        let checks = if complaint.is_empty() { "checks passed" } else { complaint };
        let drained = drained.map_or_else(String::new, |it| format!(", drained within {it:.0?}"));
        format!(
            "{acknowledged} acknowledged, {lost} of the last lost, {holes} holes, {checks}{drained}"
        )
    }
}

/// What the cuts of one database have shown.
pub(super) struct Cuts {
    /// Cuts without a volume that it took until the database was damaged.
    pub(super) bare: u32,
    /// Cuts with a volume.
    pub(super) cuts: Vec<Cut>,
}

/// Cuts the power of one database, first without a volume until it breaks, then `count` times with
/// one, whose class alternates. The work directory is empty before and after.
///
/// # Errors
/// If a step fails, if the database does not break without a volume, or if it breaks with one.
pub(super) fn run<D: Database>(
    work: &WorkDir,
    count: u32,
    seed: u64,
    progress: Progress,
) -> Result<Cuts, DemoError> {
    let mut moments = Moments::from(seed);
    let name = D::SUBJECT.name;
    let bare = bare::<D>(work, seed, &mut moments, progress)?;
    work.clear()?;
    let mut stage = Stage::<D>::prepare(work, seed)?;
    let mut cuts = Vec::new();
    for round in 0..count {
        let must = if round % 2 == 0 { MustSurvive::Process } else { MustSurvive::Power };
        let how = How { must, setting: D::UNGUARDED, outage: Outage::Sudden };
        let cut = stage.cut(round, &how, &mut moments)?;
        let class = if must == MustSurvive::Power { "Disk" } else { "Memory" };
        let sentence = cut.sentence();
        progress.say(&format!("{name}, cut {} of {count}, class {class}: {sentence}", round + 1));
        let may_lose = must == MustSurvive::Process || D::UNGUARDED == Setting::Async;
        if !cut.is_whole() || (cut.lost > 0 && !may_lose) {
            return Err(DemoError::new(format!("cutting the power of {name}"), cut.sentence()));
        }
        cuts.push(cut);
    }
    drop(stage);
    work.clear()?;
    Ok(Cuts { bare, cuts })
}

impl Cuts {
    /// What they have shown.
    pub(super) fn figures(&self, subject: &str) -> Vec<Figure> {
        let sum = |of: fn(&Cut) -> u64| vec![self.cuts.iter().map(of).sum::<u64>() as f64];
        let figure = |id: &str, unit, better, runs| {
            Figure::of(format!("{subject}.power_cuts.{id}"), unit, better, runs)
        };
        let (lower, higher) = (Better::Lower, Better::Higher);
        let complaints = sum(|cut| u64::from(!cut.complaint.is_empty()));
        let whole = "a database without damage";
        vec![
            figure("count", "cuts", higher, sum(|_| 1)),
            figure("acknowledged", "transactions", higher, sum(|cut| cut.acknowledged)),
            figure("lost_from_the_end", "transactions", lower, sum(|cut| cut.lost)),
            figure("holes", "transactions", lower, sum(|cut| cut.holes)).against(0.0, whole),
            figure("complaints", "cuts", lower, complaints).against(0.0, whole),
            figure("until_damage_without_volume", "cuts", lower, vec![f64::from(self.bare)]),
        ]
    }
}

/// Cuts the power of a database without a volume until it is damaged, and says how many cuts that
/// took: the proof that the model tears, and that the guard matters.
fn bare<D: Database>(
    work: &WorkDir,
    seed: u64,
    moments: &mut Moments,
    progress: Progress,
) -> Result<u32, DemoError> {
    let mut disks = Disks::mount_mortal(work, seed)?;
    let data = disks.slow().join("data");
    D::user()?.own_directory(&data)?;
    let mut database = D::create_whole(work.path(), &data)?;
    // What is damaged must have been written under load.
    files::sync(&data).during(|| "syncing the new database".into())?;
    database.recover(D::UNGUARDED)?;
    for round in 0..BARE_TRIES {
        let mut load = database.load(round, LOAD_UNTIL_KILLED_S)?;
        thread::sleep(moments.next());
        database.kill(&mut load)?;
        let acknowledged = database.finish(load, true)?.acknowledged;
        disks.cut_power(seed.wrapping_add(u64::from(round)))?;
        let cut = judge(&mut database, D::UNGUARDED, round, &acknowledged);
        progress.say(&format!("{} without a volume: {}", D::SUBJECT.name, cut.sentence()));
        if !cut.is_whole() {
            return Ok(round + 1);
        }
    }
    Err(blind("a power cut without a volume"))
}

/// What is left of a database. One that does not start, or cannot be asked, is damaged.
fn judge<D: Database>(
    database: &mut D,
    setting: Setting,
    round: u32,
    acknowledged: &[Acknowledged],
) -> Cut {
    let mut cut = Cut { acknowledged: acknowledged.len() as u64, ..Cut::default() };
    let mut look = || {
        database.recover(setting)?;
        let present = database.present(round)?;
        (cut.lost, cut.holes) = (present.missing(acknowledged), present.holes());
        database.complaint()
    };
    cut.complaint = look().unwrap_or_else(|error| error.to_string());
    cut
}

/// The volume of a database without a guard of its own.
fn site(disks: &Disks) -> Site {
    disks.site(Way::Direct).uncached()
}

/// The circumstances of a cut.
pub(super) struct How<'a> {
    /// What the volume's acknowledgements are to survive.
    pub(super) must: MustSurvive,
    /// What the database waits for before it acknowledges.
    pub(super) setting: Setting,
    /// How the power goes.
    pub(super) outage: Outage<'a>,
}

/// A database that lies wholly on a volume, stopped.
pub(super) struct Stage<D> {
    disks: Disks,
    database: D,
    volume: Option<Volume>,
    seed: u64,
}

impl<D: Database> Stage<D> {
    pub(super) fn prepare(work: &WorkDir, seed: u64) -> Result<Stage<D>, DemoError> {
        let disks = Disks::mount_mortal(work, seed)?;
        let volume = Volume::make(site(&disks), D::user()?)?;
        let data = volume.mount().join("data");
        D::user()?.own_directory(&data)?;
        let database = D::create_whole(work.path(), &data)?;
        volume.settle()?;
        Ok(Stage { disks, database, volume: Some(volume), seed })
    }

    /// One load, one cut, one recovery.
    pub(super) fn cut(
        &mut self,
        round: u32,
        how: &How<'_>,
        moments: &mut Moments,
    ) -> Result<Cut, DemoError> {
        let volume = self.serve(how.must)?;
        self.database.recover(how.setting)?;
        let mut load = self.database.load(round, LOAD_UNTIL_KILLED_S)?;
        thread::sleep(moments.next());
        let drained = volume.lose_power(how.outage)?;
        // At once: what is being synced is not there yet.
        self.disks.cut_power(self.seed.wrapping_add(u64::from(round)))?;
        self.database.kill(&mut load)?;
        let acknowledged = self.database.finish(load, true)?.acknowledged;
        if let Outage::Noticed(ups, _) = how.outage {
            ups.say(Power::Mains);
        }
        self.volume = Some(Volume::serve_without_memory(site(&self.disks), how.must)?);
        let cut = judge(&mut self.database, how.setting, round, &acknowledged);
        self.database.leave()?;
        Ok(Cut { drained, ..cut })
    }

    /// Serves the volume with what it must survive now.
    fn serve(&mut self, must: MustSurvive) -> Result<Volume, DemoError> {
        if let Some(mut volume) = self.volume.take() {
            volume.give_back()?;
        }
        let volume = Volume::serve(site(&self.disks), must)?;
        if must == MustSurvive::Noticed {
            volume.arm()?;
        }
        Ok(volume)
    }
}

#[cfg(test)]
mod tests;
