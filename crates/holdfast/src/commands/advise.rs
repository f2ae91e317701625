//! `holdfast advise`.
//!
//! Promise: what is said of a disk was measured just now, by writes that waited for it; what an
//! acknowledgement survives is what the claims say.
//! Never: changes anything, or promises what a database gains: it does other things than wait.

use crate::output::{Output, Progress};
use holdfast_config::claims::{Facts, Failure, Memory, PowerSource, Storage, Verdict, judge};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_io::Shown;
use holdfast_machine::bounded;
use holdfast_machine::disks::{self, Disk, Kept};
use holdfast_machine::found::storage_at;
use serde::{Serialize, Serializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a disk may take with all that is asked of it. One that is only slow takes less.
const PATIENCE: Duration = Duration::from_secs(10);
/// A log on another disk is worth its trouble from here on.
const WORTH: f64 = 2.0;

/// What was found, and what follows.
#[derive(Debug, Serialize)]
struct Advice {
    disks: Vec<Measured>,
    /// Where logs belong, if any disk can have them.
    #[serde(serialize_with = "place")]
    logs_on: Option<PathBuf>,
    /// Those whose commits would wait less with their log there, and how many times less.
    gains: Vec<Gain>,
    /// What an acknowledgement from ordinary memory means.
    memory: Verdict,
}

/// A disk, and how it did.
#[derive(Debug, Serialize)]
struct Measured {
    #[serde(flatten)]
    disk: Disk,
    /// In microseconds; none if it could not be measured.
    kept: Option<Kept>,
    /// Why no log should be there, or why it was not measured.
    objection: Option<String>,
}

#[derive(Debug, Serialize)]
struct Gain {
    #[serde(serialize_with = "disks::as_text")]
    at: PathBuf,
    times: f64,
}

/// A path as JSON, or none.
fn place<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|it| it.display().to_string()).serialize(to)
}

/// Measures the disks of these directories, or all, and says where logs belong.
pub(crate) fn advise(directories: &[PathBuf], output: Output) -> Outcome<()> {
    let mut progress = Progress::new();
    let measured = match directories {
        [] => disks::all().into_iter().map(|disk| Measured::of(disk, &mut progress)).collect(),
        named => {
            named.iter().map(|it| named_one(it, &mut progress)).collect::<Outcome<Vec<_>>>()?
        }
    };
    drop(progress);
    if measured.is_empty() {
        let why = "no file system here is on a device that the kernel tells of";
        let remedy = "name directories: `holdfast advise DIR`";
        return Err(Problem::new(Exit::Failed, "looking for disks", why, remedy));
    }
    let advice = Advice::from(measured);
    output.result(&advice, &advice.text());
    Ok(())
}

/// Measures the disk of a directory that somebody has named.
fn named_one(directory: &Path, progress: &mut Progress) -> Outcome<Measured> {
    let named = directory.to_owned();
    let found = bounded::within(PATIENCE, move || named.is_dir().then(|| disks::of(&named)));
    let nowhere = || Disk { at: directory.to_owned(), kind: String::new(), device: String::new() };
    match found {
        Some(Some(disk)) => Ok(Measured::of(disk, progress)),
        Some(None) => {
            let what = format!("measuring the disk of {}", directory.display());
            Err(Problem::new(Exit::Usage, what, "it is no directory", "name directories"))
        }
        None => Ok(Measured { disk: nowhere(), kept: None, objection: Some(silent()) }),
    }
}

fn silent() -> String {
    format!("not measured: no answer in {} s", PATIENCE.as_secs())
}

impl Measured {
    fn of(disk: Disk, progress: &mut Progress) -> Measured {
        progress.say(&format!("measuring {}", shown(&disk.at)));
        let at = disk.at.clone();
        let seen = bounded::within(PATIENCE, move || (disks::measure(&at), storage_at(&at)));
        let (kept, why_not) = match seen {
            Some((Ok(kept), Storage::Disk)) => (Some(kept), None),
            Some((Ok(kept), Storage::Ram(what))) => {
                (Some(kept), Some(format!("{what}, which is RAM: no place for a log")))
            }
            Some((Err(error), _)) => (None, Some(format!("not measured: {error}"))),
            None => (None, Some(silent())),
        };
        Measured { disk, kept, objection: why_not }
    }

    /// How long a write waits there, if a log may be there.
    fn wait_us(&self) -> Option<f64> {
        self.objection.is_none().then_some(self.kept?.median_us)
    }

    fn line(&self, width: usize) -> String {
        let Disk { at, kind, device } = &self.disk;
        let figures = self.kept.map(|kept| {
            let Kept { writes, median_us, worst_us, free_bytes } = kept;
            let (median, worst) = (milliseconds(median_us), milliseconds(worst_us));
            format!("{median}, at worst {worst}, of {writes}; {} free", rounded(free_bytes))
        });
        let said = [figures, self.objection.clone()].into_iter().flatten().collect::<Vec<_>>();
        let (at, device) = (shown(at), Shown::name(device));
        format!("  {at:<width$}  {kind} on {device}: {}\n", said.join("; "))
    }
}

impl Advice {
    fn from(disks: Vec<Measured>) -> Advice {
        let waits = disks.iter().filter_map(|it| Some((it.wait_us()?, &it.disk.at)));
        let best = waits.min_by(|one, other| one.0.total_cmp(&other.0));
        let best = best.map(|(wait_us, at)| (wait_us, at.clone()));
        let gain = |it: &Measured| {
            let times = it.wait_us()? / best.as_ref()?.0;
            (times >= WORTH).then(|| Gain { at: it.disk.at.clone(), times })
        };
        let gains = disks.iter().filter_map(gain).collect();
        let facts = Facts {
            memory: Memory::Shm,
            power: PowerSource::None,
            must_survive: &[Failure::Process],
            write_through: false,
        };
        let memory = judge(&facts).expect("a process is what any verdict can be asked for");
        Advice { logs_on: best.map(|(_, at)| at), disks, gains, memory }
    }

    fn text(&self) -> String {
        let width = self.disks.iter().map(|it| shown(&it.disk.at).len()).max();
        let width = width.unwrap_or_default();
        let mut text = "how long a write of 4 KiB waits until its disk has it:\n".to_owned();
        self.disks.iter().for_each(|it| text += &it.line(width));
        text + "\n" + &self.about_disks() + "\n" + &self.about_memory()
    }

    fn about_disks(&self) -> String {
        let Some(best) = &self.logs_on else {
            return match self.disks.iter().any(|it| it.kept.is_some()) {
                true => "no disk here can have a log\n".to_owned(),
                false => "nothing here could be measured, so nothing is known of it\n".to_owned(),
            };
        };
        let at = shown(best);
        let compared = self.disks.iter().filter(|it| it.wait_us().is_some()).count();
        if compared == 1 {
            return format!(
                "{at} alone could be measured; with the default must_survive a commit of what is \
                 there waits as long\nas without a volume, and one of what is on a slower disk \
                 waits less with its log there\n"
            );
        }
        if self.gains.is_empty() {
            return format!(
                "none of these answers in less than half the time of another: with the default \
                 must_survive a commit\nwaits as long as without a volume, wherever its log is \
                 ({at} is as good as any);\na small disk that answers sooner, for logs alone, \
                 changes that\n"
            );
        }
        let lines = self.gains.iter().map(|gain| {
            format!(
                "a commit of what is on {} waits {:.1} times less with its log on {at}\n",
                shown(&gain.at),
                gain.times
            )
        });
        let log = log_on(best).join("holdfast/NAME");
        lines.collect::<String>()
            + &format!(
                "  log = \"{}\" in its section, and nothing else: process, os and power are \
                 survived as before,\n  as far as that disk keeps what it says that it has\n",
                log.display()
            )
    }

    fn about_memory(&self) -> String {
        let words =
            |those: &[Failure]| those.iter().map(|it| it.word()).collect::<Vec<_>>().join(", ");
        let mut text = format!(
            "a commit that waits for ordinary memory alone (must_survive = [\"process\"]) survives \
             {}, and not {}\n",
            words(&self.memory.survives),
            words(&self.memory.lost_in)
        );
        for gap in &self.memory.missing {
            text += &format!("  for {}: {}\n", gap.failure.word(), gap.supply);
        }
        text
    }
}

/// Where logs are usually, if that is on the same disk.
fn log_on(at: &Path) -> PathBuf {
    let usual = disks::of(Path::new("/var/lib"));
    if usual.device == disks::of(at).device { usual.at } else { at.to_owned() }
}

/// A path in a line for people.
fn shown(path: &Path) -> String {
    Shown::name(&path.display().to_string()).to_string()
}

fn milliseconds(us: f64) -> String {
    format!("{:.3} ms", us / 1000.0)
}
