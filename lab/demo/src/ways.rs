//! `holdfast-demo ways`: both ways to a volume's log, side by side.
//!
//! Promise: PostgreSQL has its `pg_wal` in turn on two volumes that differ in nothing but their
//! way, and on the bare disk; all three pay for the same modelled disk, and one at a time is under
//! load. Then the same kills happen on both volumes, and where there is a server it is killed too.
//! Never: asks for more than that nothing is lost; which way is the default follows from the
//! figures.

use std::fmt::Write;

use holdfast_figures::{Figure, Figures};

use super::cleanup::WorkDir;
use super::disks::{Disks, Setting};
use super::error::DemoError;
use super::killed::Killed;
use super::kills::{Kill, SECOND_SERIES_ROUND, Series, Victim};
use super::options::Options;
use super::plot::panels;
use super::postgres::Postgres;
use super::progress::Progress;
use super::show::{Shown, kill_and_give_back, on_stage};
use super::site::{WAYS, Way, word};
use super::subject::{Database, Goal, PREFIX_STAYS, Subject, Words};
use super::volume::{Part, Volume};
use super::{measure, summary};

const DIRECT: Setting = Setting::Holdfast(Way::Direct);
const QUEUE: Setting = Setting::Holdfast(Way::Queue);

const SUBJECT: Subject = Subject {
    id: "ways",
    settings: &[
        Words::of(Setting::Sync, "sync", "sync (the default)", "nothing"),
        Words::of(DIRECT, word(Way::Direct), "Holdfast, direct", PREFIX_STAYS),
        Words::of(QUEUE, word(Way::Queue), "Holdfast, through the queue", PREFIX_STAYS),
    ],
    goals: &[
        Goal::beside("c1.queue_over_direct", "c1", QUEUE, DIRECT),
        Goal::beside("c8.queue_over_direct", "c8", QUEUE, DIRECT),
    ],
    ..Postgres::SUBJECT
};

/// `holdfast-demo ways`.
///
/// # Errors
/// At the first thing that cannot be done, and at the end if a kill lost or broke anything.
/// Everything is cleaned up first.
pub(super) fn run(options: Options) -> Result<(), DemoError> {
    on_stage(SUBJECT.id, options, tables, show)
}

/// Measures and kills in a work directory that is empty.
fn show(work: &WorkDir, options: &Options, progress: Progress) -> Result<Shown, DemoError> {
    let disks = Disks::mount(work)?;
    progress.say(&format!("{}: creating a database", SUBJECT.name));
    let mut database = Postgres::create(work.path(), &disks)?;
    let mut volumes = volumes(&disks)?;
    let class = class(&volumes)?;
    let (repetitions, seconds) = (options.repetitions, options.seconds);
    let samples = measure::run(&mut database, &SUBJECT, &volumes, repetitions, seconds, progress)?;
    let lost = database.canary(options.seed())?;
    progress.say(&format!("{} lost {lost} transactions, as it must be", SUBJECT.canary));
    let mut figures = summary::figures(&SUBJECT, &samples, &[], lost);
    let mut kills = Vec::new();
    for ((way, volume), first_round) in WAYS.into_iter().zip(&mut volumes).zip(FIRST_ROUNDS) {
        progress.say(&format!("kills by the way `{}`", word(way)));
        let series = Series { first_round, count: count(volume, options), seed: options.seed() };
        let more = kill_and_give_back(&mut database, volume, series, progress)?;
        figures.extend(kill_figures(way, &more));
        kills.extend(more);
    }
    Ok(Shown { class, figures, kills, panels: panels(&SUBJECT) })
}

/// The first rounds of both ways' kills: they happen to one and the same database.
const FIRST_ROUNDS: [u32; 2] = [0, SECOND_SERIES_ROUND];

/// A volume for each way, on the same disk.
fn volumes(disks: &Disks) -> Result<Vec<Volume>, DemoError> {
    let user = Postgres::user()?;
    WAYS.into_iter().map(|way| Volume::make(disks.site(way), user)).collect()
}

/// What an acknowledgement of both means. If they do not mean the same, nothing can be compared.
fn class(volumes: &[Volume]) -> Result<String, DemoError> {
    let mut classes = volumes.iter().map(Volume::class).collect::<Result<Vec<_>, _>>()?;
    classes.dedup();
    match classes.as_slice() {
        [class] => Ok(class.clone()),
        several => Err(DemoError::new("comparing the claims", format!("they differ: {several:?}"))),
    }
}

/// How often to kill. The database and the front end die equally often by either way: the kills of
/// a server come on top.
fn count(volume: &Volume, options: &Options) -> u32 {
    let victims = 1 + volume.parts().len() as u32;
    options.kills * victims / 2
}

fn kill_figures(way: Way, kills: &[Kill]) -> Vec<Figure> {
    let killed = Killed { id: format!("{}.{}", SUBJECT.id, word(way)), kills };
    let is = |part| move |victim| victim == Victim::Part(part);
    let mut all = killed.figures();
    all.push(killed.failed("failed"));
    all.push(killed.longest("stall_max_ms", |victim| victim != Victim::Database));
    all.push(killed.longest("front_end.stall_max_ms", is(Part::FrontEnd)));
    if way == Way::Queue {
        all.push(killed.counted("server.count", is(Part::Server)));
        all.push(killed.longest("server.stall_max_ms", is(Part::Server)));
    }
    all.push(killed.longest("recovery_max_ms", |victim| victim == Victim::Database));
    all
}

/// The result for people.
fn tables(figures: &Figures) -> String {
    let value = |id: &str| {
        let id = format!("{}.{id}", SUBJECT.id);
        figures.get(&id).map_or(f64::NAN, |figure| figure.value)
    };
    let mut text = summary::settings_table(&SUBJECT, figures);
    let (c1, c8) = (value("c1.queue_over_direct"), value("c8.queue_over_direct"));
    let _infallible = writeln!(
        text,
        "Through the queue: {c1:.2} of the direct way's rate with 1 client, {c8:.2} with 8.\n"
    );
    for way in WAYS {
        text.push_str(&kills_paragraph(word(way), |id| {
            value(&format!("{}.kills.{id}", word(way)))
        }));
    }
    let (canary, lost) = (SUBJECT.canary, value(&format!("kills.{}", SUBJECT.canary_id)));
    let _infallible = writeln!(text, "{canary} lost {lost:.0} acknowledged transactions.\n");
    text
}

fn kills_paragraph(way: &str, value: impl Fn(&str) -> f64) -> String {
    format!(
        "way {way}: {:.0} kills under load: {:.0} transactions acknowledged, {:.0} lost, {:.0} \
         failed;\nlongest stall {:.0} ms, longest recovery of {} {:.0} ms, complaints of the \
         checks: {:.0}.\n",
        value("count"),
        value("acknowledged"),
        value("lost"),
        value("failed"),
        value("stall_max_ms"),
        SUBJECT.name,
        value("recovery_max_ms"),
        value("complaints"),
    )
}

#[cfg(test)]
mod tests;
