//! `holdfast-demo drills`: a power source, from whose notice a hold-up's time is left.
//!
//! Promise: a volume acknowledges from memory what has to survive the power, measured beside the
//! disk alone and beside a volume without a power source; its class changes again and again under
//! load, and no transaction fails; then the power of each database goes at a deadline after a
//! notice, by the wall clock. Where the deadline leaves what is needed nothing is lost, and a
//! deadline of any length leaves a prefix. First the same cut without a drain is shown to lose.
//! Never: pulls a plug. The source is a file, the disk is modelled, and processes are killed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::thread;
use std::time::Duration;

use holdfast_figures::{Better, Figure, Figures};

use super::cleanup::WorkDir;
use super::disks::{Disks, Setting};
use super::error::DemoError;
use super::kills::{FIRST_CANARY_ROUND, Moments, SECOND_SERIES_ROUND, blind};
use super::mariadb::MariaDb;
use super::options::Options;
use super::plot::panels;
use super::postgres::Postgres;
use super::power::{Cut, How, Stage};
use super::progress::Progress;
use super::show::{Shown, on_stage};
use super::site::{self, FAST_LOG, POWERED, Way};
use super::sqlite::Sqlite;
use super::subject::{Database, Goal, Subject, Words};
use super::ups::{Outage, Power, Ups};
use super::volume::{MustSurvive, Volume};
use super::{measure, summary};

/// A deadline that leaves whatever a drain needs.
const ENOUGH: Duration = Duration::from_secs(2);

/// Deadlines from too short to long, in milliseconds, in the order in which they have their turn.
const DEADLINES_MS: [u64; 8] = [20, 0, 80, 320, 5, 10, 40, 160];

/// How often a cut without a drain may be lucky.
const CANARY_TRIES: u32 = 6;

/// How often the class changes to and fro for a cut, and in all at the most.
const CHANGES_PER_CUT: u32 = 5;
const CHANGES_MAX: u32 = 50;

/// How long each class lasts then.
const CHANGE_EVERY: Duration = Duration::from_millis(150);

const SUBJECT: Subject = Subject {
    id: "power",
    settings: &[
        Words::of(Setting::Sync, "sync", "sync (the default)", "nothing"),
        Words::of(Setting::FastLog, FAST_LOG, "Holdfast, log on a fast disk", "nothing"),
        Words::of(Setting::Powered, POWERED, "Holdfast, power source armed", "nothing, noticed"),
        Words::of(Setting::Tmpfs, "tmpfs", "log in tmpfs (bound)", "the database"),
    ],
    goals: &[
        Goal {
            goal: Some(12.0),
            ..Goal::beside("postgres.c1.over_sync", "c1", Setting::Powered, Setting::Sync)
        },
        Goal {
            goal: Some(15.0),
            ..Goal::beside("postgres.c8.over_sync", "c8", Setting::Powered, Setting::Sync)
        },
        Goal {
            goal: Some(8.0),
            ..Goal::beside("disk.fastlog.c8.over_slow", "c8", Setting::FastLog, Setting::Sync)
        },
        Goal::beside("postgres.c1.over_tmpfs", "c1", Setting::Powered, Setting::Tmpfs),
        Goal::beside("postgres.c8.over_tmpfs", "c8", Setting::Powered, Setting::Tmpfs),
    ],
    canary: "The same cuts without a drain",
    canary_id: "without_drain_lost",
    ..Postgres::SUBJECT
};

/// `holdfast-demo drills`.
///
/// # Errors
/// At the first thing that cannot be done, and if a cut loses what it may not. Everything is
/// cleaned up first.
pub(super) fn run(options: Options) -> Result<(), DemoError> {
    on_stage(SUBJECT.id, options, tables, show)
}

/// Measures, changes the class, and cuts, in a work directory that is empty.
fn show(work: &WorkDir, options: &Options, progress: Progress) -> Result<Shown, DemoError> {
    let ups = Ups::start(site::ups())?;
    let Measured { class, samples, mut figures } = measured(work, &ups, options, progress)?;
    let mut lost = 0;
    let (count, seed) = (options.kills, options.seed());
    let mut cut = |found: Result<Cuts, DemoError>| {
        let found = found?;
        lost += found.without_drain_lost;
        figures.extend(found.figures());
        work.clear()
    };
    work.clear()?;
    cut(cuts::<Postgres>(work, &ups, count, seed, progress))?;
    cut(cuts::<MariaDb>(work, &ups, count, seed, progress))?;
    cut(cuts::<Sqlite>(work, &ups, count, seed, progress))?;
    let mut all = summary::figures(&SUBJECT, &samples, &[], lost);
    all.extend(figures);
    Ok(Shown { class, figures: all, kills: Vec::new(), panels: panels(&SUBJECT) })
}

/// What one database on volumes has shown before any cut.
struct Measured {
    class: String,
    samples: Vec<measure::Sample>,
    figures: Vec<Figure>,
}

fn measured(
    work: &WorkDir,
    ups: &Ups,
    options: &Options,
    progress: Progress,
) -> Result<Measured, DemoError> {
    let disks = Disks::mount(work)?;
    progress.say(&format!("{}: creating a database", SUBJECT.name));
    let mut database = Postgres::create(work.path(), &disks)?;
    let site = disks.site(Way::Direct);
    let powered = Volume::make(site.clone().powered(), Postgres::user()?)?;
    powered.arm()?;
    let drilled = powered.power()?["drill"].clone();
    progress.say(&format!("drill {}", drilled.as_str().unwrap_or_default()));
    let fast_log = Volume::make(site.with_fast_log(), Postgres::user()?)?;
    let class = format!("{}; with its log on a fast disk {}", powered.class()?, fast_log.class()?);
    let mut volumes = [powered, fast_log];
    let (repetitions, seconds) = (options.repetitions, options.seconds);
    let before = taken_back(&volumes[0])?;
    let samples = measure::run(&mut database, &SUBJECT, &volumes, repetitions, seconds, progress)?;
    let disturbed = taken_back(&volumes[0])? - before;
    let mut figures = vec![count("taken_back_while_measured", "times", disturbed)];
    figures.push(margin(&volumes[0])?);
    let changes = (CHANGES_PER_CUT * options.kills).clamp(1, CHANGES_MAX);
    figures.extend(class_changes(&mut database, &volumes[0], ups, changes, progress)?);
    volumes.iter_mut().try_for_each(Volume::give_back)?;
    Ok(Measured { class, samples, figures })
}

fn count(id: &str, unit: &str, value: u64) -> Figure {
    Figure::of(format!("{}.{id}", SUBJECT.id), unit, Better::Lower, vec![value as f64])
}

fn taken_back(volume: &Volume) -> Result<u64, DemoError> {
    Ok(volume.power()?["taken_back"].as_u64().unwrap_or(0))
}

/// How many times over the hold-up suffices for what the drill has written. Half of it is what
/// counts as left.
fn margin(volume: &Volume) -> Result<Figure, DemoError> {
    let (took_ms, had_ms) = volume.drilled_ms()?;
    let runs = vec![2.0 * had_ms as f64 / took_ms as f64];
    let figure = Figure::of(format!("{}.drain.margin", SUBJECT.id), "ratio", Better::Higher, runs);
    Ok(Figure { goal: Some(2.0), ..figure.beside("the drill") })
}

/// Changes the class again and again under load. No transaction fails; what is left of the time
/// without an acknowledgement is the longest that any client noticed.
fn class_changes(
    database: &mut Postgres,
    volume: &Volume,
    ups: &Ups,
    changes: u32,
    progress: Progress,
) -> Result<Vec<Figure>, DemoError> {
    database.enter(Setting::Powered)?;
    volume.arm()?;
    let before = taken_back(volume)?;
    let seconds = (2 * changes * CHANGE_EVERY).as_secs() as u32 + 2;
    let load = database.load(SECOND_SERIES_ROUND, seconds)?;
    for _ in 0..changes {
        ups.say(Power::Battery);
        thread::sleep(CHANGE_EVERY);
        ups.say(Power::Mains);
        thread::sleep(CHANGE_EVERY);
    }
    let outcome = database.finish(load, false)?.undisturbed()?;
    let lost = database.present(SECOND_SERIES_ROUND)?.missing(&outcome.acknowledged);
    let changes = 2 * (taken_back(volume)? - before);
    let (stall_ms, p99_ms) = (outcome.longest_stall_ms(), outcome.latency_ms(99));
    progress.say(&format!(
        "{changes} changes of class: {} acknowledged, 0 failed, {lost} lost, longest time \
         without an acknowledgement {stall_ms:.1} ms",
        outcome.acknowledged.len()
    ));
    database.leave()?;
    let none = |figure: Figure| figure.against(0.0, "what was acknowledged");
    let ms = |id: &str, value| {
        Figure::of(format!("{}.class_change.{id}", SUBJECT.id), "ms", Better::Lower, vec![value])
    };
    Ok(vec![
        count("class_change.count", "changes", changes),
        none(count("class_change.failed", "transactions", outcome.failed)),
        none(count("class_change.lost", "transactions", lost)),
        ms("stall_ms", stall_ms),
        ms("p99_ms", p99_ms),
    ])
}

/// What the cuts of one database have shown.
struct Cuts {
    name: &'static str,
    /// What cuts without a drain lost.
    without_drain_lost: u64,
    /// Cuts with a hold-up that suffices.
    enough: Vec<Cut>,
    /// Cuts by the deadline, in milliseconds.
    sweep: BTreeMap<u64, Vec<Cut>>,
}

fn cuts<D: Database>(
    work: &WorkDir,
    ups: &Ups,
    count: u32,
    seed: u64,
    progress: Progress,
) -> Result<Cuts, DemoError> {
    let (mut moments, mut stage) = (Moments::from(seed), Stage::<D>::prepare(work, seed)?);
    let without_drain_lost = canary(&mut stage, &mut moments)?;
    let mut round = 0..;
    let mut cut = |deadline: Duration| {
        let outage = Outage::Noticed(ups, deadline);
        let how = How { must: MustSurvive::Noticed, setting: Setting::Sync, outage };
        let round = round.next().unwrap_or(0);
        let cut = stage.cut(round, &how, &mut moments)?;
        let (name, sentence) = (D::SUBJECT.name, cut.sentence());
        progress.say(&format!("{name}, cut {deadline:?} after a notice: {sentence}"));
        let may_lose = deadline < ENOUGH;
        if !cut.is_whole() || (cut.lost > 0 && !may_lose) {
            return Err(DemoError::new(format!("cutting the power of {name}"), sentence));
        }
        Ok(cut)
    };
    let enough = (0..count).map(|_| cut(ENOUGH)).collect::<Result<_, _>>()?;
    let mut sweep = BTreeMap::<u64, Vec<Cut>>::new();
    for ms in DEADLINES_MS.into_iter().cycle().take(count as usize) {
        sweep.entry(ms).or_default().push(cut(Duration::from_millis(ms))?);
    }
    Ok(Cuts { name: D::SUBJECT.id, without_drain_lost, enough, sweep })
}

/// Cuts without a drain until something is lost, and says how much.
fn canary<D: Database>(stage: &mut Stage<D>, moments: &mut Moments) -> Result<u64, DemoError> {
    let how = How { must: MustSurvive::Process, setting: Setting::Sync, outage: Outage::Sudden };
    for round in FIRST_CANARY_ROUND..FIRST_CANARY_ROUND + CANARY_TRIES {
        match stage.cut(round, &how, moments)?.lost {
            0 => {}
            lost => return Ok(lost),
        }
    }
    Err(blind("a cut without a drain"))
}

impl Cuts {
    fn figures(&self) -> Vec<Figure> {
        let figure = |id: &str, unit, runs| {
            let id = format!("{}.{}.cuts.{id}", SUBJECT.id, self.name);
            Figure::of(id, unit, Better::Lower, runs)
        };
        let sum = |of: &[Cut], what: fn(&Cut) -> u64| vec![of.iter().map(what).sum::<u64>() as f64];
        let drained = self.enough.iter().filter_map(|cut| cut.drained);
        let drained_ms: Vec<f64> = drained.map(|it| it.as_secs_f64() * 1e3).collect();
        let lost = figure("lost", "transactions", sum(&self.enough, |cut| cut.lost));
        let mut all = vec![
            figure("count", "cuts", sum(&self.enough, |_| 1)),
            figure("acknowledged", "transactions", sum(&self.enough, |cut| cut.acknowledged)),
            lost.against(0.0, "what was acknowledged"),
        ];
        if let Some(longest_ms) = drained_ms.iter().copied().reduce(f64::max) {
            all.push(figure("drained_max_ms", "ms", vec![longest_ms]));
            all.push(figure("drained_ms", "ms", drained_ms));
        }
        for (ms, cuts) in &self.sweep {
            let lost = sum(cuts, |cut| cut.lost);
            all.push(figure(&format!("after_{ms}_ms.lost_from_the_end"), "transactions", lost));
            let holes =
                figure(&format!("after_{ms}_ms.holes"), "transactions", sum(cuts, |cut| cut.holes));
            all.push(holes.against(0.0, "a prefix"));
        }
        all
    }
}

/// The result for people.
fn tables(figures: &Figures) -> String {
    let mut text = summary::settings_table(&SUBJECT, figures);
    let value = |id: &str| {
        let id = format!("{}.{id}", SUBJECT.id);
        figures.get(&id).map_or(f64::NAN, |figure| figure.value)
    };
    let _infallible = writeln!(
        text,
        "{:.0} changes of class under load: {:.0} transactions failed, {:.0} lost, longest time \
         without an acknowledgement {:.1} ms.\n",
        value("class_change.count"),
        value("class_change.failed"),
        value("class_change.lost"),
        value("class_change.stall_ms"),
    );
    for name in [Postgres::SUBJECT.id, MariaDb::SUBJECT.id, Sqlite::SUBJECT.id] {
        text.push_str(&cuts_paragraph(name, |id| value(&format!("{name}.cuts.{id}"))));
    }
    let (canary, lost) = (SUBJECT.canary, value("kills.without_drain_lost"));
    let _infallible = writeln!(text, "{canary} lost {lost:.0} acknowledged transactions.\n");
    text
}

fn cuts_paragraph(name: &str, value: impl Fn(&str) -> f64) -> String {
    let mut deadlines_ms = DEADLINES_MS;
    deadlines_ms.sort_unstable();
    let lost = |ms: u64| {
        let lost = value(&format!("after_{ms}_ms.lost_from_the_end"));
        (!lost.is_nan()).then(|| format!("{lost:.0} after {ms} ms"))
    };
    let lost: Vec<String> = deadlines_ms.into_iter().filter_map(lost).collect();
    format!(
        "{name}: {:.0} cuts {ENOUGH:?} after a notice: {:.0} transactions acknowledged,\n{:.0} \
         lost; nothing was in memory alone after {:.0} ms, at the most {:.0} ms. Of the last \
         of\nearlier \
         cuts lost, without holes: {}.\n\n",
        value("count"),
        value("acknowledged"),
        value("lost"),
        value("drained_ms"),
        value("drained_max_ms"),
        lost.join(", "),
    )
}

#[cfg(test)]
mod tests;
