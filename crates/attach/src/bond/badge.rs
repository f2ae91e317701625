//! The badge: an attribute of a home that says whose it is, and the barrier before it.
//!
//! While a log has, or may have, what its home lacks, the home's directory has no permission bits,
//! so no program enters it by accident; the badge keeps the bits that it has to its users.
//!
//! Promise: a badge is replaced in one step; a death between any two steps of raising or lowering
//! the barrier leaves a state from which either is done again.
//! Never: is seen through a mount.

use super::boot::now_ns;
use super::common::{hex, may_die_here};
use holdfast_io::Files;
use holdfast_io::real::{RealFiles, RootNotes, SHADOWED};
use rustix::fs::{
    AtFlags, FileType, Mode, StatxFlags, XattrFlags, fchmod, fgetxattr, fremovexattr, fsetxattr,
    fstat, fsync, statx,
};
use rustix::io::Errno;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The attribute's name.
pub(crate) const BADGE: &str = SHADOWED;

/// The version that is written.
const VERSION: u32 = 5;

/// Stands for what nobody noted.
const UNKNOWN: &str = "?";

/// Longest badge that is read.
const BADGE_BYTES_MAX: usize = 320;

/// How far the barrier is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Barrier {
    /// Anybody who may enters the home.
    #[default]
    Open,
    /// Being raised, or lowered: the home has these bits, or none.
    Moving(u32),
    /// Nobody but the superuser enters; these are the bits for users of the volume.
    Closed(u32),
}

/// What the attribute says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Badge {
    /// The log that the home belongs to, in hexadecimal digits.
    pub identity: String,
    /// How often the two were brought together.
    pub generation: u64,
    /// The barrier.
    pub barrier: Barrier,
    /// What changed in the home after this, and is not this volume's work, is somebody else's;
    /// nanoseconds since 1970, 0 for never.
    pub alone_since_ns: i64,
    /// Changes up to this were seen and accepted.
    pub accepted_ns: i64,
    /// Position that the log's device had got to when the home was last attached, a moment ago
    /// while it is, or when it was given back complete: a log that ends below it is an older copy.
    /// 0 where nobody knows.
    pub log_end: u64,
    /// The home has everything of the log up to this position: a log that has given back more had
    /// another home. Nothing where nobody noted it.
    pub applied: Option<u64>,
    /// What tells the directory that it was given to from a copy of that. Nothing where nobody
    /// noted it.
    pub birth: Option<String>,
    /// The latest moment, by a clock that may have stepped back since, at which the home may have
    /// been touched by its volume; noted a moment late. Nanoseconds since 1970, 0 where nobody
    /// noted it.
    pub noted_ns: i64,
    /// Drawn when the two were brought together: tells this home from one that a copy of the log
    /// was brought together with. Nothing where nobody noted it.
    pub branch: Option<String>,
}

impl Badge {
    /// That of a home that a log with this identity has just got.
    pub(crate) fn new(identity: [u8; 16], generation: u64) -> Badge {
        Badge { identity: hex(identity), generation, ..Badge::default() }
    }

    pub(super) fn text(&self) -> String {
        let barrier = match self.barrier {
            Barrier::Open => "open".to_owned(),
            Barrier::Moving(mode) => format!("moving:{mode:o}"),
            Barrier::Closed(mode) => format!("closed:{mode:o}"),
        };
        let Badge { identity, generation, alone_since_ns, accepted_ns, log_end, .. } = self;
        let applied = self.applied.map_or(UNKNOWN.to_owned(), |it| it.to_string());
        let birth = self.birth.as_deref().unwrap_or(UNKNOWN);
        let branch = self.branch.as_deref().unwrap_or(UNKNOWN);
        let ends = format!("{log_end} {} {applied} {birth} {branch}", self.noted_ns);
        format!("{VERSION} {identity} {generation} {barrier} {alone_since_ns} {accepted_ns} {ends}")
    }

    pub(super) fn parse(text: &str) -> Option<Badge> {
        let (version, words) = text.split_once(' ')?;
        let mut words = words.split(' ');
        let identity = words.next().filter(|word| word.len() == 32)?.to_owned();
        let generation = words.next()?.parse().ok()?;
        let barrier = parse_barrier(words.next()?)?;
        let (alone_since_ns, accepted_ns) =
            (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let version: u32 = version.parse().ok().filter(|it| (1..=VERSION).contains(it))?;
        // What an earlier version did not note yet.
        let mut since = |first: u32| if version < first { None } else { words.next() };
        let log_end = since(2).map_or(Some(0), |word| word.parse().ok())?;
        let noted_ns = since(3).map_or(Some(0), |word| word.parse().ok())?;
        let applied = match since(4).unwrap_or(UNKNOWN) {
            UNKNOWN => None,
            word => Some(word.parse().ok()?),
        };
        let known = |word: &&str| *word != UNKNOWN;
        let birth = since(4).filter(known).map(str::to_owned);
        let branch = since(5).filter(known).map(str::to_owned);
        Some(Badge {
            identity,
            generation,
            barrier,
            alone_since_ns,
            accepted_ns,
            log_end,
            applied,
            birth,
            noted_ns,
            branch,
        })
    }

    /// That of a home which its log takes as it is, and has given this back; nothing if nobody can
    /// tell. What the home of a log `is_complete` had before may be of any earlier one.
    pub(super) fn having(self, released: Option<u64>, is_complete: bool) -> Badge {
        let applied = self.applied.filter(|_| !is_complete).max(released);
        Badge { applied, ..self }
    }
}

fn parse_barrier(word: &str) -> Option<Barrier> {
    let mode = |digits: &str| u32::from_str_radix(digits, 8).ok().filter(|mode| *mode <= 0o7777);
    match word.split_once(':') {
        None => (word == "open").then_some(Barrier::Open),
        Some(("moving", digits)) => mode(digits).map(Barrier::Moving),
        Some(("closed", digits)) => mode(digits).map(Barrier::Closed),
        Some(_) => None,
    }
}

/// A home that is open, with its badge if it wears one.
#[derive(Debug)]
pub struct Wearer {
    home: OwnedFd,
    kind: FileType,
    birth: Option<String>,
    badge: Mutex<Option<Badge>>,
}

impl Wearer {
    /// Looks at a home.
    pub fn of(home: impl AsFd) -> io::Result<Wearer> {
        let home = home.as_fd().try_clone_to_owned()?;
        let kind = FileType::from_raw_mode(fstat(&home)?.st_mode);
        // What the name of a device wears is gone with the run of the system.
        let badge = if kind == FileType::BlockDevice { None } else { read(&home)? };
        let birth = if kind == FileType::Directory { birth(&home) } else { None };
        Ok(Wearer { home, kind, birth, badge: Mutex::new(badge) })
    }

    /// Whether the badge was given to another directory, of which this is a copy.
    pub(super) fn is_copy(&self) -> bool {
        let given_to = self.badge().and_then(|badge| badge.birth);
        given_to.is_some() && self.birth.is_some() && given_to != self.birth
    }

    /// The badge.
    pub fn badge(&self) -> Option<Badge> {
        self.lock().clone()
    }

    /// Whether a badge can be kept there.
    pub(super) fn can_wear(&self) -> bool {
        let is_file = self.kind != FileType::BlockDevice;
        is_file && !matches!(fgetxattr(&self.home, BADGE, &mut [0; 0]), Err(Errno::OPNOTSUPP))
    }

    /// The log that may have what the home lacks, if its badge says so.
    pub fn barred_for(&self) -> Option<String> {
        let badge = self.badge()?;
        (badge.barrier != Barrier::Open).then_some(badge.identity)
    }

    /// The permission bits that it has to everybody now.
    pub(crate) fn mode(&self) -> io::Result<u32> {
        Ok(fstat(&self.home)?.st_mode & 0o7777)
    }

    /// Gives the home this badge; false if its file system keeps none.
    pub(crate) fn wear(&self, badge: Badge) -> io::Result<bool> {
        self.put(&mut self.lock(), badge)
    }

    fn put(&self, worn: &mut Option<Badge>, badge: Badge) -> io::Result<bool> {
        if self.kind == FileType::BlockDevice {
            return Ok(false);
        }
        let (noted_ns, birth) = (badge.noted_ns.max(now_ns()), self.birth.clone());
        let badge = Badge { noted_ns, birth, ..badge };
        match fsetxattr(&self.home, BADGE, badge.text().as_bytes(), XattrFlags::empty()) {
            Ok(()) => {}
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM | Errno::INVAL) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        *worn = Some(badge);
        may_die_here();
        Ok(true)
    }

    /// Has the home wear, durably, what it wore before a log had it that has nothing more of it.
    pub(super) fn wear_again(&self, before: Option<Badge>) -> io::Result<()> {
        assert!(self.barred_for().is_none(), "a home that is barred lacks something");
        let mut worn = self.lock();
        match before {
            Some(badge) => drop(self.put(&mut worn, badge)?),
            None => match fremovexattr(&self.home, BADGE) {
                Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => *worn = None,
                Err(error) => return Err(error.into()),
            },
        }
        Ok(fsync(&self.home)?)
    }

    /// [`Self::wear`] with something changed, if there is a badge. One change at a time: each keeps
    /// what the one before it has said.
    fn change(&self, with: impl FnOnce(&mut Badge)) -> io::Result<()> {
        let mut worn = self.lock();
        let Some(mut badge) = worn.clone() else { return Ok(()) };
        with(&mut badge);
        self.put(&mut worn, badge).map(drop)
    }

    /// The log's device has confirmed that much. The home's file system makes it durable when it
    /// likes: until then a log that is older by as little is taken for the newest.
    pub fn has_reached(&self, log_end: u64) -> io::Result<()> {
        match self.is_directory() {
            true => self.change(|badge| badge.log_end = badge.log_end.max(log_end)),
            false => Ok(()),
        }
    }

    /// The home may have been touched just now.
    pub fn may_be_touched(&self) -> io::Result<()> {
        self.has_reached(0)
    }

    /// What was asked of the home's changes is answered, and the log reaches that far.
    pub fn looked_at(&self, log_end: u64) -> io::Result<()> {
        self.change(|badge| {
            badge.alone_since_ns = 0;
            badge.log_end = log_end;
        })
    }

    /// The home has all of a log that ends there: lowers the barrier, durably. A home that is a
    /// file has none, and keeps the times by which a cache knows it.
    pub fn complete(&self, log_end: u64) -> io::Result<()> {
        if self.badge().is_none() || !self.is_directory() {
            return Ok(());
        }
        self.change(|badge| {
            badge.log_end = log_end;
            badge.applied = Some(log_end);
            // Nothing that the log may still change was touched: an earlier clock's word is over.
            badge.noted_ns = 0;
        })?;
        self.open()?;
        Ok(fsync(&self.home)?)
    }

    /// Raises the barrier, durably. A home without a badge, or that is no directory, has none.
    pub fn close(&self) -> io::Result<()> {
        let Some(badge) = self.badge().filter(|_| self.is_directory()) else { return Ok(()) };
        let shown = match (badge.barrier, self.mode()?) {
            (Barrier::Closed(_), 0) => return Ok(()),
            (Barrier::Moving(kept), 0) => kept,
            (_, mode) => mode,
        };
        self.change(|badge| badge.barrier = Barrier::Moving(shown))?;
        fchmod(&self.home, Mode::empty())?;
        may_die_here();
        self.change(|badge| badge.barrier = Barrier::Closed(shown))?;
        Ok(fsync(&self.home)?)
    }

    /// Lowers the barrier, durably.
    pub(crate) fn open(&self) -> io::Result<()> {
        let Some(badge) = self.badge() else { return Ok(()) };
        let (Barrier::Moving(shown) | Barrier::Closed(shown)) = badge.barrier else {
            return Ok(());
        };
        self.change(|badge| badge.barrier = Barrier::Moving(shown))?;
        if self.mode()? == 0 {
            fchmod(&self.home, Mode::from_raw_mode(shown))?;
            may_die_here();
        }
        self.change(|badge| badge.barrier = Barrier::Open)?;
        Ok(fsync(&self.home)?)
    }

    /// Whether nothing is in it.
    pub(crate) fn is_empty(&self) -> bool {
        let listed = self.home.try_clone().map(RealFiles::from_fd);
        let listed = listed.and_then(|files| files.read_dir(Path::new("")));
        listed.is_ok_and(|names| names.is_empty())
    }

    /// A file tells by its times whether its contents changed, so they are left alone.
    pub(crate) fn is_directory(&self) -> bool {
        self.kind == FileType::Directory
    }

    fn lock(&self) -> MutexGuard<'_, Option<Badge>> {
        self.badge.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsFd for Wearer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.home.as_fd()
    }
}

/// To users of the volume its root has the bits that the badge keeps. Where a home keeps no badge,
/// nothing is noted.
impl RootNotes for Wearer {
    fn shown(&self) -> Option<u32> {
        match self.badge()?.barrier {
            Barrier::Closed(mode) => Some(mode),
            _ => None,
        }
    }

    fn keep(&self, mode: u32) -> io::Result<()> {
        self.change(|badge| badge.barrier = Barrier::Closed(mode))
    }

    fn came_home(&self, log_position: u64) -> io::Result<()> {
        self.change(|badge| badge.applied = Some(log_position))
    }
}

/// What tells a directory from a copy of it that was made name by name: its number, and when it was
/// made. A copy of its whole file system has the same, and the same numbers of all files.
fn birth(home: &OwnedFd) -> Option<String> {
    let what = StatxFlags::INO | StatxFlags::BTIME;
    let found = statx(home, "", AtFlags::EMPTY_PATH, what).ok()?;
    let has_time = StatxFlags::from_bits_retain(found.stx_mask).contains(StatxFlags::BTIME);
    let (seconds, ns) = (found.stx_btime.tv_sec, found.stx_btime.tv_nsec);
    let time = if has_time { format!("{seconds}.{ns}") } else { UNKNOWN.to_owned() };
    Some(format!("{}:{time}", found.stx_ino))
}

/// The badge that a home wears. Where none can be kept, there is none.
fn read(home: &OwnedFd) -> io::Result<Option<Badge>> {
    let mut bytes = [0; BADGE_BYTES_MAX];
    let length = match fgetxattr(home, BADGE, &mut bytes) {
        Ok(length) => length,
        Err(Errno::NODATA | Errno::OPNOTSUPP | Errno::NOSYS | Errno::PERM) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let text = String::from_utf8_lossy(&bytes[..length]);
    let damaged = || io::Error::other(format!("its attribute {BADGE} is damaged: {text}"));
    Badge::parse(&text).map(Some).ok_or_else(damaged)
}
