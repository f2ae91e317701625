//! The stream of records on its way into the log.
//!
//! Promise: frames follow one another as their records do; what is stable is in the log and in the
//! feed, what is durable is on the log's device; a failure of the log is final, and everybody is
//! told so from then on; a child that was forked from who has the stream is told that it failed.
//! Never: holds the buffer while the log is at work; starts a thread; knows what a record says.
//!
//! Records of a store move from mark to mark: `released <= durable <= stable <= next`.

pub(crate) mod append_buffer;
pub(crate) mod frame;
pub(crate) mod frame_index;
pub(crate) mod record;
pub(crate) mod rsn;
pub(crate) mod tag;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use std::{fmt, io};

use holdfast_io::{Clock, Opener};
use holdfast_log::{AppendError, CommitError, CommitLog, Lsn};

use crate::error::{
    CommitFault, FlushError, Poisoned, ReleaseError, RereadError, StageError, SyncError,
};
use crate::stream::append_buffer::{AppendBuffer, Cut, FlushBatch, Group};
use crate::stream::frame::{FRAME_HEAD_BYTES, Framed};
use crate::stream::frame_index::{FrameIndex, FramePlace};
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

/// Makes room in the log for a payload of so many bytes, or says why there is none now.
type MakeRoom = dyn Fn(u64) -> Result<(), Arc<io::Error>> + Send + Sync;

/// The records of an open store. All calls may come from any thread.
pub struct Stream {
    log: Arc<dyn CommitLog>,
    clock: Arc<dyn Clock>,
    tag: Tag,
    stage: AppendBuffer,
    records_bytes_max: u64,
    /// What is on its way; held while it is, so frames keep the order of their records.
    flushing: Mutex<FlushBatch>,
    handed: Mutex<Handed>,
    /// The end of the last frame, as RSN.
    stable: AtomicU64,
    /// An RSN, which may lag.
    durable: AtomicU64,
    /// Where the log's mark stands; held while it moves.
    releasing: Mutex<Lsn>,
    make_room: OnceLock<Box<MakeRoom>>,
    pressed: AtomicBool,
    poison: OnceLock<Poisoned>,
    opener: Opener,
}

/// What the log has been handed.
struct Handed {
    feed: Feed,
    /// Frames that are not released.
    places: FrameIndex,
}

/// Records that have become stable, and their frames, both in order and without a gap.
#[derive(Debug, Default)]
pub struct Feed {
    /// The records.
    pub bytes: Vec<u8>,
    /// Their frames. The first record of the first one is the first of the records.
    pub frames: Vec<FramePlace>,
}

impl Stream {
    /// A stream into `log`, which holds `frames` of this store from what is released to its tail;
    /// their records end at `next`.
    ///
    /// # Panics
    /// If the frames have gaps, or do not end at `next`.
    #[must_use]
    pub fn new(
        log: Arc<dyn CommitLog>,
        clock: Arc<dyn Clock>,
        tag: Tag,
        next: Rsn,
        frames: Vec<FramePlace>,
    ) -> Stream {
        let marks = log.marks();
        let places = FrameIndex::new(frames, next);
        let durable = places.durable(marks.durable).or(places.first()).unwrap_or(next);
        let records_bytes_max = log.payload_bytes_max() - FRAME_HEAD_BYTES as u64;
        Stream {
            log,
            clock,
            tag,
            stage: AppendBuffer::new(next, records_bytes_max),
            records_bytes_max,
            flushing: Mutex::new(FlushBatch::default()),
            handed: Mutex::new(Handed { feed: Feed::default(), places }),
            stable: AtomicU64::new(next.get()),
            durable: AtomicU64::new(durable.get()),
            releasing: Mutex::new(marks.released),
            make_room: OnceLock::new(),
            pressed: AtomicBool::new(false),
            poison: OnceLock::new(),
            opener: Opener::this_process(),
        }
    }

    /// Lets `how` make room whenever the log has none, instead of waiting until somebody else has.
    /// It must not flush.
    ///
    /// # Panics
    /// If it was called before.
    pub fn make_room_by(
        &self,
        how: impl Fn(u64) -> Result<(), Arc<io::Error>> + Send + Sync + 'static,
    ) {
        assert!(self.make_room.set(Box::new(how)).is_ok(), "there is one way to make room");
    }

    /// Puts a group of records into the stream, and returns where it ends. `write` is called once,
    /// while nobody else puts any, so it must be short and must not use the stream. Never waits for
    /// the log. The records are nowhere but in memory until they are flushed.
    ///
    /// # Errors
    /// See [`StageError`]; nothing was put, whatever `write` has been told.
    #[inline]
    pub fn append(&self, write: &mut dyn FnMut(&mut Group<'_>)) -> Result<Rsn, StageError> {
        self.refuse_if_poisoned()?;
        Ok(self.stage.append(write)?)
    }

    /// The longest group that there can be, in bytes.
    #[must_use]
    pub fn group_bytes_max(&self) -> u64 {
        self.records_bytes_max
    }

    /// Where the next record will stand.
    #[must_use]
    pub fn next(&self) -> Rsn {
        self.stage.next()
    }

    /// Below this every record is in the log (durability class Memory) and has been in the feed.
    #[must_use]
    #[inline]
    pub fn stable(&self) -> Rsn {
        // EDGE stable-in-feed: whoever sees the mark finds the records in the feed.
        Rsn(self.stable.load(Ordering::Acquire))
    }

    /// Below this every record is known to be on the log's device (durability class Disk).
    #[must_use]
    #[inline]
    pub fn durable(&self) -> Rsn {
        Rsn(self.durable.load(Ordering::Relaxed))
    }

    /// Hands everything that was put before this call to the log, and returns how far the stream is
    /// stable then. Waits while the log is full.
    ///
    /// # Errors
    /// See [`FlushError`].
    pub fn flush(&self) -> Result<Rsn, FlushError> {
        self.flush_to(self.next())?;
        Ok(self.stable())
    }

    /// Returns when every record below `upto` is durable. Flushes if need be.
    ///
    /// # Errors
    /// See [`SyncError`].
    ///
    /// # Panics
    /// If there are no such records yet.
    pub fn sync(&self, upto: Rsn) -> Result<(), SyncError> {
        assert!(upto <= self.next(), "what is to be durable has been put");
        self.refuse_child().map_err(SyncError::Poisoned)?;
        if self.durable() >= upto {
            return Ok(());
        }
        self.flush_to(upto)?;
        // A frame that is not there any more was released, and is durable therefore.
        let Some(place) = self.handed().places.with_byte_before(upto) else { return Ok(()) };
        self.commit(place.lsn_end)?;
        self.note_durable(place.end);
        Ok(())
    }

    /// Replaces `into` by what became stable since the last call. For one follower; two would each
    /// miss what the other took.
    pub fn take_feed(&self, into: &mut Feed) {
        into.bytes.clear();
        into.frames.clear();
        std::mem::swap(&mut self.handed().feed, into);
    }

    /// Gives the log's frames back whose records all stand below `upto`: nobody needs them in the
    /// log any more, also after a crash. Does nothing if they were given back before.
    ///
    /// # Errors
    /// See [`ReleaseError`].
    ///
    /// # Panics
    /// If `upto` is not stable.
    pub fn release(&self, upto: Rsn) -> Result<(), ReleaseError> {
        assert!(upto <= self.stable(), "what is released is in the log");
        self.refuse_child()?;
        let mut released = self.releasing.lock().expect("nothing panics with the mark");
        let start = self.handed().places.start_of(upto);
        let Some(lsn) = start.filter(|lsn| *lsn > *released) else { return Ok(()) };
        // A mark speaks of durable frames only, and must be durable before they are overwritten.
        self.commit(lsn)?;
        self.log.mark(lsn).map_err(|error| match error {
            AppendError::Full => ReleaseError::Full,
            AppendError::Unmarked(error) => ReleaseError::Unprepared(error),
            error => self.poison_by_append(error).into(),
        })?;
        self.commit(self.log.marks().tail)?;
        self.log.release(lsn);
        *released = lsn;
        self.forget_below(lsn);
        Ok(())
    }

    /// Hands the stable frames with records at `from` and behind it to `each`, in order, until that
    /// fails. Whoever releases waits meanwhile.
    pub(crate) fn read_from(
        &self,
        from: Rsn,
        each: &mut dyn FnMut(&Framed<'_>) -> Result<(), RereadError>,
    ) -> Result<(), RereadError> {
        let _kept = self.releasing.lock().expect("nothing panics with the mark");
        // First: more may become stable while the places are looked at.
        let stable = self.stable();
        let Some((lsn, lsn_end)) = self.handed().places.span_from(from) else {
            let all = from >= stable;
            return if all { Ok(()) } else { Err(RereadError::Released { from }) };
        };
        let mut handed_over = Ok(());
        let read = self.log.read(lsn, lsn_end, &mut |frame| {
            let framed = Framed::parse(frame.payload, self.tag).map_err(RereadError::Frame);
            handed_over = framed.and_then(|framed| each(&framed));
            handed_over.is_ok()
        });
        read.map_err(RereadError::Log)?;
        handed_over
    }

    /// How many bytes of the log lie between the frames with these records.
    pub(crate) fn log_bytes(&self, from: Rsn, to: Rsn) -> u64 {
        let handed = self.handed();
        let ends = (handed.places.start_of(from), handed.places.start_of(to));
        let (Some(from), Some(to)) = ends else { return 0 };
        to.get().saturating_sub(from.get())
    }

    /// Where the log's first frame lies that is not given back.
    pub(crate) fn released(&self) -> Lsn {
        self.log.marks().released
    }

    /// Whether somebody waits for room in the log at this moment, or could not be given any.
    #[must_use]
    pub fn is_pressed(&self) -> bool {
        self.pressed.load(Ordering::Relaxed)
    }

    fn flush_to(&self, upto: Rsn) -> Result<(), FlushError> {
        loop {
            self.refuse_if_poisoned()?;
            if self.stable() >= upto {
                return Ok(());
            }
            self.hand_over(upto)?;
        }
    }

    /// Hands over what was put, unless somebody has meanwhile. What an earlier attempt left
    /// goes first.
    fn hand_over(&self, upto: Rsn) -> Result<(), FlushError> {
        let mut batch = self.flushing.lock().expect("nothing panics with a batch");
        if self.stable() >= upto {
            return Ok(());
        }
        if batch.is_empty() {
            self.stage.take(&mut batch);
        }
        while let Some(cut) = batch.cut(self.records_bytes_max) {
            let Cut { end, groups, .. } = cut;
            self.append_frame(cut)?;
            batch.pass(groups, end);
        }
        Ok(())
    }

    /// One frame, and the feed of it. The stream is stable to its end afterwards.
    fn append_frame(&self, cut: Cut<'_>) -> Result<(), FlushError> {
        self.refuse_if_poisoned()?;
        let head = Framed::head(cut.first, self.tag);
        let groups = u16::try_from(cut.groups).unwrap_or(u16::MAX);
        let utc_ns = self.clock.utc_ns();
        let appended = loop {
            match self.log.append(groups, &[&head, cut.bytes]) {
                Ok(appended) => break appended,
                Err(AppendError::Full) => self.make_room((head.len() + cut.bytes.len()) as u64)?,
                Err(error) => return Err(self.poison_by_append(error).into()),
            }
        };
        // Whoever made room for it: somebody may have, after this had failed.
        if self.is_pressed() {
            self.pressed.store(false, Ordering::Relaxed);
        }
        let (lsn, lsn_end) = (appended.lsn, appended.end);
        let place = FramePlace { first: cut.first, end: cut.end, lsn, lsn_end, utc_ns };
        self.handed().push(place, cut.bytes);
        // EDGE stable-in-feed: the records are in the feed when the mark says so.
        self.stable.store(cut.end.get(), Ordering::Release);
        Ok(())
    }

    fn make_room(&self, payload_bytes: u64) -> Result<(), FlushError> {
        self.pressed.store(true, Ordering::Relaxed);
        match self.make_room.get() {
            Some(make_room) => make_room(payload_bytes).map_err(FlushError::Full),
            None => {
                let waited = self.log.wait_for_room(payload_bytes, Duration::MAX);
                waited.map_err(|error| self.poison_by_append(error).into())
            }
        }
    }

    fn commit(&self, upto: Lsn) -> Result<(), CommitFault> {
        self.log.commit(upto).map_err(|error| match error {
            CommitError::Unprepared(error) => CommitFault::Unprepared(error),
            CommitError::Poisoned(error) | CommitError::Unreachable(error) => {
                CommitFault::Poisoned(self.poison_by(error))
            }
            error => CommitFault::Poisoned(self.poison_by(Arc::new(io::Error::other(error)))),
        })
    }

    fn poison_by_append(&self, error: AppendError) -> Poisoned {
        match error {
            AppendError::Poisoned(error) | AppendError::Unreachable(error) => self.poison_by(error),
            error => self.poison_by(Arc::new(io::Error::other(error))),
        }
    }

    /// Remembers the first failure for good, and returns it.
    fn poison_by(&self, error: Arc<io::Error>) -> Poisoned {
        self.poison.get_or_init(|| Poisoned(error)).clone()
    }

    #[inline]
    fn refuse_if_poisoned(&self) -> Result<(), Poisoned> {
        self.refuse_child()?;
        self.poison.get().map_or(Ok(()), |poisoned| Err(poisoned.clone()))
    }

    /// Refuses a child that was forked before it comes to a lock that nobody gives back there.
    #[inline]
    fn refuse_child(&self) -> Result<(), Poisoned> {
        self.opener.check().map_err(|forked| Poisoned(Arc::new(forked)))
    }

    fn note_durable(&self, upto: Rsn) {
        self.durable.fetch_max(upto.get(), Ordering::Relaxed);
    }

    /// Forgets the frames before this one, all of which are durable.
    fn forget_below(&self, lsn: Lsn) {
        let mut handed = self.handed();
        // First: whoever does not find a frame relies on it.
        if let Some(durable) = handed.places.durable(lsn) {
            self.note_durable(durable);
        }
        handed.places.forget_below(lsn);
    }

    fn handed(&self) -> MutexGuard<'_, Handed> {
        self.handed.lock().expect("nothing panics with the feed")
    }
}

impl Handed {
    fn push(&mut self, place: FramePlace, records: &[u8]) {
        self.feed.bytes.extend_from_slice(records);
        self.feed.frames.push(place);
        self.places.push(place);
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Stream");
        out.field("durable", &self.durable()).field("stable", &self.stable());
        out.finish_non_exhaustive()
    }
}
