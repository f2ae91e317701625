//! A region seen from outside.
//!
//! Promise: numbers for status whoever serves the region, or nobody; changes nothing.
//! Never: waits for a front end, or trusts what it reads for more than a report.

use crate::remedy::accept_memory_lost;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::process;
use holdfast_machine::advice::cure;
use holdfast_machine::holders::{FRONT_END_NAME, holder, is_mapped_by};
use holdfast_machine::processes::is_trusted_process;
use holdfast_machine::standstill::{DAMAGED_MEMORY, Look};
use holdfast_memory::{AttachError, MEMORY_DAMAGED, Medium, Observed, Region};
use std::io;
use std::path::Path;

/// What a region tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    /// Identity of the log it belongs to.
    pub identity: [u8; 16],
    /// Bytes that it has room for.
    pub ring_bytes: u64,
    /// The process that serves it, if that is alive.
    pub server_pid: Option<u32>,
    /// The front end of a volume, if it is alive.
    pub front_end_pid: Option<u32>,
    /// Everything below is applied to the home.
    pub released: u64,
    /// Everything below is on the log's device.
    pub durable: u64,
    /// Everything below is acknowledged or about to be.
    pub tail: u64,
    /// Measured speed of the log's device, 0 before the first measurement.
    pub drain_rate_bytes_per_s: u64,
    /// Bytes drained in all.
    pub drained_bytes: u64,
    /// Syncs of the log's device.
    pub syncs: u64,
    /// Changes acknowledged.
    pub changes: u64,
    /// What the server counted, if it is a served log.
    pub served: ServedCounts,
    /// Longest wait of one change for room, nanoseconds.
    pub longest_wait_ns: u64,
    /// The error number of the failure that poisoned the log (0 if there is none).
    pub poison: Option<i32>,
    /// The error number of what keeps the log from going on (0 if there is none): no room on its
    /// disk, most often.
    pub unprepared: Option<i32>,
    /// The error number of the home's last failure.
    pub home_errno: Option<i32>,
    /// Frames that memory had damaged, and that were taken from the log's disk.
    pub healed: u64,
    /// What is in memory only may have been acknowledged because of a power source.
    pub relies_on_power: bool,
}

/// The server's counters in the region of a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ServedCounts {
    /// Clients that have a session.
    pub clients: u64,
    /// Appends acknowledged.
    pub appended: u64,
    /// Appends that were repeated, and answered as the first time.
    pub replayed: u64,
    /// Requests and hellos that were refused.
    pub refused: u64,
    /// Times a client's queue was damaged.
    pub damage: u64,
}

impl Observation {
    /// Bytes that are in memory only.
    pub fn dirty_bytes(&self) -> u64 {
        self.tail.saturating_sub(self.durable)
    }

    /// Whether it has what has to survive the power, and nothing else has.
    pub fn is_alone(&self) -> bool {
        self.relies_on_power && self.dirty_bytes() > 0
    }

    /// Bytes of log that the home does not have yet.
    pub fn unapplied_bytes(&self) -> u64 {
        self.tail.saturating_sub(self.released)
    }

    /// What went wrong with the served log in this directory, for people.
    pub fn log_error_text(&self, log: &Path) -> Option<String> {
        let Some(errno) = self.poison else {
            return self.unprepared_text(log).or_else(|| self.healed_text());
        };
        let error = io::Error::from_raw_os_error(errno);
        Some(format!("the log's disk failed ({error}): appends are refused, the memory is kept"))
    }

    /// Why the log in this directory does not go on, and what to do about it.
    fn unprepared_text(&self, log: &Path) -> Option<String> {
        let error = io::Error::from_raw_os_error(self.unprepared?);
        Some(format!(
            "the log's disk takes no more ({error}): what is not on it yet waits, and nothing is \
             lost; {}, and it goes on by itself",
            cure(&error, &format!("the file system of {}", log.display()))
        ))
    }

    /// That memory has damaged something which was mended.
    pub fn healed_text(&self) -> Option<String> {
        let count = self.healed;
        (count > 0).then(|| {
            format!(
                "memory had damaged {count} frames of the log, which were taken from its disk: \
                 nothing is lost; test this machine's memory, and see who else may write there"
            )
        })
    }

    /// What went wrong with a volume whose log is in this directory, for people.
    pub fn error_text(&self, log: &Path) -> Option<String> {
        let text = |errno: i32| io::Error::from_raw_os_error(errno).to_string();
        if let Some(errno) = self.poison {
            return Some(format!(
                "the log's disk failed ({}): the volume answers EIO, the memory is kept; see to \
                 the disk, then `holdfast umount`, `holdfast volume mend` and `holdfast mount`",
                text(errno)
            ));
        }
        let of_home = |errno| {
            if errno == MEMORY_DAMAGED {
                return format!(
                    "{DAMAGED_MEMORY}: nothing from there on comes home; once the volume is \
                     unmounted by force, its check says where, and to keep the home goes on \
                     without it"
                );
            }
            let remedy = cure(&io::Error::from_raw_os_error(errno), "the home's disk");
            format!("the home failed ({}): it is tried again; {remedy}", text(errno))
        };
        let of_home = || self.home_errno.map(of_home);
        self.unprepared_text(log).or_else(of_home)
    }
}

/// How far everything is in the region on a medium, if there is one.
pub fn look(medium: &Medium) -> Option<Look> {
    let seen = Region::observe(medium).ok()?;
    let marks = seen.marks();
    let home_errno = errno(seen.word(holdfast_volume::words::HOME_ERRNO));
    let (released, durable, tail) = (marks.released, marks.durable, marks.tail);
    let log_errno = failure(seen.word(holdfast_log::words::UNPREPARED));
    let (stalls, ring_bytes) = (seen.word(holdfast_volume::words::STALLS), seen.ring_bytes());
    Some(Look { released, durable, tail, log_errno, home_errno, stalls, ring_bytes })
}

/// The log writes 1 + errno, so that 0 can mean "sound".
fn failure(word: u64) -> Option<i32> {
    word.checked_sub(1).map(|errno| i32::try_from(errno).unwrap_or(0))
}

fn errno(word: u64) -> Option<i32> {
    i32::try_from(word).ok().filter(|errno| *errno > 0)
}

/// Looks at the region on a medium. Private memory cannot be seen from outside and is "missing".
pub fn observe(medium: &Medium) -> Outcome<Observation> {
    match Region::observe(medium) {
        Ok(seen) => Ok(read(&seen, medium)),
        Err(error) => Err(region_problem("looking at", ("", medium), &error)),
    }
}

fn read(seen: &Observed, medium: &Medium) -> Observation {
    use holdfast_log::words as log;
    use holdfast_server::words as served;
    use holdfast_volume::words as volume;
    let marks = seen.marks();
    Observation {
        identity: seen.identity(),
        ring_bytes: seen.ring_bytes(),
        server_pid: Some(seen.server_pid()).filter(|pid| is_mapped_by(medium, *pid)),
        front_end_pid: front_end(seen.word(volume::FRONT_END_PID)),
        released: marks.released,
        durable: marks.durable,
        tail: marks.tail,
        drain_rate_bytes_per_s: seen.word(log::DRAIN_RATE),
        drained_bytes: seen.word(log::DRAINED_BYTES),
        syncs: seen.word(log::SYNCS),
        changes: seen.word(volume::CHANGES),
        served: ServedCounts {
            clients: seen.word(served::CLIENTS),
            appended: seen.word(served::APPENDED),
            replayed: seen.word(served::REPLAYED),
            refused: seen.word(served::REFUSED),
            damage: seen.word(served::DAMAGE),
        },
        longest_wait_ns: seen.word(volume::LONGEST_STALL_NS),
        poison: failure(seen.word(log::POISON)),
        unprepared: failure(seen.word(log::UNPREPARED)),
        home_errno: errno(seen.word(volume::HOME_ERRNO)),
        healed: seen.word(log::HEALED),
        relies_on_power: seen.word(volume::RELIES_ON_POWER) != 0,
    }
}

/// The process of this number, if it is a front end that goes on: the number may belong to another
/// by now, and who was killed serves nobody.
fn front_end(pid: u64) -> Option<u32> {
    let pid = u32::try_from(pid).ok()?;
    // Anybody can call a process so.
    let is_one = process::name(pid).is_some_and(|name| name == FRONT_END_NAME);
    (is_one && is_trusted_process(pid) && process::lives(pid)).then_some(pid)
}

/// The way on without memory that is damaged.
fn without(service: &str) -> String {
    match service.split_once('/') {
        Some((kind @ ("volume" | "log"), name)) => format!(
            "go on without it: {}; it is put aside whole, and what the log's disk has is recovered",
            accept_memory_lost(kind, name)
        ),
        _ => "keep it: nothing else has what is in it".to_owned(),
    }
}

/// Refuses a volume that would answer EIO to everything that changes it.
pub fn refuse_poisoned(what: &str, name: &str, medium: &Medium) -> Outcome<()> {
    let seen = Region::observe(medium).ok();
    let errno = seen.and_then(|seen| failure(seen.word(holdfast_log::words::POISON)));
    errno.map_or(Ok(()), |errno| {
        let error = io::Error::from_raw_os_error(errno);
        let why = format!("the log's disk failed ({error}), and the memory is kept");
        let remedy = format!("see to the log's disk, then `holdfast volume mend {name}`");
        Err(Problem::new(Exit::Damaged, what, why, remedy))
    })
}

/// Refuses memory of which something is there, and nobody can tell what: it may be whole, so it is
/// neither missing nor lost.
pub fn refuse_unseen(doing: &str, (service, medium): (&str, &Medium)) -> Outcome<()> {
    match Region::observe(medium) {
        Err(error) if is_unseen(&error) => Err(region_problem(doing, (service, medium), &error)),
        _ => Ok(()),
    }
}

/// Whether the memory may be there, and be whole, for all that the error says.
fn is_unseen(error: &AttachError) -> bool {
    matches!(
        error,
        AttachError::InTheWay { .. } | AttachError::Exposed { .. } | AttachError::Io { .. }
    )
}

/// The memory that an attachment would find, for who looks at its log. None where there is none.
pub(crate) fn observe_left(medium: &Medium) -> io::Result<Option<Observed>> {
    match Region::observe_to_attach(medium) {
        Err(error) if is_unseen(&error) => Err(io::Error::other(error)),
        seen => Ok(seen.ok()),
    }
}

/// Whether there is no memory, and nothing that may be it.
pub fn is_gone(medium: &Medium) -> bool {
    matches!(Region::observe(medium), Err(AttachError::Missing))
}

/// How the memory's file comes into its place again, of which something else has the name.
fn put_in_place(place: &Path) -> String {
    let target = place.canonicalize().ok().filter(|it| place.is_symlink() && it.is_file());
    let place = place.display();
    match target {
        Some(target) => {
            format!("put the file itself in its place: `mv {} {place}`", target.display())
        }
        None => format!(
            "move that away, `mv {place} {place}.other`, and put the memory's file back in its \
             place"
        ),
    }
}

/// A region's error as a problem of the user's; `service` is what it is the memory of.
pub fn region_problem(
    doing: &str,
    (service, medium): (&str, &Medium),
    error: &AttachError,
) -> Problem {
    let place = medium.path().unwrap_or(Path::new("private memory")).display();
    let what = format!("{doing} the region {place}");
    let kept = "nothing was changed";
    if let AttachError::InUse { .. } = error {
        let gone = || ("somebody who has let go of it by now had it".into(), "try again".into());
        let (why, remedy) = holder(medium).unwrap_or_else(gone);
        return Problem::new(Exit::InUse, what, why, remedy);
    }
    let (exit, remedy) = match error {
        AttachError::Missing => (Exit::Failed, "it is made when it is served".to_owned()),
        AttachError::NewerTerm { .. } => {
            (Exit::InUse, format!("{kept}; run nothing on it here, it is that host's"))
        }
        AttachError::OtherVersion { .. } => {
            (Exit::Damaged, format!("{kept}; end its use with the version that made the region"))
        }
        AttachError::OtherBoot => {
            (Exit::Failed, format!("{kept}; serve it: it goes on from what its log's disk has"))
        }
        AttachError::OtherMedium { .. } => (Exit::Usage, format!("{kept}; correct memory.medium")),
        AttachError::Exposed { .. } => (
            Exit::Failed,
            format!(
                "{kept}; see whose it is: `stat {place}`; if it is that memory, make it yours \
                 alone again: `chown root {place}`, `chmod 600 {place}`"
            ),
        ),
        AttachError::InTheWay { .. } => {
            let place = medium.path().expect("only what has a name can be in the way of one");
            (Exit::Damaged, format!("{kept}; {}", put_in_place(place)))
        }
        AttachError::Damaged { .. } => (Exit::Damaged, format!("{kept}; {}", without(service))),
        _ => (Exit::Failed, format!("{kept}; see whether {place} can be reached")),
    };
    Problem::new(exit, what, error, remedy)
}
