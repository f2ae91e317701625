//! What a log knows of its home: the file `home` beside it.
//!
//! Promise: a log is brought together with no home but its own, as it was left: one that wears the
//! log's badge, no older copy of it, and none whose barrier somebody took away.
//! Never: changes what is in a home.

use super::badge::{BADGE, Badge, Barrier, Wearer};
use super::boot::{Boot, now_ns};
use super::certain::Moments;
use super::common::{FORMAT, Note, hex};
use super::hidden::refuse_hidden;
use super::note::{get, put};
use crate::observe::observe_left;
use holdfast_config::VolumeConfig;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_io::real::RealEntropy;
use holdfast_io::{Entropy, Files};
use holdfast_log::{Foreseen, Log, OpenError};
use holdfast_machine::advice::cure;
use holdfast_volume::Told;
use rustix::fs::{FileType, Stat, fstat, fstatfs, major, minor};
use serde::{Deserialize, Serialize};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the file.
pub(super) const NAME: &str = "home";

/// The permission bits of a home that nobody knows those of any more.
const OWNER_ONLY: u32 = 0o700;

/// What the file says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct HomeNote {
    pub format: u32,
    /// The log, in hexadecimal digits.
    pub identity: String,
    /// How often the two were brought together.
    pub generation: u64,
    /// The badge of that generation may not be there yet.
    pub is_begun: bool,
    /// The home wears a badge.
    pub has_badge: bool,
    /// The home has everything that the log has.
    pub is_complete: bool,
    /// Where it was.
    pub path: PathBuf,
    /// What it was there.
    pub place: Place,
    /// The run of the system in which the two were brought together.
    pub boot: String,
    /// The log was made again from memory, and nobody knew which home it had: one that wears its
    /// badge, whatever else the note says.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_unknown: bool,
    /// Drawn when the two were brought together, as in the badge.
    #[serde(default)]
    pub branch: Option<String>,
    /// That of the badge of the generation before.
    #[serde(default)]
    pub branch_before: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks for a reference")]
fn is_false(flag: &bool) -> bool {
    !flag
}

/// What tells a home without a badge from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Place {
    /// It is a block device.
    pub is_device: bool,
    /// The number of the device, which means something in one run of the system only; or of the
    /// kind of file system that it is on: no other number of those lasts everywhere.
    pub number: u64,
    /// What a device says of itself.
    pub serial: String,
}

impl Place {
    fn of(home: impl AsFd, stat: &Stat) -> io::Result<Place> {
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::BlockDevice => {
                let number = stat.st_rdev;
                Place { is_device: true, number, serial: serial_of(number) }
            }
            _ => {
                let number = fstatfs(home)?.f_type.cast_unsigned();
                Place { is_device: false, number, serial: String::new() }
            }
        })
    }

    /// Whether it may be the same.
    fn may_be(&self, other: &Place, same_run: bool) -> bool {
        let same_number = self.number == other.number || (self.is_device && !same_run);
        self.is_device == other.is_device && same_number && self.serial == other.serial
    }
}

/// Names that disks and parts of disks have besides their numbers.
fn serial_of(rdev: u64) -> String {
    let device = format!("/sys/dev/block/{}:{}", major(rdev), minor(rdev));
    let files =
        ["partition", "wwid", "device/wwid", "../wwid", "../device/wwid", "dm/uuid", "size"];
    let read = |file: &&str| std::fs::read_to_string(format!("{device}/{file}")).ok();
    let words: Vec<String> = files.iter().filter_map(read).map(|it| it.trim().into()).collect();
    words.join(" ")
}

/// A home as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// What it wears.
    pub badge: Option<Badge>,
    /// What it is.
    pub place: Place,
    /// Its permission bits.
    pub mode: u32,
    /// The badge was given to another directory, of which this is a copy.
    pub is_copy: bool,
}

/// Why a home is not taken for the log's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// It wears no badge, and the log's home does.
    NoBadge,
    /// It wears another log's.
    OtherLog(String),
    /// It is a copy from when the two had been brought together less often.
    OlderCopy(u64),
    /// It was brought together with a copy of the log, or is a copy of what it was with the log
    /// before the two were put back.
    OtherBranch(u64),
    /// The log is: the home was brought together with it this often.
    OlderLog(u64),
    /// The log ends here, and its home has been where it went on to there.
    ShorterLog { end: u64, was: u64 },
    /// It is a copy, made file by file, of the home whose files the log knows by number.
    Copied,
    /// It has the log up to here, and the log has given back what is below there.
    Behind { has: u64, released: u64 },
    /// It has no badge, and is not what it was.
    OtherPlace,
    /// The barrier was taken away by hand.
    Entered(u32),
    /// The file beside the log is gone or damaged, and its copy too.
    Unknown,
}

/// Whether the log knows that its home wears a badge, or cannot tell.
fn may_be_worn(note: &Note<HomeNote>) -> bool {
    match note {
        Note::Missing => false,
        Note::Unreadable => true,
        Note::Found(note) => note.has_badge || note.is_unknown,
    }
}

/// Whether a home is the log's, as it was left.
pub(crate) fn judge(
    identity: &str,
    note: &Note<HomeNote>,
    found: &Found,
    boot: &str,
) -> Result<(), Fault> {
    match (&found.badge, note) {
        (Some(badge), _) if badge.identity != identity => {
            Err(Fault::OtherLog(badge.identity.clone()))
        }
        // Whoever gave the home its badge had noted it: without the note nobody can tell which of
        // home and log is the older one.
        (Some(_), Note::Missing | Note::Unreadable) | (None, Note::Unreadable) => {
            Err(Fault::Unknown)
        }
        (None, Note::Missing) => Ok(()),
        (Some(badge), Note::Found(note)) => judge_badge(badge, note, found),
        (None, Note::Found(note)) if note.has_badge || note.is_unknown => Err(Fault::NoBadge),
        (None, Note::Found(note)) => {
            let may_be = found.place.may_be(&note.place, note.boot == boot);
            if may_be || note.is_complete { Ok(()) } else { Err(Fault::OtherPlace) }
        }
    }
}

fn judge_badge(badge: &Badge, note: &HomeNote, found: &Found) -> Result<(), Fault> {
    let mode = found.mode;
    // The note is written first, so no badge is ever of a later attachment.
    if badge.generation > note.generation && !note.is_unknown {
        return Err(Fault::OlderLog(badge.generation));
    }
    if !note.is_complete && found.is_copy {
        return Err(Fault::Copied);
    }
    let oldest = note.generation - u64::from(note.is_begun);
    let is_known = !note.is_complete && !note.is_unknown;
    if is_known && badge.generation < oldest {
        return Err(Fault::OlderCopy(badge.generation));
    }
    if is_known && !is_of_branch(badge, note) {
        return Err(Fault::OtherBranch(badge.generation));
    }
    match badge.barrier {
        Barrier::Closed(_) if mode != 0 => Err(Fault::Entered(mode)),
        _ => Ok(()),
    }
}

/// Whether a home wears what the log gave it. Its number alone does not tell: two copies of a log
/// count on from the same.
fn is_of_branch(badge: &Badge, note: &HomeNote) -> bool {
    let given = match badge.generation < note.generation {
        true => &note.branch_before,
        false => &note.branch,
    };
    // An earlier version drew none.
    given.is_none() || *given == badge.branch
}

/// A log and the home that was opened for it.
pub struct Bond<'a> {
    name: &'a str,
    volume: &'a VolumeConfig,
    home: &'a Path,
    log: &'a dyn Files,
    wearer: Arc<Wearer>,
    found: Found,
    identity: [u8; 16],
    note: Note<HomeNote>,
    boot: Boot,
}

impl<'a> Bond<'a> {
    /// Looks at both. Nothing if there is no log that can be read: who opens it says why.
    pub fn look(
        name: &'a str,
        (volume, home): (&'a VolumeConfig, impl AsFd),
        log: &'a dyn Files,
    ) -> Outcome<Option<Bond<'a>>> {
        let path = volume.home.as_path();
        let Ok(identity) = Log::identity_of(log) else { return Ok(None) };
        let what = || format!("looking at home {} of volume {name}", path.display());
        let failed = |error: io::Error| {
            Problem::new(Exit::Failed, what(), error, "mend its disk, or the log's")
        };
        let wearer = Arc::new(Wearer::of(&home).map_err(failed)?);
        let found = look_at(&home, &wearer).map_err(failed)?;
        let (note, boot) = (get(log, NAME).map_err(failed)?, Boot::current().map_err(failed)?);
        refuse_hidden(&what(), (path, &wearer), may_be_worn(&note))?;
        Ok(Some(Bond { name, volume, home: path, log, wearer, found, identity, note, boot }))
    }

    /// Refuses a home that is not the log's, as it was left.
    pub fn check(&self) -> Outcome<()> {
        self.judge().map_err(|fault| self.refusal(&fault))
    }

    /// [`Self::check`] that says what somebody changed where it was found out.
    pub fn check_saying(&self, changed: &str) -> Outcome<()> {
        self.judge().map_err(|fault| match fault {
            Fault::Entered(_) if !changed.is_empty() => {
                let refusal = self.refusal(&fault);
                Problem { why: format!("{}; changed: {changed}", refusal.why), ..refusal }
            }
            fault => self.refusal(&fault),
        })
    }

    fn judge(&self) -> Result<(), Fault> {
        judge(&hex(self.identity), &self.note, &self.found, &self.boot.id)?;
        // Who opens a log that cannot be opened says why.
        let foreseen = self.is_doubtful().then(|| self.foresee().ok()).flatten();
        foreseen.map_or(Ok(()), |log| self.judge_ends(&Ends::of(&log)))
    }

    /// What an attachment would find of the log and its memory.
    pub(crate) fn foresee(&self) -> Result<Foreseen, OpenError> {
        let seen = observe_left(&self.volume.medium()).map_err(OpenError::Io)?;
        Log::foresee(self.log, seen.as_ref(), &self.volume.log_config())
    }

    /// How much of the log its home does not have, at most, if that can be told.
    pub fn unapplied_bytes(&self) -> Option<u64> {
        self.foresee().ok().map(|log| self.unapplied(&log))
    }

    /// How much of the log its home does not have, for people.
    pub fn describe_unapplied(&self) -> String {
        match self.foresee() {
            Ok(log) => {
                let bytes = rounded(self.unapplied(&log));
                format!("up to {bytes} of the log are still to be applied")
            }
            Err(error) => format!("what of the log is still to be applied cannot be told: {error}"),
        }
    }

    /// Of a log that has come home as a whole nothing is, whatever its last marks say.
    fn unapplied(&self, log: &Foreseen) -> u64 {
        let behind = log.tail.get().saturating_sub(log.released.get());
        if self.is_complete() { 0 } else { behind }
    }

    /// The home says that it is complete, and the log does not: one of them may be an older copy.
    fn is_doubtful(&self) -> bool {
        let is_open = |badge: &Badge| badge.log_end > 0 && badge.barrier == Barrier::Open;
        self.wearer.is_directory()
            && self.found.badge.as_ref().is_some_and(is_open)
            && self.note.found().is_some_and(|note| !note.is_complete)
    }

    fn judge_ends(&self, ends: &Ends) -> Result<(), Fault> {
        let of_this = |badge: &&Badge| badge.identity == hex(self.identity);
        let Some(badge) = self.found.badge.as_ref().filter(of_this) else { return Ok(()) };
        let (end, was) = (ends.durable, badge.log_end);
        if end < was {
            return Err(Fault::ShorterLog { end, was });
        }
        // A log that has come home as a whole may be brought together with any earlier home.
        match (badge.applied, ends.released) {
            (Some(has), Some(released)) if has < released && !self.is_complete() => {
                Err(Fault::Behind { has, released })
            }
            _ => Ok(()),
        }
    }

    /// Whether the log has come home as a whole, and nothing has been logged since.
    fn is_complete(&self) -> bool {
        self.note.found().is_some_and(|note| note.is_complete)
    }

    /// Refuses a log that ends before the place that it had got to with this home, and a home that
    /// lacks what the log has given back. Both are known where the log is open, or has been read.
    pub fn check_ends(&self, ends: &Ends) -> Outcome<()> {
        self.judge_ends(ends).map_err(|fault| self.refusal(&fault))
    }

    /// Since when only others can have changed the home, as far as it tells itself, and up to when
    /// changes were accepted; nothing if it has no badge of this log's.
    pub fn told(&self) -> Option<Told> {
        let badge = self.found.badge.as_ref();
        let badge = badge.filter(|badge| badge.identity == hex(self.identity))?;
        let (alone_since_ns, accepted_ns) = (self.alone_since_ns(badge), badge.accepted_ns);
        Some(Told { alone_since_ns, accepted_ns, now_ns: now_ns() })
    }

    /// A restart ends what the volume did in the run before, if it was not done then. A file's
    /// times are left alone, so that nobody has noted when it was touched.
    fn alone_since_ns(&self, badge: &Badge) -> i64 {
        let note = self.note.found();
        let restarted = note.is_some_and(|note| note.boot != self.boot.id && !note.is_complete);
        let (began_ns, noted_ns, now_ns) = (self.boot.began_ns, badge.noted_ns, now_ns());
        match (restarted, self.wearer.is_directory()) {
            (false, _) => badge.alone_since_ns,
            (true, false) => 0,
            (true, true) => Moments { began_ns, noted_ns, now_ns }.alone_since_ns().unwrap_or(0),
        }
    }

    /// Brings the two together once more. `ends` is what whoever looked at log and memory found:
    /// what could still refuse them comes before anything is noted.
    pub(crate) fn bind(&self, ends: &Ends) -> Outcome<()> {
        self.check()?;
        self.check_ends(ends)?;
        if self.note == Note::Missing {
            let (name, home) = (self.name, self.home.display());
            tracing::info!("{home} is noted as the home of volume {name}");
        }
        let having = |badge: Badge| badge.having(ends.released, self.is_complete());
        let worn = self.found.badge.clone().map(having);
        self.renew(worn, || having(self.fresh_badge()))
    }

    /// Takes the home for the log's, whatever it was.
    pub fn accept(&self) -> Outcome<()> {
        self.renew(None, || self.fresh_badge())
    }

    /// Says that what somebody changed in the home may be written over.
    pub fn accept_changes(&self) -> Outcome<()> {
        self.renew(None, || match self.found.badge.clone() {
            Some(badge) => Badge {
                barrier: self.kept_barrier(),
                alone_since_ns: 0,
                log_end: 0,
                accepted_ns: soon_ns(),
                ..badge
            },
            None => self.fresh_badge(),
        })
    }

    /// The note first: a badge of a generation that no note knows would be nobody's. A file that
    /// wears the right one keeps it. A badge that is not kept is made when it is worn, however long
    /// the note took: giving it to a file is a change of that.
    fn renew(&self, kept: Option<Badge>, made: impl FnOnce() -> Badge) -> Outcome<()> {
        let before = self.note.found();
        let is_worn = kept.is_some() && !self.wearer.is_directory();
        if let (true, Some(note)) = (is_worn, before) {
            let (path, boot) = (self.home.to_owned(), self.boot.id.clone());
            let note =
                HomeNote { is_complete: false, is_unknown: false, path, boot, ..note.clone() };
            return self.put(&note);
        }
        let generation = self.last_generation() + 1;
        let (branch, worn) = (Some(drawn()), self.found.badge.clone());
        let note = HomeNote {
            format: FORMAT,
            identity: hex(self.identity),
            generation,
            is_begun: true,
            has_badge: before.is_some_and(|note| note.has_badge),
            is_complete: false,
            path: self.home.to_owned(),
            place: self.found.place.clone(),
            boot: self.boot.id.clone(),
            is_unknown: false,
            branch: branch.clone(),
            branch_before: worn.and_then(|badge| badge.branch),
        };
        self.put(&note)?;
        let badge = kept.unwrap_or_else(made);
        let alone_since_ns = self.alone_since_ns(&badge);
        let worn = self.wearer.wear(Badge { generation, alone_since_ns, branch, ..badge });
        let has_badge = worn.map_err(|error| {
            let what = format!("giving {} the badge of volume {}", self.home.display(), self.name);
            Problem::new(Exit::Failed, what, error, "nothing is lost; mend the home's disk")
        })?;
        if !has_badge {
            tracing::warn!(
                "{} keeps no attribute {BADGE}: a change of it by others may stay unnoticed, and \
                 nothing bars it",
                self.home.display()
            );
        }
        self.put(&HomeNote { is_begun: false, has_badge, ..note })
    }

    /// The newest that the home may wear. What was begun and never got to the badge is begun again
    /// under the same number, however often: the home that it was begun with is no older copy.
    fn last_generation(&self) -> u64 {
        let noted = self.note.found().map_or(0, |it| it.generation - u64::from(it.is_begun));
        let badge = self.found.badge.as_ref();
        let ours = badge.filter(|badge| badge.identity == hex(self.identity));
        ours.map_or(0, |badge| badge.generation).max(noted)
    }

    fn put(&self, note: &HomeNote) -> Outcome<()> {
        put(self.log, NAME, note).map_err(|error| {
            let what = format!("opening the log of volume {}: noting its home", self.name);
            let remedy = format!("nothing is lost; {}", cure(&error, "the log's disk"));
            Problem::new(Exit::Failed, what, error, remedy)
        })
    }

    /// A badge for this log, which takes the home as it is.
    fn fresh_badge(&self) -> Badge {
        let barrier = self.kept_barrier();
        Badge { barrier, accepted_ns: soon_ns(), ..Badge::new(self.identity, 0) }
    }

    /// The barrier as far as it stands: with it go the bits that the home has to its users.
    fn kept_barrier(&self) -> Barrier {
        let kept = match &self.found.badge {
            Some(badge) => Some(badge.barrier),
            None => self.has_lost_bits().then_some(Barrier::Closed(OWNER_ONLY)),
        };
        kept.filter(|_| self.found.mode == 0).unwrap_or(Barrier::Open)
    }

    /// Whether it was barred, and lost the badge that kept its permission bits.
    pub fn has_lost_bits(&self) -> bool {
        let was_barred = self.note.found().is_some_and(|note| note.has_badge && !note.is_complete);
        was_barred
            && self.found.badge.is_none()
            && self.found.mode == 0
            && self.wearer.is_directory()
    }

    /// Lets the home be entered again.
    pub fn open_home(&self) -> Outcome<()> {
        self.wearer.open().map_err(|error| {
            let what = format!("giving home {} its permissions back", self.home.display());
            Problem::new(Exit::Failed, what, error, "mend its disk")
        })
    }

    fn refusal(&self, fault: &Fault) -> Problem {
        let what = format!("bringing volume {} and its home together", self.name);
        let why = format!("{}; {}", self.why(fault), self.describe_unapplied());
        Problem::new(Exit::Damaged, what, why, self.way_on(fault))
    }

    fn why(&self, fault: &Fault) -> String {
        let (home, note) = (self.home.display(), self.note.found());
        let noted = note.map_or(0, |note| note.generation);
        match fault {
            Fault::NoBadge | Fault::OtherPlace => {
                let empty =
                    if self.wearer.is_empty() { "an empty directory" } else { "another one" };
                let known = note.filter(|note| !note.is_unknown);
                let last = |note: &HomeNote| format!(", last {}", note.path.display());
                let before = known.map_or(String::new(), last);
                format!("{home} is not the home that its log knows{before}, but {empty}")
            }
            Fault::OtherLog(other) => format!("{home} is the home of another log, {other}"),
            Fault::OlderCopy(generation) => format!(
                "{home} is an older copy of the home, of attachment {generation}, and the log was \
                 at {noted} with it"
            ),
            Fault::OtherBranch(generation) => format!(
                "{home} is as a copy of this log left it: attachment {generation} of the two was \
                 another one here"
            ),
            Fault::OlderLog(generation) => format!(
                "{home} is newer than this log: the two were brought together {generation} times, \
                 and this is a copy of the log from attachment {noted}"
            ),
            Fault::ShorterLog { end, was } => format!(
                "{home} is newer than this log, which ends at LSN {end}: with this home it had got \
                 to LSN {was}"
            ),
            Fault::Copied => format!(
                "{home} is a copy of the home, made file by file, and the log knows files of the \
                 home by their numbers"
            ),
            Fault::Behind { has, released } => format!(
                "{home} is an older copy of the home: it has what the log had up to LSN {has}, and \
                 the log has given back what it had up to LSN {released}"
            ),
            Fault::Entered(mode) => format!(
                "somebody gave {home} the permissions {mode:o} while the log had what it lacks, \
                 and may have changed it"
            ),
            Fault::Unknown => format!(
                "the file \"{NAME}\" beside the log is gone or damaged, and its copy too: whether \
                 {home} is as this log left it cannot be told"
            ),
        }
    }

    fn way_on(&self, fault: &Fault) -> String {
        let name = self.name;
        let right = format!("if this is the right home, `holdfast volume accept {name} --home`");
        match fault {
            Fault::NoBadge | Fault::OtherPlace => format!(
                "mount the file system of the right one or put it back, then try again; {right}"
            ),
            Fault::OtherLog(_) => format!("correct home or log; {right}"),
            Fault::OlderCopy(_) | Fault::Behind { .. } => {
                format!("put the newest one back; {right}")
            }
            Fault::OtherBranch(_) => format!(
                "put back the home that was served with this log, or the log that goes with this \
                 one; or `holdfast volume accept {name} --keep home` goes on with this home as it \
                 is, and puts the log aside"
            ),
            Fault::OlderLog(_) | Fault::ShorterLog { .. } => {
                format!("put the newest log back; {}", choose(name))
            }
            Fault::Copied => format!(
                "put that home back, and copy it once it is given back; or, if it is gone, \
                 `holdfast volume accept {name} --keep home` goes on with the copy as it is, and \
                 puts the log aside"
            ),
            Fault::Entered(_) => choose(name),
            Fault::Unknown => format!("put one of them back; {right}"),
        }
    }
}

/// Where a log begins and ends, for its home.
#[derive(Clone, Copy, Debug)]
pub struct Ends {
    /// What is below this the log has given back: its home has it. Nothing if nobody can tell.
    pub released: Option<u64>,
    /// Up to here its device has it.
    pub durable: u64,
}

impl Ends {
    /// Of a log that was looked at.
    pub fn of(log: &Foreseen) -> Ends {
        Ends { released: Some(log.released.get()), durable: log.durable.get() }
    }
}

/// How to choose between a home that somebody changed and a log that has other changes of it.
pub fn choose(name: &str) -> String {
    format!(
        "nothing was applied; `holdfast volume accept {name} --keep log` applies the log over it, \
         and `--keep home` puts the log aside"
    )
}

/// No other attachment has it.
fn drawn() -> String {
    let mut bytes = [0; 8];
    RealEntropy.fill(&mut bytes);
    format!("{:016x}", u64::from_le_bytes(bytes))
}

/// A moment by which what this process is at has its time too.
fn soon_ns() -> i64 {
    now_ns().saturating_add(100_000_000)
}

fn look_at(home: impl AsFd, wearer: &Wearer) -> io::Result<Found> {
    let stat = fstat(&home)?;
    let (badge, mode) = (wearer.badge(), stat.st_mode & 0o7777);
    Ok(Found { badge, place: Place::of(&home, &stat)?, mode, is_copy: wearer.is_copy() })
}

/// Notes the home anew where a log has lost its note of it, or is about to be made again: the home
/// that wears the log's badge, that of the attachment that goes on; or, if it can wear none, one
/// that has been served from then on.
pub fn note_again(
    log: &dyn Files,
    identity: [u8; 16],
    home: (&Path, &OwnedFd),
    was_served: bool,
) -> Outcome<()> {
    let noted = || -> io::Result<()> {
        let is_known = match get::<HomeNote>(log, NAME)? {
            Note::Missing => false,
            Note::Found(note) => !note.is_unknown,
            Note::Unreadable => true,
        };
        match note_of(identity, home, was_served)?.filter(|_| !is_known) {
            Some(note) => put(log, NAME, &note),
            None => Ok(()),
        }
    };
    noted().map_err(|error| not_noted(identity, &error))
}

/// Notes beside a log that is about to be made again that nobody knows its home, unless it has a
/// note of that.
pub fn note_unknown(log: &dyn Files, identity: [u8; 16]) -> Outcome<()> {
    let noted = || match get::<HomeNote>(log, NAME)? {
        Note::Missing => put(log, NAME, &unknown(identity)?),
        Note::Found(_) | Note::Unreadable => Ok(()),
    };
    noted().map_err(|error| not_noted(identity, &error))
}

fn not_noted(identity: [u8; 16], error: &io::Error) -> Problem {
    let what = format!("noting the home of log {} beside it again", hex(identity));
    Problem::new(Exit::Failed, what, error, cure(error, "the log's disk"))
}

/// The note of this home, if it is certain that it is the log's.
fn note_of(
    identity: [u8; 16],
    (path, home): (&Path, &OwnedFd),
    was_served: bool,
) -> io::Result<Option<HomeNote>> {
    let wearer = Wearer::of(home)?;
    let found = look_at(home, &wearer)?;
    let badge = found.badge.filter(|badge| badge.identity == hex(identity));
    if badge.is_none() && (!was_served || wearer.can_wear()) {
        return Ok(None);
    }
    let branch = badge.as_ref().and_then(|badge| badge.branch.clone());
    let (has_badge, generation) = (badge.is_some(), badge.map_or(1, |badge| badge.generation));
    let (path, place) = (path.to_owned(), found.place);
    let note = unknown(identity)?;
    Ok(Some(HomeNote { has_badge, generation, path, place, is_unknown: false, branch, ..note }))
}

/// The note of a log whose home nobody knows.
fn unknown(identity: [u8; 16]) -> io::Result<HomeNote> {
    Ok(HomeNote {
        format: FORMAT,
        identity: hex(identity),
        generation: 1,
        is_begun: false,
        has_badge: true,
        is_complete: false,
        path: PathBuf::new(),
        place: Place { is_device: false, number: 0, serial: String::new() },
        boot: Boot::current()?.id,
        is_unknown: true,
        branch: None,
        branch_before: None,
    })
}

/// Whether the home has everything that the log has, and whoever may enters it.
pub fn is_complete(log: &dyn Files) -> bool {
    matches!(get::<HomeNote>(log, NAME), Ok(Note::Found(note)) if note.is_complete)
}

/// Whether the log knows of a home.
pub fn has_note(log: &dyn Files) -> bool {
    !matches!(get::<HomeNote>(log, NAME), Ok(Note::Missing))
}

/// Whether nothing of the log can be missing in its home: everything is there, or the two were
/// never brought together and there is nothing in the log.
pub fn has_nothing_more(log: &dyn Files) -> bool {
    let is_empty = || Log::verify(log, &mut |_| {}).is_ok_and(|log| log.end <= log.first);
    match get::<HomeNote>(log, NAME) {
        Ok(Note::Missing) => is_empty(),
        Ok(Note::Found(note)) if note.is_begun && note.generation == 1 => is_empty(),
        Ok(Note::Found(note)) => note.is_complete,
        Ok(Note::Unreadable) | Err(_) => false,
    }
}

/// Says that the home has everything that the log has.
pub fn note_complete(log: &dyn Files) -> io::Result<()> {
    match get::<HomeNote>(log, NAME)? {
        Note::Found(note) if !note.is_complete => {
            put(log, NAME, &HomeNote { is_complete: true, ..note })
        }
        _ => Ok(()),
    }
}
