//! One log that is served: what clients may do with it, on arguments that were copied once.
//!
//! Promise: whatever a client asks, the log's own promises hold: positions are checked to be
//! boundaries of frames, nothing is released that somebody reads or that is needed to know a
//! request again, and a number is appended once.
//! Never: touches a session's memory, or waits for a device in a session's thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use holdfast_client::protocol::{BUFFER_ROOM_BYTES, PAYLOAD_BYTES_MAX, Status};
use holdfast_client::wire;
use holdfast_io::{Clock, Files};
use holdfast_log::{
    AppendError, CommitError, CommitLog, Health, Log, LogConfig, Lsn, NUMBER_BYTES, NoteError,
    Noter, OpenError, ReadError, Recovery,
};
use holdfast_memory::Region;

use crate::handler::{Refusal, errno_of};
use crate::waiting::{Need, Verdict, WaitingRoom};
use crate::window::{Number, Placed, Seen, Shared, Windows, lock};
use crate::words;

/// How long drainer and preparer sleep when there is nothing to do.
const IDLE_WAIT: Duration = Duration::from_millis(20);

/// The same for a drainer whom nobody waits for: who appends, or comes to wait, wakes it.
const REST: Duration = Duration::from_millis(250);

/// A log to be served, and to whom.
pub struct LogSpec {
    /// Full name of its service: `log/NAME`, `volume/NAME`.
    pub service: String,
    /// The log's directory.
    pub files: Arc<dyn Files>,
    /// The region that is its ring.
    pub region: Arc<Region>,
    /// What stamps its frames.
    pub clock: Arc<dyn Clock>,
    /// Its sizes.
    pub config: LogConfig,
    /// Appends are acknowledged when the device has them; else when the region has.
    pub is_written_through: bool,
    /// The users that may be its clients.
    pub allow_uids: Vec<u32>,
    /// Most sessions at a time.
    pub clients_max: u32,
}

/// Why a log is not served: it cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{service} cannot be opened: {error}")]
pub struct ServeError {
    /// Its service.
    pub service: String,
    /// Why. See there.
    pub error: OpenError,
}

/// An open log with its clients' windows.
pub(crate) struct ServedLog {
    /// Full name of the service.
    pub(crate) service: String,
    pub(crate) log: Log,
    pub(crate) recovery: Recovery,
    region: Arc<Region>,
    pub(crate) windows: Windows,
    pub(crate) waiting: WaitingRoom,
    pub(crate) is_written_through: bool,
    pub(crate) allow_uids: Vec<u32>,
    pub(crate) clients_max: u32,
    /// Held by who reads, and alone by who releases.
    reading: RwLock<()>,
    /// The newest position that is known to be a boundary.
    boundary: Mutex<Lsn>,
    /// Changes of the notes take turns.
    noting: Mutex<()>,
}

impl ServedLog {
    /// Opens the log and learns from it what its clients may ask again.
    pub(crate) fn open(spec: LogSpec) -> Result<ServedLog, ServeError> {
        let LogSpec { service, files, region, clock, config, .. } = spec;
        let opened = Log::open(files, Arc::clone(&region), clock, config);
        let (log, recovery) =
            opened.map_err(|error| ServeError { service: service.clone(), error })?;
        let served = ServedLog {
            service,
            boundary: Mutex::new(log.marks().released),
            log,
            recovery,
            region,
            windows: Windows::default(),
            waiting: WaitingRoom::default(),
            is_written_through: spec.is_written_through,
            allow_uids: spec.allow_uids,
            clients_max: spec.clients_max,
            reading: RwLock::new(()),
            noting: Mutex::new(()),
        };
        served.rebuild_windows();
        Ok(served)
    }

    /// Where a note is damaged, what it carried is unknown, and so is whose it was: clients of
    /// before are forgotten. Everybody else is served, and what is in the log is whole.
    fn rebuild_windows(&self) {
        let carried = match self.log.notes_of(Noter::Server) {
            Ok(carried) => carried,
            Err(error) => {
                let service = &self.service;
                tracing::warn!(service, "{error}; clients of before it are refused");
                return self.windows.forget_all();
            }
        };
        carried.iter().for_each(|carried| self.windows.replay_carried(carried));
        let marks = self.log.marks();
        for frame in &self.log.frames(marks.released, marks.tail) {
            if let Some((number, _)) = frame.numbered() {
                let placed = Placed { lsn: frame.header.lsn, end: frame.end() };
                self.windows.replay(Number::decode(number), placed);
            }
        }
    }

    /// The longest payload of a client's append.
    pub(crate) fn payload_bytes_max(&self) -> u64 {
        (self.log.payload_bytes_max() - NUMBER_BYTES as u64).min(PAYLOAD_BYTES_MAX)
    }

    /// Bytes of one buffer of a session.
    pub(crate) fn buffer_bytes(&self) -> u32 {
        (self.payload_bytes_max() + BUFFER_ROOM_BYTES).next_multiple_of(4096) as u32
    }

    /// The region that is its ring.
    pub(crate) fn region(&self) -> Arc<Region> {
        Arc::clone(&self.region)
    }

    fn count(&self, word: usize) {
        self.region.word(word).fetch_add(1, Ordering::Relaxed);
    }

    /// Appends, unless this number was appended already. Returns where it is. The window is held
    /// throughout, so whoever releases sees a frame and what is known of it, or neither.
    pub(crate) fn append(
        &self,
        window: &Shared,
        number: Number,
        records: u16,
        payload: &[u8],
    ) -> Result<Placed, Refusal> {
        let mut window = lock(window);
        match window.look(number.sequence, number.oldest) {
            Seen::Outside => return Err((Status::BadSequence, number.sequence)),
            Seen::Placed(placed) => {
                self.count(words::REPLAYED);
                return Ok(placed);
            }
            Seen::New => {}
        }
        let appended = self.log.append_numbered(&number.encode(), records, payload);
        let appended = appended.map_err(|error| self.append_refusal(error))?;
        let placed = Placed { lsn: appended.lsn, end: appended.end };
        window.put(number.sequence, placed);
        drop(window);
        self.count(words::APPENDED);
        Ok(placed)
    }

    /// Packs frames of `[from, to)`, as many as fit into `bytes_max`; returns where it stopped.
    pub(crate) fn read(
        &self,
        from: Lsn,
        to: Lsn,
        into: &mut Vec<u8>,
        bytes_max: usize,
    ) -> Result<Lsn, Refusal> {
        let _reading = self.reading.read().unwrap_or_else(PoisonError::into_inner);
        let mut next = to;
        let read = CommitLog::read(&self.log, from, to, &mut |frame| {
            let has_fitted = wire::pack_frame(into, frame, bytes_max);
            if !has_fitted {
                next = frame.header.lsn;
            }
            has_fitted
        });
        read.map_err(read_refusal)?;
        Ok(next)
    }

    /// Checks frames; answers in how many memory was found damaged.
    pub(crate) fn verify(&self, from: Lsn, to: Lsn) -> Result<u64, Refusal> {
        let _reading = self.reading.read().unwrap_or_else(PoisonError::into_inner);
        CommitLog::verify(&self.log, from, to).map_err(read_refusal)
    }

    /// Copies published bytes.
    pub(crate) fn copy(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), Refusal> {
        let _reading = self.reading.read().unwrap_or_else(PoisonError::into_inner);
        CommitLog::copy_bytes(&self.log, lsn, into).map_err(read_refusal)
    }

    /// Logs that the reader is done below `upto`. Saying it again changes nothing.
    pub(crate) fn mark(&self, upto: Lsn) -> Result<(), Refusal> {
        if upto <= self.marked() {
            return Ok(());
        }
        self.check_boundary(upto)?;
        let _alone = self.reading.write().unwrap_or_else(PoisonError::into_inner);
        self.carry(upto)?;
        self.log.mark(upto).map_err(|error| self.append_refusal(error))
    }

    /// Gives the ring below `upto` back. Saying it again changes nothing.
    pub(crate) fn release(&self, upto: Lsn) -> Result<(), Refusal> {
        if upto <= self.log.marks().released {
            return Ok(());
        }
        if upto > self.marked() {
            return Err((Status::BadPosition, 0));
        }
        self.check_boundary(upto)?;
        let alone = self.reading.write().unwrap_or_else(PoisonError::into_inner);
        if upto > self.log.marks().released {
            self.log.release(upto);
        }
        drop(alone);
        self.settle();
        Ok(())
    }

    fn marked(&self) -> Lsn {
        Lsn(self.region.word(holdfast_log::words::MARKED).load(Ordering::Relaxed))
    }

    /// Refuses a position that is not durable, or at which no frame begins or ends: a log that was
    /// marked there could not be opened again.
    fn check_boundary(&self, upto: Lsn) -> Result<(), Refusal> {
        let _reading = self.reading.read().unwrap_or_else(PoisonError::into_inner);
        let marks = self.log.marks();
        if !(marks.released..=marks.durable).contains(&upto) {
            return Err((Status::BadPosition, 0));
        }
        let mut boundary = self.boundary.lock().unwrap_or_else(PoisonError::into_inner);
        let known =
            if (marks.released..=upto).contains(&*boundary) { *boundary } else { marks.released };
        CommitLog::read(&self.log, known, upto, &mut |_| true).map_err(read_refusal)?;
        *boundary = upto;
        Ok(())
    }

    /// Brings what the frames below `upto` tell of requests under way into the roster. If that is
    /// full, it is written anew without what was needed only earlier. One with a damaged note stays
    /// as it is until the reader replaces its own: whoever opens it forgets these clients anyway.
    fn carry(&self, upto: Lsn) -> Result<(), Refusal> {
        let records = self.windows.carry(upto);
        let _alone = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut carried = records.iter();
        if !carried.all(|record| self.log.note_of(Noter::Server, record).is_ok()) {
            match CommitLog::notes(&self.log) {
                Ok(notes) => self.write_anew(upto, notes)?,
                Err(error) => tracing::warn!(service = self.service, "not carried over: {error}"),
            }
        }
        self.windows.carried(upto);
        Ok(())
    }

    /// Adds a note.
    pub(crate) fn note(&self, note: &[u8]) -> Result<(), Refusal> {
        let _alone = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        CommitLog::note(&self.log, note).map_err(note_refusal)
    }

    /// More than all notes together have.
    pub(crate) fn notes_bytes_max(&self) -> u64 {
        self.region.roster().bytes_max()
    }

    /// The reader's notes.
    pub(crate) fn notes(&self) -> Result<Vec<Vec<u8>>, Refusal> {
        CommitLog::notes(&self.log).map_err(note_refusal)
    }

    /// Replaces the reader's notes, be those of before whole or not; what is carried stays.
    pub(crate) fn replace_notes(&self, notes: Vec<Vec<u8>>) -> Result<(), Refusal> {
        // Whoever marks carries first.
        let _marked = self.reading.read().unwrap_or_else(PoisonError::into_inner);
        let _alone = self.noting.lock().unwrap_or_else(PoisonError::into_inner);
        let upto = self.marked();
        self.write_anew(upto, notes)?;
        self.windows.carried(upto);
        Ok(())
    }

    /// Writes the roster anew: what clients may ask again of what is below `upto`, and these notes.
    fn write_anew(&self, upto: Lsn, notes: Vec<Vec<u8>>) -> Result<(), Refusal> {
        let carried = self.windows.carry_anew(upto).into_iter();
        let carried = carried.map(|record| (Noter::Server, record));
        let notes = notes.into_iter().map(|note| (Noter::Reader, note));
        self.log.replace_notes_of_all(carried.chain(notes)).map_err(note_refusal)
    }

    /// Answers the requests whose time has come.
    pub(crate) fn settle(&self) {
        let marks = self.log.marks();
        self.waiting.settle(|need| {
            if need.is_met(&marks) {
                return Verdict::Answer;
            }
            if let Health::Poisoned(error) = self.log.health() {
                return Verdict::Refuse(Status::Poisoned, errno_of(&error));
            }
            match need {
                Need::Room(bytes, _) if self.log.has_room(bytes + NUMBER_BYTES as u64) => {
                    Verdict::Answer
                }
                Need::Room(_, Some(until)) if until <= Instant::now() => {
                    Verdict::Refuse(Status::Full, 0)
                }
                _ => Verdict::Wait,
            }
        });
    }

    /// Drains, and answers who waited for it, until told to stop. Run it in a thread of its own.
    pub(crate) fn run_drainer(&self, stop: &AtomicBool) {
        while !stop.load(Ordering::Relaxed) {
            // Who waits may do so for so long only.
            let patience = if self.waiting.is_empty() { REST } else { IDLE_WAIT };
            if self.log.wait_for_drain_work(patience) {
                self.log.wake_preparer();
                self.drain();
            }
            self.settle();
        }
    }

    fn drain(&self) {
        let Err(error) = self.log.drain() else { return };
        tracing::warn!(service = self.service, %error, "draining failed");
        if let CommitError::Unprepared(error) = &error {
            self.tell_unprepared(errno_of(error));
        }
        std::thread::sleep(IDLE_WAIT);
    }

    /// Somebody waits from now on.
    pub(crate) fn wake_drainer(&self) {
        self.region.wake_tail_waiters();
    }

    /// All are to end.
    pub(crate) fn wake_threads(&self) {
        self.wake_drainer();
        self.log.wake_preparer();
    }

    /// Prepares segments until told to stop. Run it in a thread of its own.
    pub(crate) fn run_preparer(&self, stop: &AtomicBool) {
        self.log.run_preparer(stop);
    }

    /// Who waits for the device hears that it is short of space; nothing is lost meanwhile. In a
    /// log that is written through the appends go on waiting: they are in the ring.
    fn tell_unprepared(&self, errno: u64) {
        if !self.is_written_through {
            self.waiting.settle(|need| match need {
                Need::Durable(_) => Verdict::Refuse(Status::Unprepared, errno),
                Need::Room(..) => Verdict::Wait,
            });
        }
    }

    fn append_refusal(&self, error: AppendError) -> Refusal {
        match error {
            AppendError::TooLarge { payload_bytes, .. } => (Status::TooLarge, payload_bytes),
            AppendError::Poisoned(error) => (Status::Poisoned, errno_of(&error)),
            AppendError::Unmarked(error) => (Status::Unprepared, errno_of(&error)),
            _ => (Status::Full, 0),
        }
    }
}

fn read_refusal(error: ReadError) -> Refusal {
    match error {
        ReadError::Boundary(lsn) => (Status::BadPosition, lsn.0),
        ReadError::Damaged(lsn) => (Status::Damaged, lsn.0),
        _ => (Status::BadPosition, 0),
    }
}

fn note_refusal(error: NoteError) -> Refusal {
    match error {
        NoteError::Damaged { offset } => (Status::NotesDamaged, offset),
        _ => (Status::NotesFull, 0),
    }
}
