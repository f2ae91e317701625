//! What a log knows of the memory that its newest bytes were in: the file `region` beside it.
//!
//! Promise: memory that is gone is noticed. Where nothing but a person can have taken it, nothing
//! goes on before somebody says so; where a restart took it, what that may have cost is said once,
//! and kept.
//! Never: looks into memory that is there, except to tell whose it is.

use super::boot::Boot;
use super::common::{FORMAT, Note, hex};
use super::home::{has_note, has_nothing_more};
use super::note::{get, put};
use crate::observe::{Observation, observe};
use crate::remedy::{accept_memory_lost, end_of_use};
use holdfast_config::claims::{Class, Failure, MediumKind, Verdict};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_config::{MemoryConfig, medium_at};
use holdfast_io::Files;
use holdfast_io::real::RealFiles;
use holdfast_log::{Log, LogConfig};
use holdfast_memory::Medium;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Name of the file.
pub(super) const NAME: &str = "region";

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RegionNote {
    /// Version of what the file says.
    pub(crate) format: u32,
    /// The log, in hexadecimal digits.
    pub identity: String,
    /// The run of the system in which the memory was used last.
    pub boot: String,
    /// What it is made of.
    pub medium: MediumKind,
    /// Where it is.
    pub path: Option<PathBuf>,
    /// What acknowledgements on it mean.
    pub class: Class,
    /// Whether it outlives a restart of the system.
    pub outlives_os: bool,
    /// Most bytes that only this memory can have.
    pub bytes_max: u64,
    /// The log's device has everything: the memory was closed, or somebody said to go on without.
    pub drained: bool,
    /// What memory that is gone may have cost, the last time.
    pub loss: Option<Loss>,
}

/// What may be lost with memory that is gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loss {
    /// When it was noticed, seconds since 1970.
    pub noticed_s: u64,
    /// Most bytes of acknowledged changes.
    pub bytes_max: u64,
    /// What took it, for people.
    pub cause: String,
}

impl Loss {
    fn new(bytes_max: u64, cause: &str) -> Loss {
        let noticed_s = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
        Loss { noticed_s, bytes_max, cause: cause.to_owned() }
    }

    /// What the log in this directory may have lost since the system has started, for people.
    pub fn of_this_run(log: &Path) -> Option<String> {
        let note = RegionNote::of(&RealFiles::open(log).ok()?).ok()?;
        let loss = note.found()?.loss.clone()?;
        let began_s = Boot::current().ok()?.began_ns.cast_unsigned() / 1_000_000_000;
        (loss.noticed_s >= began_s).then(|| loss.text())
    }

    /// For people.
    pub fn text(&self) -> String {
        let (cause, bytes) = (&self.cause, rounded(self.bytes_max));
        format!("{cause}: at most {bytes} of acknowledged changes may be lost")
    }
}

/// Why nothing goes on without memory that is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Gone {
    /// It is there, elsewhere.
    Elsewhere(PathBuf),
    /// The system has not restarted, so nothing has taken it that Holdfast knows of.
    SameRun,
    /// It was to outlive the restart.
    Outlasted,
    /// What the log knew of it is gone, or cannot be read.
    Unknown,
}

/// Whether a log may go on without the memory it had. `is_there` says whether memory of the log is
/// where the note has it.
pub(crate) fn judge(
    note: &Note<RegionNote>,
    boot: &str,
    is_there: bool,
) -> Result<Option<Loss>, Gone> {
    let note = match note {
        Note::Missing => return Ok(None),
        Note::Unreadable => return Err(Gone::Unknown),
        Note::Found(note) => note,
    };
    let ends_with_process = note.medium == MediumKind::Private;
    if note.drained || ends_with_process {
        return Ok(None);
    }
    match &note.path {
        Some(path) if is_there => Err(Gone::Elsewhere(path.clone())),
        _ if note.boot == boot => Err(Gone::SameRun),
        _ if note.outlives_os => Err(Gone::Outlasted),
        _ => {
            let lost = || Loss::new(note.bytes_max, "a restart of the system took the memory");
            Ok((note.class == Class::Memory).then(lost))
        }
    }
}

impl RegionNote {
    /// What lies beside the log in `files`.
    pub fn of(files: &dyn Files) -> io::Result<Note<RegionNote>> {
        get(files, NAME)
    }

    /// Where the memory of the log in this directory is, if that says so and there is a place.
    pub fn medium_of(log: &Path) -> Option<Medium> {
        let note = RegionNote::of(&RealFiles::open(log).ok()?).ok()?;
        let note = note.found()?;
        note.path.as_deref().map(|path| medium_at(note.medium, Some(path)))
    }

    /// Whether what was acknowledged on the log in this directory may be in its memory alone, as
    /// far as that says anything.
    pub fn is_of_memory(log: &Path) -> Option<bool> {
        match RealFiles::open(log).and_then(|files| RegionNote::of(&files)) {
            Ok(Note::Missing) => None,
            Ok(Note::Found(note)) => Some(note.class == Class::Memory && !note.drained),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // What cannot be read has not said that it is not.
            Ok(Note::Unreadable) | Err(_) => Some(true),
        }
    }

    /// The memory, for people, that whoever opens the log without it may miss: nothing where the
    /// log's device has all that there was.
    pub fn missed(files: &dyn Files) -> io::Result<Option<String>> {
        Ok(match RegionNote::of(files)? {
            Note::Missing => None,
            Note::Unreadable => {
                Some(format!("memory of which the damaged file \"{NAME}\" beside its log tells"))
            }
            Note::Found(note) if note.drained || note.medium == MediumKind::Private => None,
            Note::Found(note) => {
                let at = note.path.map_or(String::new(), |path| format!(" {}", path.display()));
                Some(format!("its memory{at}"))
            }
        })
    }

    /// Asked where the memory of `service` is not where it should be: whether to go on without it,
    /// and what that may cost.
    pub fn without(
        service: &str,
        memory: &MemoryConfig,
        files: &dyn Files,
    ) -> Outcome<Option<Loss>> {
        let what = format!("attaching the memory of {}", service.replacen('/', " ", 1));
        let failed = |error| Problem::new(Exit::Failed, &*what, error, "mend the log's disk");
        let note = RegionNote::of(files).map_err(failed)?;
        let boot = Boot::current().map_err(failed)?;
        // Where a home is to get changes, the memory was noted before.
        let note = match note {
            Note::Missing if may_miss_memory(files) => Note::Unreadable,
            note => note,
        };
        let is_there = note.found().is_some_and(|note| note.is_there(memory));
        judge(&note, &boot.id, is_there).map_err(|gone| {
            let (kind, name) = service.split_once('/').unwrap_or(("log", service));
            let at_risk = at_risk(&note, files);
            let (why, remedy) = gone.told(memory.path.as_deref(), &at_risk, (kind, name));
            let held = RegionNote::held_elsewhere(files, memory);
            let why = held.map_or(why.clone(), |held| format!("{why}; {held}"));
            Problem::new(Exit::Damaged, what, why, remedy)
        })
    }

    /// Whether the memory it tells of is there. Memory where the configuration has it now was
    /// looked for already.
    fn is_there(&self, now: &MemoryConfig) -> bool {
        self.seen_elsewhere(now).is_some()
    }

    /// The memory it tells of, if that is there, and not where the configuration has it now.
    fn seen_elsewhere(&self, now: &MemoryConfig) -> Option<Observation> {
        let before = MemoryConfig { medium: self.medium, path: self.path.clone(), ..now.clone() };
        let is_elsewhere = self.path.is_some() && self.path != now.path;
        let seen = is_elsewhere.then(|| observe(&before.medium()).ok()).flatten();
        seen.filter(|seen| hex(seen.identity) == self.identity)
    }

    /// What the log's memory holds, where it is not where the configuration has it now, for people.
    pub fn held_elsewhere(files: &dyn Files, now: &MemoryConfig) -> Option<String> {
        let note = RegionNote::of(files).ok()?.found().cloned()?;
        let seen = note.seen_elsewhere(now)?;
        Some(format!(
            "its memory {} still holds {} of its log, {} of which the log's disk does not have",
            note.path?.display(),
            rounded(seen.unapplied_bytes()),
            rounded(seen.dirty_bytes())
        ))
    }

    /// Whether the log in `files` has all of the memory that is configured, and says so: the next
    /// attachment misses nothing without it.
    pub fn is_drained(files: &dyn Files, memory: &MemoryConfig) -> bool {
        matches!(RegionNote::of(files), Ok(Note::Found(note)) if note.tells_all_of(memory))
    }

    fn tells_all_of(&self, memory: &MemoryConfig) -> bool {
        self.drained && self.path == memory.path
    }

    /// [`Self::is_drained`], and what has the name of that memory is of the log and is no longer
    /// needed: the home has all of it, or the log's disk has, as it was read. Otherwise it may be
    /// the only whole copy of what the home lacks.
    pub fn has_needless(files: &dyn Files, memory: &MemoryConfig, config: &LogConfig) -> bool {
        let Ok(Note::Found(note)) = RegionNote::of(files) else { return false };
        let is_its_own = |seen: &Observation| hex(seen.identity) == note.identity;
        let is_read = |tail: u64| {
            Log::foresee(files, None, config).is_ok_and(|alone| alone.tail.get() >= tail)
        };
        let is_elsewhere = |seen: &Observation| {
            seen.dirty_bytes() == 0 && (seen.unapplied_bytes() == 0 || is_read(seen.tail))
        };
        note.tells_all_of(memory)
            && observe(&memory.medium()).is_ok_and(|seen| is_its_own(&seen) && is_elsewhere(&seen))
    }

    /// Says that the log's newest bytes may be in this memory from now on.
    pub(crate) fn begin(
        files: &dyn Files,
        (memory, verdict, bytes_max): (&MemoryConfig, &Verdict, u64),
        loss: Option<Loss>,
    ) -> io::Result<()> {
        let Ok(identity) = Log::identity_of(files) else { return Ok(()) };
        let before = RegionNote::of(files)?;
        let of_before = before.found().and_then(|note| note.loss.clone());
        let note = RegionNote {
            format: FORMAT,
            identity: hex(identity),
            boot: Boot::current()?.id,
            medium: memory.medium,
            path: memory.path.clone(),
            class: verdict.class,
            outlives_os: outlives_os(verdict),
            bytes_max,
            drained: false,
            loss: loss.or(of_before),
        };
        if before.found() == Some(&note) {
            return Ok(());
        }
        put(files, NAME, &note)
    }

    /// Says what acknowledgements mean from now on.
    pub fn acknowledges(files: &dyn Files, verdict: &Verdict) -> io::Result<()> {
        let Note::Found(before) = RegionNote::of(files)? else { return Ok(()) };
        let note = RegionNote {
            class: verdict.class,
            outlives_os: outlives_os(verdict),
            ..before.clone()
        };
        if note == before { Ok(()) } else { put(files, NAME, &note) }
    }

    /// Says that the log's device has everything.
    pub fn drained(files: &dyn Files) -> io::Result<()> {
        let Note::Found(note) = RegionNote::of(files)? else { return Ok(()) };
        if note.drained {
            return Ok(());
        }
        put(files, NAME, &RegionNote { drained: true, ..note })
    }

    /// Goes on without memory that is gone, as somebody said. What that may cost.
    pub fn accept_loss(files: &dyn Files, now: &MemoryConfig) -> io::Result<Loss> {
        let before = RegionNote::of(files)?.found().cloned();
        let bytes_max = before.as_ref().map_or(now.size.0, |note| note.bytes_max);
        let loss = Loss::new(bytes_max, "memory was given up on request");
        let note = RegionNote {
            format: FORMAT,
            identity: Log::identity_of(files).map(hex).unwrap_or_default(),
            boot: Boot::current()?.id,
            medium: now.medium,
            path: now.path.clone(),
            class: before.as_ref().map_or(Class::Memory, |note| note.class),
            outlives_os: false,
            bytes_max,
            drained: true,
            loss: Some(loss.clone()),
        };
        put(files, NAME, &note)?;
        Ok(loss)
    }
}

/// Whether what memory acknowledged is there after a restart of the system.
fn outlives_os(verdict: &Verdict) -> bool {
    verdict.class == Class::Memory && verdict.survives.contains(&Failure::Os)
}

impl Gone {
    /// Why, and what to do.
    fn told(
        &self,
        now: Option<&Path>,
        at_risk: &str,
        (kind, name): (&str, &str),
    ) -> (String, String) {
        let accept = accept_memory_lost(kind, name);
        let now = now.unwrap_or(Path::new("nowhere"));
        // One that was emptied is to be put back as well, and is not missed by its name.
        let is_emptied = now.symlink_metadata().is_ok();
        let now = now.display();
        let gone = match is_emptied {
            true => format!("{now} has no region any more (it is empty, or begins with zeros)"),
            false => format!("{now} is gone"),
        };
        match self {
            Gone::Elsewhere(path) => {
                let (path, end) = (path.display(), end_of_use(kind));
                let why = format!("the log's memory is {path}, and the configuration says {now}");
                let remedy = format!(
                    "set memory.path = \"{path}\" and {end} before it is changed; or give it up \
                     with {accept}: {at_risk}"
                );
                (why, remedy)
            }
            Gone::SameRun => (
                format!("{gone}, although the system has not restarted; {at_risk}"),
                format!("put it back, or go on without it: {accept}"),
            ),
            Gone::Outlasted => (
                format!("{gone}, which outlives restarts of the system; {at_risk}"),
                format!("put it back, or go on without it: {accept}"),
            ),
            Gone::Unknown => (
                format!(
                    "{gone}, and the file \"{NAME}\" beside the log is gone or damaged, and its \
                     copy too"
                ),
                format!("put one of them back, or go on without it: {accept}; {at_risk}"),
            ),
        }
    }
}

/// Whether the log has changes that its home is to get, or had them in memory.
fn may_miss_memory(files: &dyn Files) -> bool {
    let is_empty = || Log::verify(files, &mut |_| {}).is_ok_and(|log| log.end <= log.first);
    has_note(files) && !has_nothing_more(files) && !is_empty()
}

/// What only the memory had, as far as can be told without it.
fn at_risk(note: &Note<RegionNote>, files: &dyn Files) -> String {
    let end = Log::verify(files, &mut |_| {}).map(|log| log.end.get());
    let end = end.map_or(String::new(), |end| format!(" behind LSN {end}"));
    match note.found() {
        Some(note) => format!(
            "at most {} of what was acknowledged{end} is lost with it",
            rounded(note.bytes_max)
        ),
        None => format!("what was acknowledged{end} may be lost with it"),
    }
}
