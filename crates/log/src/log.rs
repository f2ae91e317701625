//! The log as its user sees it: the operations, each delegated to the file that does it.
//!
//! Promise: all methods may be called from any thread of the process that opened the log. A child
//! that it forks is refused what would change anything, as a poisoned log refuses it.
//! Never: blocks in `append`; holds the region's lock while a device is written.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_core::Lsn;
use holdfast_core::frame::{Kind, NUMBER_BYTES};
use holdfast_io::{Clock, Files, Named};
use holdfast_memory::{Observed, Region};

use crate::append::writer::Body;
use crate::config::{LogConfig, Retention};
use crate::error::{
    AppendError, CommitError, CreateError, OpenError, RemakeError, RepairError, TruncateError,
};
use crate::format::catalogue::Catalogue;
use crate::open::check::CheckedRing;
use crate::open::foresee::Foreseen;
use crate::outcome::{Appended, Contents, Drained, Mended, Recovery};
use crate::read::back::BackCursor;
use crate::read::cursor::Cursor;
use crate::read::frames::Frame;
use crate::repair::verify::{Verified, Walked};
use crate::repair::{RepairEvent, Repaired};
use crate::segments::segment::segment_name;
use crate::state::Log;
use crate::{
    open, open::check, open::create, open::foresee, open::left, open::unapplied, repair,
    repair::remake, repair::verify, words,
};

impl Log {
    /// Makes a log in the root of `files`: segments full of zeros, then the catalogue, all synced.
    ///
    /// # Errors
    /// See [`CreateError`]. What an interrupted attempt left is overwritten.
    pub fn create(
        files: &dyn Files,
        identity: [u8; 16],
        config: &LogConfig,
    ) -> Result<(), CreateError> {
        create::create(&Named::new(files), identity, config, &[])
    }

    /// [`Log::create`], with a label: a few bytes of whoever knows what the records mean. Every
    /// segment has it, also those that are made later.
    ///
    /// # Errors
    /// See [`CreateError`].
    ///
    /// # Panics
    /// If the label is longer than 2 KiB.
    pub fn create_labelled(
        files: &dyn Files,
        identity: [u8; 16],
        config: &LogConfig,
        label: &[u8],
    ) -> Result<(), CreateError> {
        create::create(&Named::new(files), identity, config, label)
    }

    /// Makes the log again that a region has all of, in the root of `files`, where nothing of it is
    /// left; its segments have no label. Opened with that region, it is given everything that was
    /// durable before anything more is acknowledged; without it, it ends where its reader was.
    /// Only for whoever knows that the files are gone for good: beside the log itself, this would
    /// be a second one.
    ///
    /// # Errors
    /// See [`RemakeError`]. What an interrupted attempt left is overwritten.
    ///
    /// # Panics
    /// If the configuration keeps the log on its device: a ring does not have all of such a log.
    pub fn remake(
        files: &dyn Files,
        region: &Observed,
        config: &LogConfig,
    ) -> Result<(), RemakeError> {
        remake::remake(&Named::new(files), region, config)
    }

    /// The label of the log in the root of `files`, as any of its segments has it; empty if there
    /// is none. That of a log which an earlier version made may be as the device gives it: whoever
    /// wrote it checks it.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn label_of(files: &dyn Files) -> io::Result<Vec<u8>> {
        create::label_of(&Named::new(files))
    }

    /// The identity of the log in the root of `files`.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn identity_of(files: &dyn Files) -> Result<[u8; 16], OpenError> {
        Catalogue::load(&Named::new(files)).map(|catalogue| catalogue.identity)
    }

    /// The names of the segment files that belong to the log in the root of `files`. A segment that
    /// is being made is none of them until it is whole.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn segments_of(files: &dyn Files) -> Result<Vec<String>, OpenError> {
        let catalogue = Catalogue::load(&Named::new(files))?;
        Ok(catalogue.entries.iter().map(|entry| segment_name(entry.file)).collect())
    }

    /// Bytes that the smallest ring has that the log in the root of `files` can be opened with.
    /// What has to go back into the ring may need a larger one.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn ring_bytes_min(files: &dyn Files) -> Result<u64, OpenError> {
        Catalogue::load(&Named::new(files)).map(|catalogue| 2 * catalogue.segment_bytes)
    }

    /// Reads every frame in the segment files that is still needed, also behind damage, and all
    /// parity, and says what is there; `progress` hears of it now and then. Nothing is changed, and
    /// nobody may have the log open: it would be read while it is written.
    ///
    /// # Errors
    /// See [`OpenError`]; damage to frames is no error but the verdict. A device that fails behind
    /// the last frame, where that may hide others, is one.
    pub fn verify(
        files: &dyn Files,
        progress: &mut dyn FnMut(Walked),
    ) -> Result<Verified, OpenError> {
        verify::verify(&Named::new(files), progress)
    }

    /// Bytes of the log in the root of `files` that its reader has not got yet, as far as segment
    /// files tell: 0 if no change lies behind its newest mark. Nothing is changed, and nobody may
    /// have the log open.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn left(files: &dyn Files) -> Result<u64, OpenError> {
        left::left(&Named::new(files))
    }

    /// Makes a new log in the root of `to` from what can be read of the one in `from`, or only says
    /// what it would be, if there is no `to`. Segments are enough: what else is missing or damaged
    /// is found out from them. Every frame keeps its position; pads take the place
    /// of what is lost. Nobody may have the old log open, and nothing of it is changed.
    ///
    /// # Errors
    /// See [`RepairError`].
    pub fn repair(
        from: &dyn Files,
        to: Option<&dyn Files>,
        watch: &mut dyn FnMut(RepairEvent<'_>),
    ) -> Result<Repaired, RepairError> {
        let to = to.map(Named::new);
        let to = to.as_ref().map(|to| to as &dyn Files);
        repair::repair(&Named::new(from), to, watch)
    }

    /// Reads every frame in a region's ring that is still needed, without claiming the region.
    /// Nothing is changed. `None` if the ring was never filled, so that it counts for nothing.
    ///
    /// # Errors
    /// See [`OpenError`]; [`OpenError::InUse`] if the region is served meanwhile.
    pub fn check_ring(
        files: &dyn Files,
        region: &Observed,
    ) -> Result<Option<CheckedRing>, OpenError> {
        check::check_ring(&Named::new(files), region)
    }

    /// What [`Log::open`] would find with this region as ring, or with a new one, and whether it
    /// would go on: by the same rules, with nothing changed.
    ///
    /// # Errors
    /// Those of [`Log::open`] that come of what files and region hold; [`OpenError::InUse`] if the
    /// region is served meanwhile.
    pub fn foresee(
        files: &dyn Files,
        region: Option<&Observed>,
        config: &LogConfig,
    ) -> Result<Foreseen, OpenError> {
        foresee::foresee(&Named::new(files), region, config)
    }

    /// Shows every frame that an open would hand to the log's reader, and says from where on they
    /// are not applied; some before that may be shown, too. They are those of the region, which
    /// must be the log's, or, if there is none or it was never filled, those of the segment files.
    /// Nothing is changed, and nobody may have the log open.
    ///
    /// # Errors
    /// See [`OpenError`]; what lies behind damage is not shown.
    pub fn unapplied(
        files: &dyn Files,
        region: Option<&Observed>,
        each: &mut dyn FnMut(&Frame<'_>),
    ) -> Result<Lsn, OpenError> {
        unapplied::unapplied(&Named::new(files), region, each)
    }

    /// Opens the log in the root of `files`, with `region` as its ring. A region that was the ring
    /// of this log is verified and taken over as it is; a new one is filled from the segments.
    /// A region that was poisoned gives a poisoned log, which can still be read.
    ///
    /// # Errors
    /// See [`OpenError`]. Acknowledged data is as it was.
    pub fn open(
        files: Arc<dyn Files>,
        region: Arc<Region>,
        clock: Arc<dyn Clock>,
        config: LogConfig,
    ) -> Result<(Log, Recovery), OpenError> {
        open::open(Arc::new(Named::new(files)), region, clock, &config)
    }

    /// Makes a log whose device failed usable again, once the device has been seen to: what the
    /// ring still has of what counted as durable is written once more, synced and read back, then
    /// the failure is forgotten. Open the log afterwards. Does nothing to a log that is sound.
    ///
    /// # Errors
    /// As [`Log::open`], and [`OpenError::Corrupt`] if the device does not give back what it was
    /// given. The log stays poisoned and the region as it was.
    pub fn mend(
        files: Arc<dyn Files>,
        region: Arc<Region>,
        clock: Arc<dyn Clock>,
        config: LogConfig,
    ) -> Result<Mended, OpenError> {
        open::mend(Arc::new(Named::new(files)), region, clock, &config)
    }

    /// Appends one frame that holds `parts`, one after the other. It is stable (durability class
    /// Memory: it survives what the region survives) when this returns. Never blocks on a device.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged.
    pub fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        self.append_data(Kind::Data, Contents { records, flags: 0 }, Body::Parts(parts))
    }

    /// [`Log::append`], for a payload that depends on where it lies: `fill` is told the position of
    /// the frame and the generation, which are never the same for two frames that a device was
    /// given, and writes `payload_bytes` bytes over whatever is there. It runs once, under the
    /// region's lock, so it must be short and must not use the log; if it panics nothing is
    /// appended.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged, and `fill` has not run.
    ///
    /// # Panics
    /// If the flags are none that a reader knows.
    pub fn append_filled(
        &self,
        contents: Contents,
        payload_bytes: u64,
        fill: &mut dyn FnMut(Lsn, u32, &mut [u8]),
    ) -> Result<Appended, AppendError> {
        self.append_data(Kind::Data, contents, Body::Filled(payload_bytes, fill))
    }

    /// Where a frame with a payload of this length would go now, and its generation: what
    /// [`Log::append_filled`] will say, unless somebody else appends before or there is no room.
    #[must_use]
    pub fn next_place(&self, payload_bytes: u64) -> (Lsn, u32) {
        let at = self.occupancy();
        (
            self.geometry.place(&at, payload_bytes).map_or(at.tail, |place| place.lsn),
            self.generation,
        )
    }

    /// [`Log::append`], for another process: the frame has a number before its records, by which
    /// a repeated request is known again. [`crate::Frame::of_user`] hides it.
    ///
    /// # Errors
    /// See [`AppendError`]; the log is unchanged. The number counts as payload.
    pub fn append_numbered(
        &self,
        number: &[u8; NUMBER_BYTES],
        records: u16,
        payload: &[u8],
    ) -> Result<Appended, AppendError> {
        let contents = Contents { records, flags: 0 };
        let body = Body::Parts(&[number, payload]);
        let appended = self.append_data(Kind::Numbered, contents, body)?;
        Ok(Appended { payload: appended.payload.advance(NUMBER_BYTES as u64), ..appended })
    }

    /// Waits until a payload of this length could be appended, draining itself if nobody does.
    /// A ring that is full of durable frames waits for [`Log::release`].
    ///
    /// # Errors
    /// [`AppendError::TooLarge`], [`AppendError::Poisoned`], or [`AppendError::Full`] if there is
    /// no room after so long.
    pub fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError> {
        self.check_opener().map_err(AppendError::Poisoned)?;
        self.wait_room(payload_bytes, patience)
    }

    /// Whether a payload of this length could be appended now.
    #[must_use]
    pub fn has_room(&self, payload_bytes: u64) -> bool {
        self.room(payload_bytes).is_ok()
    }

    /// Returns when everything below `upto` is on the device (durability class Disk).
    ///
    /// # Errors
    /// See [`CommitError`]. A failure of a write or sync is final.
    pub fn commit(&self, upto: Lsn) -> Result<(), CommitError> {
        self.commit_to(upto)
    }

    /// One step of draining: writes and syncs what is published now, up to the end of its span (at
    /// most 8 MiB), beside drains that are under way; waits for one of them where no more fit.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn drain(&self) -> Result<Drained, CommitError> {
        self.check_opener().map_err(CommitError::Poisoned)?;
        self.drain_once()
    }

    /// Sleeps until something is published that is not durable, or until the timeout. Returns
    /// whether there is something to drain; never for a poisoned log.
    pub fn wait_for_drain_work(&self, timeout: Duration) -> bool {
        let marks = self.marks();
        if self.check_opener().is_err() || self.refuse_if_poisoned().is_err() {
            std::thread::park_timeout(timeout);
            return false;
        }
        if marks.durable < marks.tail {
            return true;
        }
        self.region.wait_tail(marks.tail.get(), timeout) > marks.tail.get()
    }

    /// One step of what is better done before it is needed: gets a segment ready, or puts a
    /// watermark behind the last frame of an idle log. Returns whether there was something to do.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn prepare(&self) -> Result<bool, CommitError> {
        self.check_opener().map_err(CommitError::Poisoned)?;
        self.prepare_step()
    }

    /// Appends a mark: the reader has applied, and made durable elsewhere, everything below
    /// `released` (which must be durable here). After a crash, recovery starts there. Does nothing
    /// if a mark has said so before.
    ///
    /// # Errors
    /// See [`AppendError`], never [`AppendError::Full`] for a log that stays in its ring: marks go
    /// past the dirty bound and into the reserve, and where one would take as much of a full ring
    /// as it gives, the catalogue says it, which takes a replacement of that small file.
    pub fn mark(&self, released: Lsn) -> Result<(), AppendError> {
        self.append_reader_mark(released)
    }

    /// Says what the newest mark says in the catalogue, too, where it is durable at once: for a log
    /// whose device has no room for the mark itself. Returns whether the catalogue could say it: a
    /// position behind the last segment is none that it knows.
    ///
    /// # Errors
    /// See [`CommitError`], never [`CommitError::Poisoned`].
    pub fn record_mark(&self) -> Result<bool, CommitError> {
        self.check_opener().map_err(CommitError::Poisoned)?;
        self.mark_marked()
    }

    /// Gives the ring below `upto` back to be written again, and lets segments below be recycled.
    /// Does nothing to a log that stays on its device: there the mark alone says what is needed.
    ///
    /// # Panics
    /// If `upto` is above the newest mark, not durable, or pinned by a reader.
    pub fn release(&self, upto: Lsn) {
        let marked = self.word(words::MARKED).load(Ordering::Relaxed);
        assert!(upto.get() <= marked, "the mark goes into the log before the space is released");
        if self.retention == Retention::OnDevice {
            return;
        }
        self.damaged.release(upto);
        self.region.release(upto.get());
        // Under the lock that waiters hold while they look, so that none sleeps through this.
        self.moved.tell(&self.progress());
    }

    /// A reader of what is durable, beginning at a boundary of frames.
    pub fn cursor(self: &Arc<Self>, from: Lsn) -> Cursor {
        Cursor::new(Arc::clone(self), from)
    }

    /// A reader of what is durable below a boundary of frames, newest first.
    pub fn back_cursor(self: &Arc<Self>, from: Lsn) -> BackCursor {
        BackCursor::new(Arc::clone(self), from)
    }

    /// Cuts off everything from `lsn` on, a boundary of frames, for good. What has been appended by
    /// then is made durable first. What others append meanwhile may stay, and nobody is kept from
    /// appending. Positions are not used again: the log goes on where it ended.
    ///
    /// # Errors
    /// See [`TruncateError`].
    ///
    /// # Panics
    /// If the log does not stay on its device.
    pub fn truncate_after(self: &Arc<Self>, lsn: Lsn) -> Result<(), TruncateError> {
        self.cut_after(lsn)
    }

    /// Nothing below is needed any more: where a reader begins that has applied nothing itself.
    #[must_use]
    pub fn first(&self) -> Lsn {
        self.needs().released
    }

    /// Has as many bytes be stable without being durable from now on, at the most. What is more
    /// already stays until it is drained; an append that waits for room sees it after the next
    /// drain.
    pub fn bound_dirty_bytes(&self, bytes_max: u64) {
        self.dirty_bytes_max.store(bytes_max, Ordering::Relaxed);
    }

    /// How fast the device takes what is drained, in bytes a second of draining; 0 before the first
    /// drain.
    #[must_use]
    pub fn drain_rate_bytes_per_s(&self) -> u64 {
        self.word(words::DRAIN_RATE).load(Ordering::Relaxed)
    }

    /// Drains everything and writes the last watermark, so that the next open finds a clean end.
    /// The log can still be read afterwards.
    ///
    /// # Errors
    /// See [`CommitError`].
    pub fn close(&self) -> Result<(), CommitError> {
        self.commit_to(self.marks().tail)?;
        if self.cover(self.marks()) {
            self.commit_to(self.marks().tail)?;
        }
        self.seal_partial()?;
        let below = self.segments.generations_below();
        let recorded = self.segments.record(|| self.needs(), below);
        self.prepared(recorded)
    }
}
