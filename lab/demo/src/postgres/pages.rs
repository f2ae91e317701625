//! What `full_page_writes` costs, on a cluster that lies wholly on a volume.
//!
//! Promise: on and off take turns on the same cluster; each run begins right after a checkpoint,
//! when PostgreSQL would log each page it touches as a whole. The volume is past the page cache, as
//! off asks for.
//! Never: says that off is safe; the power cuts do.

use holdfast_figures::{Bar, Better, Figure, Panel, Scale};

use super::cluster::{Cluster, SCALE};
use super::load::Load;
use super::{CLIENTS, SETTINGS, WARM_UP_S};
use crate::cleanup::WorkDir;
use crate::disks::{Disks, Setting};
use crate::error::DemoError;
use crate::plot::colour;
use crate::progress::Progress;
use crate::site::Way;
use crate::volume::Volume;

/// Values of `full_page_writes`.
const VALUES: [&str; 2] = ["on", "off"];

/// One run.
struct Sample {
    value: &'static str,
    per_second: f64,
    wal_bytes: f64,
}

/// Measures both values `repetitions` times. The work directory is empty before.
pub(crate) fn run(
    work: &WorkDir,
    repetitions: u32,
    seconds: u32,
    progress: Progress,
) -> Result<Vec<Figure>, DemoError> {
    let disks = Disks::mount(work)?;
    let mut volume = Volume::make(disks.site(Way::Direct).uncached(), Cluster::user()?)?;
    let data = volume.mount().join("data");
    let mut cluster = Cluster::create(work.path(), &data, false, SETTINGS)?;
    cluster.start(&["synchronous_commit=off"])?;
    cluster.run("pgbench", |pgbench| pgbench.args(["-i", "-q", "-s", &SCALE.to_string()]))?;
    cluster.stop()?;
    let mut samples = Vec::new();
    for repetition in 0..repetitions {
        let mut order = VALUES;
        order.rotate_left(repetition as usize % VALUES.len());
        for value in order {
            let sample = sample(&mut cluster, &volume, value, seconds)?;
            progress.say(&sample.sentence());
            samples.push(sample);
        }
    }
    volume.give_back()?;
    Ok(figures(&samples))
}

fn sample(
    cluster: &mut Cluster,
    volume: &Volume,
    value: &'static str,
    seconds: u32,
) -> Result<Sample, DemoError> {
    cluster.start(&[&format!("full_page_writes={value}")])?;
    let load = |seconds| Load { clients: CLIENTS, seconds, round: None };
    load(WARM_UP_S).start(cluster)?.finish()?.undisturbed()?;
    cluster.query("CHECKPOINT")?;
    volume.settle()?;
    let before = wal_bytes(cluster)?;
    let outcome = load(seconds).start(cluster)?.finish()?.undisturbed()?;
    let written = wal_bytes(cluster)? - before;
    cluster.stop()?;
    let wal_bytes = written / outcome.acknowledged.len() as f64;
    Ok(Sample { value, per_second: outcome.per_second, wal_bytes })
}

/// How far the log has been written, in bytes.
fn wal_bytes(cluster: &Cluster) -> Result<f64, DemoError> {
    let answer = cluster.query("SELECT pg_current_wal_lsn() - '0/0'::pg_lsn")?;
    answer.parse().map_err(|_| DemoError::new("reading the end of the log", answer))
}

impl Sample {
    fn sentence(&self) -> String {
        let Sample { value, per_second, wal_bytes } = self;
        format!(
            "PostgreSQL wholly on a volume, full_page_writes={value:<3} {per_second:>8.0} \
             transactions/s, {wal_bytes:.0} bytes of WAL each"
        )
    }
}

/// What is to be compared by eye.
pub(crate) fn panels() -> [Panel; 2] {
    let panel = |title: &str, measure: &str| {
        let bar = |setting, value, label| {
            let id = format!("postgres.full_page_writes.{value}.{measure}");
            Bar { label: String::from(label), colour: colour(setting), id }
        };
        let bars = vec![
            bar(Setting::Sync, "on", "full_page_writes=on"),
            bar(Setting::HOLDFAST, "off", "full_page_writes=off"),
        ];
        let title = format!("PostgreSQL wholly on a volume, {title}");
        Panel { title, scale: Scale::Linear, bars }
    };
    [panel("transactions/s", "tps"), panel("bytes of WAL a transaction", "wal_bytes")]
}

fn figures(samples: &[Sample]) -> Vec<Figure> {
    let of = |value: &str, measure: fn(&Sample) -> f64| -> Vec<f64> {
        samples.iter().filter(|sample| sample.value == value).map(measure).collect()
    };
    let over = |measure| {
        let (off, on) = (of("off", measure), of("on", measure));
        off.into_iter().zip(on).map(|(off, on)| off / on).collect()
    };
    let id = |last: &str| format!("postgres.full_page_writes.{last}");
    let (higher, lower) = (Better::Higher, Better::Lower);
    let mut all = vec![
        Figure::of(id("wal_bytes_off_over_on"), "ratio", lower, over(|it| it.wal_bytes)),
        Figure::of(id("tps_off_over_on"), "ratio", higher, over(|it| it.per_second)),
    ];
    for value in VALUES {
        let rates = of(value, |it| it.per_second);
        let bytes = of(value, |it| it.wal_bytes);
        all.push(Figure::of(id(&format!("{value}.tps")), "transactions/s", higher, rates));
        let id = id(&format!("{value}.wal_bytes"));
        all.push(Figure::of(id, "bytes/transaction", lower, bytes));
    }
    all
}

#[cfg(test)]
mod tests;
