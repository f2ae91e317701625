//! The course of a demonstration, the same for every database.
//!
//! Promise: measures the database in several settings, proves that a loss would be seen, kills it
//! and the front end in turn, gives the volume back, compares its home byte for byte with what the
//! database saw, and runs the database on the bare home.
//! Never: goes on after the first thing that cannot be done.

use std::io::Write;
use std::path::{Path, PathBuf};

use holdfast_figures::{Figure, Figures, Panel, WriteError, svg};

use super::cleanup::WorkDir;
use super::disks::{Disks, Setting, model};
use super::error::{DemoError, During};
use super::files;
use super::kills::{self, Kill, Series};
use super::mariadb::MariaDb;
use super::options::Options;
use super::postgres::{Postgres, pages};
use super::programs::Programs;
use super::progress::Progress;
use super::site::{Way, strays};
use super::sqlite::Sqlite;
use super::subject::Database;
use super::summary::{self, goals_table, tables};
use super::volume::Volume;
use super::{measure, plot, power, report};

/// Fixed, so that the next run finds what a killed one left.
const WORK: &str = "/var/tmp/holdfast-demo";

/// What was shown, by whichever database.
pub(super) struct Shown {
    /// What an acknowledgement of the volume meant.
    pub(super) class: String,
    /// All of them, the ratios with a goal first.
    pub(super) figures: Vec<Figure>,
    /// Every kill.
    pub(super) kills: Vec<Kill>,
    /// What is to be compared by eye.
    pub(super) panels: Vec<Panel>,
}

/// `holdfast-demo NAME`: one database, with a report of its own.
///
/// # Errors
/// At the first thing that cannot be done, and at the end if a kill lost or broke anything.
/// Everything is cleaned up first.
pub(super) fn run<D: Database>(options: Options) -> Result<(), DemoError> {
    on_stage(D::SUBJECT.id, options, |all| tables(&D::SUBJECT, all), database::<D>)
}

/// `holdfast-demo power-cut`: every database, with its guard against torn pages switched off.
///
/// # Errors
/// As for [`run`].
pub(super) fn power_cuts(options: Options) -> Result<(), DemoError> {
    on_stage("power-cut", options, |_| String::new(), cuts)
}

/// `holdfast-demo databases`: MariaDB and SQLite as [`run`] shows them, what `full_page_writes`
/// costs PostgreSQL, and the power cuts, with one report.
///
/// # Errors
/// As for [`run`].
pub(super) fn databases(options: Options) -> Result<(), DemoError> {
    on_stage(
        "databases",
        options,
        |all| tables(&MariaDb::SUBJECT, all) + &tables(&Sqlite::SUBJECT, all),
        |work, options, progress| {
            let mut shown = database::<MariaDb>(work, options, progress)?;
            work.clear()?;
            shown.extend(database::<Sqlite>(work, options, progress)?);
            work.clear()?;
            let (repetitions, seconds) = (options.repetitions, options.seconds);
            shown.figures.extend(pages::run(work, repetitions, seconds, progress)?);
            shown.panels.extend(pages::panels());
            work.clear()?;
            shown.extend(cuts(work, options, progress)?);
            Ok(shown)
        },
    )
}

/// Cuts the power of every database, as often as each would be killed.
fn cuts(work: &WorkDir, options: &Options, progress: Progress) -> Result<Shown, DemoError> {
    let (count, seed) = (options.kills, options.seed());
    let mut figures = power::run::<Postgres>(work, count, seed, progress)?.figures("postgres");
    figures.extend(power::run::<MariaDb>(work, count, seed, progress)?.figures("mariadb"));
    figures.extend(power::run::<Sqlite>(work, count, seed, progress)?.figures("sqlite"));
    let class = "class Memory on shm and class Disk in turn".to_owned();
    Ok(Shown { class, figures, kills: Vec::new(), panels: Vec::new() })
}

impl Shown {
    fn extend(&mut self, more: Shown) {
        self.figures.extend(more.figures);
        self.kills.extend(more.kills);
        self.panels.extend(more.panels);
    }
}

/// Claims the work directory, lets `act` show something in it, cleans up and reports. `tables` puts
/// into words what was shown.
///
/// # Errors
/// As for [`run`].
pub(super) fn on_stage(
    name: &str,
    options: Options,
    tables: impl FnOnce(&Figures) -> String,
    act: impl FnOnce(&WorkDir, &Options, Progress) -> Result<Shown, DemoError>,
) -> Result<(), DemoError> {
    let options = options.resolved();
    if !rustix::process::geteuid().is_root() {
        let cause = "it mounts file systems and runs databases as their own users; run it as root";
        return Err(DemoError::new("starting the demonstration", cause));
    }
    let programs = Programs::find(options.holdfast.as_deref(), options.slow_disk.as_deref())?;
    let progress = Progress::start();
    let out = prepare_out(&options.out)?;
    let shown = {
        let work = Path::new(WORK);
        let work = WorkDir::claim(work, strays(work), programs)?;
        progress.say(&format!("work directory {WORK}, seed of the kills {}", options.seed()));
        act(&work, &options, progress)?
    };
    let mut figures = Figures::here(name, &model(), &shown.class);
    figures.figures = shown.figures;
    let table = tables(&figures) + &goals_table(&figures);
    write_report(&figures, &table, &shown.panels, &out)?;
    print(&figures, &table, options.json).during(|| "printing the result".into())?;
    progress.say(&format!("report: {}", out.join(format!("{name}.html")).display()));
    verdict(&shown.kills)
}

/// Shows one database from beginning to end, in a work directory that is empty.
fn database<D: Database>(
    work: &WorkDir,
    options: &Options,
    progress: Progress,
) -> Result<Shown, DemoError> {
    let subject = D::SUBJECT;
    let disks = Disks::mount(work)?;
    progress.say(&format!("{}: creating a database", subject.name));
    let mut database = D::create(work.path(), &disks)?;
    let mut volumes = vec![Volume::make(disks.site(Way::Direct), D::user()?)?];
    let mut class = volumes[0].class()?;
    if subject.settings.iter().any(|words| words.setting == Setting::FastLog) {
        let volume = Volume::make(disks.site(Way::Direct).with_fast_log(), D::user()?)?;
        class = format!("{class}; with its log on a fast disk {}", volume.class()?);
        volumes.push(volume);
    }
    let (repetitions, seconds) = (options.repetitions, options.seconds);
    let samples = measure::run(&mut database, &subject, &volumes, repetitions, seconds, progress)?;
    let lost = database.canary(options.seed())?;
    progress.say(&format!("{} lost {lost} transactions, as it must be", subject.canary));
    let series = Series { first_round: 0, count: options.kills, seed: options.seed() };
    let kills = kill_and_give_back(&mut database, &mut volumes[0], series, progress)?;
    // Until then the database may still have had its files on another one.
    volumes[1..].iter_mut().try_for_each(Volume::give_back)?;
    let figures = summary::figures(&subject, &samples, &kills, lost);
    Ok(Shown { class, figures, kills, panels: plot::panels(&subject) })
}

/// Kills the database, and what serves the volume, under load, and gives the volume back. The
/// database is stopped before and after.
pub(super) fn kill_and_give_back<D: Database>(
    database: &mut D,
    volume: &mut Volume,
    series: Series,
    progress: Progress,
) -> Result<Vec<Kill>, DemoError> {
    database.enter(volume.setting())?;
    let kills = kills::run(database, volume, series, progress)?;
    database.leave()?;
    give_back(database, volume, progress)?;
    Ok(kills)
}

/// Gives the volume's home back, compares it byte for byte with what the database saw through the
/// mount, and runs the database on the bare home.
fn give_back<D: Database>(
    database: &mut D,
    volume: &mut Volume,
    progress: Progress,
) -> Result<(), DemoError> {
    let doing = || "comparing the home with what the database saw".into();
    let seen = files::tree(&volume.mount()).during(doing)?;
    volume.give_back()?;
    let home = files::tree(&volume.home()).during(doing)?;
    let differences = files::differences(&seen, &home);
    if !differences.is_empty() {
        return Err(DemoError::new(doing(), format!("these differ: {differences:?}")));
    }
    progress.say(&format!("volume given back: {} files, byte for byte", home.len()));
    database.enter_home(&volume.home())?;
    let complaint = database.complaint()?;
    if !complaint.is_empty() {
        return Err(DemoError::new("checking the database without Holdfast", complaint));
    }
    progress.say(&format!("{} runs on the home without Holdfast", D::SUBJECT.name));
    database.leave()
}

/// Makes the report's folder before the work, so that a bad name fails at once.
fn prepare_out(out: &Path) -> Result<PathBuf, DemoError> {
    let doing = || format!("making the folder {}", out.display());
    std::fs::create_dir_all(out).during(doing)?;
    out.canonicalize().during(doing)
}

fn write_report(
    figures: &Figures,
    table: &str,
    panels: &[Panel],
    out: &Path,
) -> Result<(), DemoError> {
    let figures_error = |error: WriteError| DemoError::new("writing figures", error.to_string());
    figures.write(out, panels).map_err(figures_error)?;
    let path = out.join(format!("{}.html", figures.name));
    let html = report::html(figures, table, &svg(figures, panels));
    holdfast_io::private::write_report(&path, html.as_bytes())
        .during(|| format!("writing {}", path.display()))
}

fn print(figures: &Figures, table: &str, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, figures)?;
        return writeln!(out);
    }
    write!(out, "\n{table}")
}

/// An error if any kill lost or broke anything.
fn verdict(kills: &[Kill]) -> Result<(), DemoError> {
    match kills.iter().find(|kill| !kill.is_clean()) {
        None => Ok(()),
        Some(kill) => Err(DemoError::new("checking the kills", format!("not clean: {kill:?}"))),
    }
}
