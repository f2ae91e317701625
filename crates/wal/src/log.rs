//! The log as its user sees it.
//!
//! Promise: all methods may be called from any thread.
//! Never: shows a record that is not durable to anybody but who appended it.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use holdfast_log::Lsn;

use crate::background::Threads;
use crate::error::{
    AppendError, CheckpointError, CommitError, CreateError, OpenError, ReplayError, TruncateError,
};
use crate::format::Format;
use crate::open::label::Label;
use crate::open::recovery::Recovery;
use crate::options::Options;
use crate::place::Place;
use crate::read::back::ReplayBack;
use crate::read::replay::Replay;
use crate::read::tail::Tail;
use crate::record::Record;
use crate::shared::Shared;
use crate::ticket::Ticket;
use crate::{open, payload};

/// Memory for encoding that a thread keeps between appends.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// What a log is like at a moment.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Stat {
    /// The last checkpoint: nothing below is kept.
    pub checkpoint: Lsn,
    /// Everything below is on the device.
    pub durable: Lsn,
    /// Everything below has been appended.
    pub end: Lsn,
    /// The most bytes that one encoded set may have. In a set of several, each record counts 8 more
    /// and is rounded up to a multiple of 8.
    pub set_bytes_max: u64,
    /// How many blocks of 4 KiB readers of this log have been given from the parity, because the
    /// device has damaged them. It stays damaged until an open mends it; see [`Options::policy`].
    pub mended_blocks: u64,
    /// How fast the device takes what is appended, in bytes a second of writing; 0 before the first
    /// write.
    pub drain_rate_bytes_per_s: u64,
    /// The write or sync that failed, if one did. Nothing is accepted after it.
    pub failed: Option<Arc<io::Error>>,
}

/// A log of records of type `R`, written in the format `F`.
///
/// A directory has one opener at a time, which is a process: a child that it forks may read what
/// was durable then, and is refused all else with [`CommitError::Failed`] and its like; dropping
/// the log there does nothing.
///
/// It is free for the next when the log and all that came
/// from it (replays, tails) are dropped. Dropping the log makes what was appended durable
/// if the device lets it; [`Log::close`] says whether it did.
pub struct Log<R, F> {
    shared: Arc<Shared>,
    threads: Mutex<Option<Threads>>,
    types: PhantomData<fn() -> (R, F)>,
}

impl<R: Record, F: Format<R>> Log<R, F> {
    /// Makes a log in `directory`, which is made unless it is there.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create(directory: impl AsRef<Path>, options: &Options) -> Result<(), CreateError> {
        Self::create_at(&Place::new_directory(directory.as_ref())?, options)
    }

    /// Opens the log in `directory`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        directory: impl AsRef<Path>,
        options: &Options,
    ) -> Result<(Self, Recovery), OpenError> {
        Self::open_at(Place::directory(directory.as_ref())?, options)
    }

    /// Opens the log in `directory`, which is made with an empty one unless there is one.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_or_create(
        directory: impl AsRef<Path>,
        options: &Options,
    ) -> Result<(Self, Recovery), OpenError> {
        let place = Place::new_directory(directory.as_ref())?;
        match Self::open_at(place.clone(), options) {
            Err(OpenError::NoLog) => {
                Self::create_at(&place, options).map_err(OpenError::NotCreated)?;
                Self::open_at(place, options)
            }
            opened => opened,
        }
    }

    /// [`Log::create`], anywhere.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create_at(place: &Place, options: &Options) -> Result<(), CreateError> {
        open::create(place, options, Label::of::<R, F>)
    }

    /// [`Log::open`], anywhere.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_at(place: Place, options: &Options) -> Result<(Self, Recovery), OpenError> {
        Self::open_labelled(place, options, Label::of::<R, F>)
    }

    /// [`Log::open_at`], of a log with the label that `label` gives to its identity.
    pub(crate) fn open_labelled(
        place: Place,
        options: &Options,
        label: impl FnOnce([u8; 16], &Options) -> Label,
    ) -> Result<(Self, Recovery), OpenError> {
        let (shared, recovery) = open::open(place, options, label)?;
        let shared = Arc::new(shared);
        let threads = Threads::start(&shared, options.background).map_err(OpenError::Io)?;
        Ok((Log { shared, threads: Mutex::new(Some(threads)), types: PhantomData }, recovery))
    }

    /// Appends a record. It is in memory when this returns, and durable when its ticket says so or
    /// a later commit returns. The device is waited for only when the ring is full.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged.
    pub fn append(&self, record: &R) -> Result<Ticket<'_>, AppendError> {
        self.append_all(std::slice::from_ref(record))
    }

    /// Appends a set of records that are replayed all or not at all, whatever happens.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged.
    pub fn append_all(&self, records: &[R]) -> Result<Ticket<'_>, AppendError> {
        let many = || AppendError::TooMany { records: records.len() };
        let count = u16::try_from(records.len()).map_err(|_| many())?;
        let mut payload = SCRATCH.take();
        payload.clear();
        let appended = encode::<R, F>(records, &mut payload)
            .and_then(|()| self.shared.append(count, &payload));
        if payload.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set(payload);
        }
        let appended = appended?;
        Ok(Ticket { shared: &self.shared, lsn: appended.lsn, end: appended.end })
    }

    /// Appends a record and returns when it is durable.
    ///
    /// # Errors
    /// See [`AppendError`]; after a failed write or sync, whether the record is in the log shows
    /// when it is opened anew. On a full disk it is in the log, not durable yet.
    pub fn append_durable(&self, record: &R) -> Result<Ticket<'_>, AppendError> {
        let ticket = self.append(record)?;
        ticket.wait()?;
        Ok(ticket)
    }

    /// Returns when everything that has been appended is durable: synced to the device. Threads
    /// that commit at the same time share one sync.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn commit(&self) -> Result<(), CommitError> {
        self.commit_to(self.shared.log.marks().tail)
    }

    /// [`Log::commit`], of what lies below `lsn`, the `end` of a ticket.
    ///
    /// # Errors
    /// See [`CommitError`].
    ///
    /// # Panics
    /// If nothing has been appended up to `lsn`.
    pub fn commit_to(&self, lsn: Lsn) -> Result<(), CommitError> {
        self.shared.commit(lsn)
    }

    /// The durable records from the last checkpoint on.
    #[must_use]
    pub fn iter(&self) -> Replay<R, F> {
        self.iter_from(self.shared.log.first())
    }

    /// The durable records from `lsn` on, which is the `lsn` or `end` of an entry or a ticket. From
    /// any other position the first is [`ReplayError::Damaged`]: it looks as if a device had
    /// damaged what should begin there.
    #[must_use]
    pub fn iter_from(&self, lsn: Lsn) -> Replay<R, F> {
        Replay::new(&self.shared, lsn)
    }

    /// The records from `lsn` on, as [`Log::iter_from`] has them, and then those that will become
    /// durable.
    #[must_use]
    pub fn tail(&self, lsn: Lsn) -> Tail<R, F> {
        Tail::new(&self.shared, lsn)
    }

    /// Says that nothing below `lsn` is needed any more, because the program has it elsewhere,
    /// durably. `lsn` is the `end` of an entry or a ticket. When this returns the checkpoint is
    /// durable, the next replay begins there, and the space below will be used again.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint(&self, lsn: Lsn) -> Result<(), CheckpointError> {
        let shared = &self.shared;
        if shared.closed.load(Ordering::Relaxed) {
            return Err(CheckpointError::Closed);
        }
        if lsn > shared.log.marks().tail {
            return Err(CheckpointError::NoBoundary { lsn });
        }
        if lsn > shared.log.first() {
            shared.commit(lsn)?;
            if is_boundary(shared, lsn)? {
                shared.mark(lsn)?;
            }
        }
        // The mark may be another thread's, or of a call that failed: here it becomes durable.
        Ok(self.keep_mark()?)
    }

    /// Makes the newest mark durable, in the catalogue if the disk has no room for more.
    fn keep_mark(&self) -> Result<(), CommitError> {
        match self.commit() {
            Err(full @ (CommitError::DiskFull(_) | CommitError::NoSegment(_))) => {
                match self.shared.log.record_mark() {
                    Ok(true) => Ok(()),
                    Ok(false) | Err(_) => Err(full),
                }
            }
            done => done,
        }
    }

    /// The durable records from the newest to the last checkpoint. A record costs about twice what
    /// it costs [`Log::iter`], and a span of the log, 8 MiB, is in memory.
    #[must_use]
    pub fn iter_back(&self) -> ReplayBack<R, F> {
        self.iter_back_from(self.shared.log.marks().durable)
    }

    /// [`Log::iter_back`] from `lsn` on, which is the `lsn` or `end` of an entry or a ticket: the
    /// sets that end there or before.
    #[must_use]
    pub fn iter_back_from(&self, lsn: Lsn) -> ReplayBack<R, F> {
        ReplayBack::new(&self.shared, lsn)
    }

    /// Cuts off every set from `lsn` on, which is the `end` of an entry or a ticket, for good. When
    /// this returns they are gone from the device. Positions are not used again: the log goes on
    /// where it ended. Who appends meanwhile is not kept from it; whether a set that is appended
    /// during the call is cut off is open. Replays and tails that have come further than `lsn` get
    /// [`ReplayError::Cut`] when they have given what they had in memory.
    ///
    /// # Errors
    /// See [`TruncateError`].
    pub fn truncate_after(&self, lsn: Lsn) -> Result<(), TruncateError> {
        if self.shared.closed.load(Ordering::Relaxed) {
            return Err(TruncateError::Closed);
        }
        let cut = self.shared.log.truncate_after(lsn);
        self.shared.wake(true);
        Ok(cut?)
    }

    /// What the log is like now.
    #[must_use]
    pub fn stat(&self) -> Stat {
        let log = &self.shared.log;
        let marks = log.marks();
        Stat {
            checkpoint: log.first(),
            durable: marks.durable,
            end: marks.tail,
            set_bytes_max: self.shared.wrapping.set_bytes_max(log),
            mended_blocks: log.mended_blocks(),
            drain_rate_bytes_per_s: log.drain_rate_bytes_per_s(),
            failed: self.shared.failure(),
        }
    }

    /// Makes everything durable and accepts nothing more; readers and tickets go on. The log's
    /// threads have ended when this returns.
    ///
    /// # Errors
    /// See [`CommitError`]. The log is closed even so.
    pub fn close(&self) -> Result<(), CommitError> {
        self.shared.check_opener()?;
        self.shared.closed.store(true, Ordering::Relaxed);
        drop(self.threads.lock().expect("nothing panics with the threads").take());
        let closed = self.shared.log.close();
        self.shared.wake(true);
        Ok(closed?)
    }
}

/// Puts the records' bytes into `payload`; each of several with its length and check.
fn encode<R, F: Format<R>>(records: &[R], payload: &mut Vec<u8>) -> Result<(), AppendError> {
    if let [record] = records {
        return F::encode(record, payload).map_err(AppendError::Unencodable);
    }
    for record in records {
        let start = payload::begin(payload);
        F::encode(record, payload).map_err(AppendError::Unencodable)?;
        payload::finish(payload, start);
    }
    Ok(())
}

/// Whether `lsn`, which is durable, is where frames meet, above what is no longer needed. It may
/// have been passed meanwhile, by another checkpoint.
fn is_boundary(shared: &Arc<Shared>, lsn: Lsn) -> Result<bool, CheckpointError> {
    let outcome = shared.log.cursor(lsn).next_frame().map(|_| ());
    match outcome.map_err(ReplayError::from) {
        Ok(()) => Ok(true),
        Err(ReplayError::Truncated { .. }) => Ok(false),
        Err(ReplayError::Damaged { .. }) => Err(CheckpointError::NoBoundary { lsn }),
        Err(error) => Err(CheckpointError::Unreadable(error)),
    }
}

impl<R, F> Drop for Log<R, F> {
    fn drop(&mut self) {
        drop(self.threads.get_mut().expect("nothing panics with the threads").take());
        self.shared.closed.store(true, Ordering::Relaxed);
        if self.shared.check_opener().is_err() {
            return;
        }
        // Nobody is left to be told. What was waited for is durable already.
        let _ = self.shared.commit(self.shared.log.marks().tail);
        self.shared.wake(true);
    }
}

impl<R, F> fmt::Debug for Log<R, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Log").field("shared", &self.shared).finish_non_exhaustive()
    }
}
