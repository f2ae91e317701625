//! `holdfast demo postgres`: an unmodified PostgreSQL, measured and killed.
//!
//! Promise: one command shows what a commit costs with `pg_wal` on a slow disk in four settings,
//! that kills of the server and of the front end lose nothing that was acknowledged, and that the
//! volume's home is afterwards an ordinary directory with every byte in it.
//! Never: needs anything but root, PostgreSQL and FUSE, or leaves anything but its report.

mod cluster;
mod kills;
mod load;
mod measure;
mod settings;
mod summary;
mod verify;
mod volume;
mod wal;

use std::io::Write;
use std::path::{Path, PathBuf};

use self::cluster::{Cluster, SCALE};
use self::kills::Kill;
use self::settings::{Places, Setting};
use self::volume::Volume;
use super::cleanup::WorkDir;
use super::error::{DemoError, During};
use super::figures::Figures;
use super::progress::Progress;
use super::{plot, report};

/// Fixed, so that the next run finds what a killed one left.
const WORK: &str = "/var/tmp/holdfast-demo";

/// Options of `holdfast demo postgres`.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Options {
    /// How often to kill, PostgreSQL and the front end in turn.
    #[arg(long, default_value_t = 10)]
    pub(crate) kills: u32,
    /// Seconds of each timed run.
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) seconds: u32,
    /// How often each setting is measured; the figures are medians.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) repetitions: u32,
    /// Folder for postgres.json, postgres.svg and postgres.html.
    #[arg(long, default_value = "holdfast-demo", value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// One short repetition and two kills: under a minute, figures not to be quoted.
    #[arg(long, conflicts_with_all = ["kills", "seconds", "repetitions"])]
    pub(crate) quick: bool,
    /// Draw the moments of the kills from this seed; each run prints the one it used.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print the figures as JSON instead of a table.
    #[arg(from_global)]
    pub(crate) json: bool,
}

impl Options {
    /// The same options with what `--quick` stands for filled in.
    fn resolved(mut self) -> Options {
        if self.quick {
            (self.kills, self.seconds, self.repetitions) = (2, 2, 1);
        }
        self
    }
}

/// Runs the demonstration, writes its report and prints its result on standard output.
///
/// # Errors
/// At the first thing that cannot be done, and at the end if a kill lost or broke anything.
/// Everything is cleaned up first.
pub(crate) fn run(options: Options) -> Result<(), DemoError> {
    let options = options.resolved();
    if !rustix::process::geteuid().is_root() {
        let cause = "it mounts file systems and runs PostgreSQL as its own user; run it as root";
        return Err(DemoError::new("starting the demonstration", cause));
    }
    let progress = Progress::start();
    let out = prepare_out(&options.out)?;
    let shown = {
        let work = WorkDir::claim(Path::new(WORK), vec![PathBuf::from(volume::REGION)])?;
        show(&work, &options, progress)?
    };
    write_report(&shown.figures, &out)?;
    print(&shown.figures, options.json).during(|| "printing the result".into())?;
    progress.say(&format!("report: {}", out.join("postgres.html").display()));
    verdict(&shown.kills)
}

/// What a run has shown.
struct Shown {
    figures: Figures,
    kills: Vec<Kill>,
}

fn show(work: &WorkDir, options: &Options, progress: Progress) -> Result<Shown, DemoError> {
    let seed = options.seed.unwrap_or_else(|| u64::from(std::process::id()));
    progress.say(&format!("work directory {WORK}, seed of the kills {seed}"));
    let places = Places::mount(work.path())?;
    progress.say(&format!("creating a PostgreSQL cluster, pgbench scale {SCALE}"));
    let mut cluster = create_cluster(work)?;
    progress.say("making a Holdfast volume for pg_wal");
    let mut volume = Volume::serve(work.path(), &places, &cluster)?;
    let class = volume.class()?;
    let samples =
        measure::run(&mut cluster, &places, options.repetitions, options.seconds, progress)?;
    wal::move_to(&cluster, &places.wal(Setting::Async))?;
    let async_lost = kills::canary(&mut cluster, seed)?;
    progress.say(&format!("a kill under synchronous_commit=off: {async_lost} lost, as it must be"));
    wal::move_to(&cluster, &places.wal(Setting::Holdfast))?;
    cluster.start(Setting::Holdfast.synchronous_commit())?;
    let kills = kills::run(&mut cluster, &volume, options.kills, seed, progress)?;
    cluster.stop()?;
    give_back(&mut cluster, &mut volume, &places, progress)?;
    Ok(Shown { figures: summary::figures(&samples, &kills, async_lost, &class), kills })
}

fn create_cluster(work: &WorkDir) -> Result<Cluster, DemoError> {
    let mut cluster = Cluster::create(work.path())?;
    cluster.start("off")?;
    cluster.run("pgbench", |pgbench| pgbench.args(["-i", "-q", "-s", &SCALE.to_string()]))?;
    verify::prepare(&cluster)?;
    cluster.stop()?;
    Ok(cluster)
}

/// Gives the volume's home back, compares it byte for byte with what PostgreSQL saw through the
/// mount, and runs PostgreSQL on the bare home.
fn give_back(
    cluster: &mut Cluster,
    volume: &mut Volume,
    places: &Places,
    progress: Progress,
) -> Result<(), DemoError> {
    let doing = || "comparing the home with what PostgreSQL saw".into();
    let seen = verify::tree(&places.volume_mount()).during(doing)?;
    volume.give_back()?;
    let home = verify::tree(&places.volume_home()).during(doing)?;
    let differences = verify::differences(&seen, &home);
    if !differences.is_empty() {
        return Err(DemoError::new(doing(), format!("these differ: {differences:?}")));
    }
    progress.say(&format!("volume given back: {} files, byte for byte", home.len()));
    wal::relink_to(cluster, &places.volume_home())?;
    cluster.start(Setting::Sync.synchronous_commit())?;
    let complaint = verify::amcheck(cluster)?;
    if !complaint.is_empty() {
        return Err(DemoError::new("checking the database without Holdfast", complaint));
    }
    progress.say("PostgreSQL runs on the home without Holdfast; amcheck passed");
    cluster.stop()
}

/// Makes the report's folder before the work, so that a bad name fails at once.
fn prepare_out(out: &Path) -> Result<PathBuf, DemoError> {
    let doing = || format!("making the folder {}", out.display());
    std::fs::create_dir_all(out).during(doing)?;
    out.canonicalize().during(doing)
}

fn write_report(figures: &Figures, out: &Path) -> Result<(), DemoError> {
    let plot = plot::svg(figures);
    let json = serde_json::to_string_pretty(figures)
        .map_err(|error| DemoError::new("writing the figures", error.to_string()))?;
    let html = report::html(figures, &summary::table(figures), &plot);
    for (name, text) in [("json", json + "\n"), ("svg", plot), ("html", html)] {
        let path = out.join(format!("postgres.{name}"));
        std::fs::write(&path, text).during(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}

fn print(figures: &Figures, json: bool) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    if json {
        serde_json::to_writer_pretty(&mut out, figures)?;
        return writeln!(out);
    }
    write!(out, "\n{}", summary::table(figures))
}

/// An error if any kill lost or broke anything.
fn verdict(kills: &[Kill]) -> Result<(), DemoError> {
    match kills.iter().find(|kill| !kill.is_clean()) {
        None => Ok(()),
        Some(kill) => Err(DemoError::new("checking the kills", format!("not clean: {kill:?}"))),
    }
}
