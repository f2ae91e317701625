//! Closes windows of the stream: their records become a run, and the log gets its frames back.
//!
//! Promise: only durable records are archived, each of them once; a frame is given back when the
//! archive has its records and neither base needs them; whoever is interrupted goes on from what is
//! there.
//! Never: flushes, so that a flush may call it to make room; reads the log.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use holdfast_io::Files;
use holdfast_log::Lsn;

use crate::archive::fresh::Fresh;
use crate::archive::run::RunWriter;
use crate::archive::run_block::Compression;
use crate::archive::run_format::{RunSpan, page_of};
use crate::archive::run_reader::Run;
use crate::canary::{Invariant, holds};
use crate::error::ArchiveError;
use crate::repair::view::Views;
use crate::restart::analysis_state::State;
use crate::restart::bases::Bases;
use crate::restart::follower::Follower;
use crate::restart::reread::Rereader;
use crate::stream::Stream;
use crate::stream::frame_index::FramePlace;
use crate::stream::record::What;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// A base is written when the older one keeps so many windows in the log. More would make a restart
/// longer, less would write more.
const BASE_EVERY_WINDOWS: u64 = 2;

/// Who archives the stream of one store. All calls may come from any thread.
pub struct Archiver {
    /// The directory of the archive.
    files: Arc<dyn Files>,
    tag: Tag,
    stream: Arc<Stream>,
    follower: Arc<Follower>,
    rereader: Option<Arc<Rereader>>,
    views: Arc<Views>,
    window_bytes: u64,
    compression: Compression,
    archiving: Mutex<Archiving>,
}

struct Archiving {
    /// What the archive's records come to.
    state: State,
    bases: Bases,
    entries: Vec<Entry>,
    head: Vec<u8>,
}

/// A record of a window, as it is sorted.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    page: PageNumber,
    rsn: Rsn,
    bytes: u32,
}

impl Archiver {
    /// Goes on with the archive in the directory that `files` has, whose records come to `state`. A
    /// window ends where the log's position is a multiple of `window_bytes`, with the next frame.
    /// Its records are compressed so.
    ///
    /// # Panics
    /// If the state is not that of the archive's end.
    #[must_use]
    pub fn new(
        files: Arc<dyn Files>,
        tag: Tag,
        (stream, follower, rereader): (Arc<Stream>, Arc<Follower>, Option<Arc<Rereader>>),
        views: Arc<Views>,
        (state, bases): (State, Bases),
        (window_bytes, compression): (u64, Compression),
    ) -> Archiver {
        assert!(state.at() == views.archived(), "the state is that of the archive's end");
        let archiving = Archiving { state, bases, entries: Vec::new(), head: Vec::new() };
        let archiving = Mutex::new(archiving);
        Archiver {
            files,
            tag,
            stream,
            follower,
            rereader,
            views,
            window_bytes,
            compression,
            archiving,
        }
    }

    /// Archives a window, if one is over; writes a base when it is time, and gives the log back
    /// what nobody needs. If somebody waits for room in the log: all that can be given back. True
    /// if there was something to do.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn step(&self) -> Result<bool, ArchiveError> {
        if self.stream.is_pressed() {
            let released = self.stream.released();
            return Ok(self.make_room_beyond(released)? > released);
        }
        let mut archiving = self.lock();
        let fresh = self.follower.fresh();
        let Some(end) = self.window_end(&fresh) else { return Ok(false) };
        self.archive(&mut archiving, &fresh, end)?;
        let kept_bytes = self.stream.log_bytes(archiving.bases.needed_from(), end);
        if kept_bytes >= BASE_EVERY_WINDOWS * self.window_bytes {
            archiving.write_base()?;
        }
        self.give_back(&archiving)?;
        Ok(true)
    }

    /// Archives every record that is stable, although its window is not over. True if there was
    /// one.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn close_window(&self) -> Result<bool, ArchiveError> {
        self.archive_all(&mut self.lock())
    }

    /// Writes a base of where the archive ends, unless there is one. True if there was none.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn write_base(&self) -> Result<bool, ArchiveError> {
        let mut archiving = self.lock();
        let is_old = archiving.bases.newest() < Some(archiving.state.at());
        if is_old {
            archiving.write_base()?;
            self.give_back(&archiving)?;
        }
        Ok(is_old)
    }

    /// Lets the log write what it has, which may be all that it has no room for. False if nothing
    /// was left to write.
    pub(crate) fn sync(&self) -> Result<bool, ArchiveError> {
        let stable = self.stream.stable();
        let is_dirty = self.stream.durable() < stable;
        if is_dirty {
            self.stream.sync(stable)?;
        }
        Ok(is_dirty)
    }

    /// Gives the log back all that can be given back, unless more than `seen` was already: archives
    /// what is stable, and lets no base need it. Returns where the log's first frame lies then.
    pub(crate) fn make_room_beyond(&self, seen: Lsn) -> Result<Lsn, ArchiveError> {
        let mut archiving = self.lock();
        if self.stream.released() <= seen {
            self.archive_all(&mut archiving)?;
            while archiving.bases.needed_from() < archiving.state.at() {
                archiving.write_base()?;
            }
            self.give_back(&archiving)?;
        }
        Ok(self.stream.released())
    }

    fn archive_all(&self, archiving: &mut Archiving) -> Result<bool, ArchiveError> {
        self.follower.catch_up(self.stream.stable())?;
        let fresh = self.follower.fresh();
        let is_behind = archiving.state.at() < fresh.end();
        if is_behind {
            self.archive(archiving, &fresh, fresh.end())?;
        }
        Ok(is_behind)
    }

    /// Where the window ends that is to be archived next, if it is over. One that the archive had
    /// and has lost is: who cleans waits for it.
    fn window_end(&self, fresh: &Fresh) -> Option<Rsn> {
        let archived = self.views.archived();
        if self.views.is_behind() {
            return Some(fresh.end()).filter(|end| archived < *end);
        }
        let first = fresh.frames(archived, fresh.end()).next()?;
        let border = Lsn((first.lsn.get() / self.window_bytes + 1) * self.window_bytes);
        if fresh.newest_frame()?.lsn < border {
            return None;
        }
        let mut frames = fresh.frames(archived, fresh.end());
        frames.find(|frame| frame.lsn >= border).map(|frame| frame.first)
    }

    /// Archives the fresh records up to `end`, where a frame ends.
    fn archive(
        &self,
        archiving: &mut Archiving,
        fresh: &Fresh,
        end: Rsn,
    ) -> Result<(), ArchiveError> {
        self.stream.sync(end)?;
        let span = RunSpan { level: 0, begin: archiving.state.at(), end };
        let frames: Vec<FramePlace> = fresh.frames(span.begin, end).copied().collect();
        let records_begin =
            if holds(Invariant::WindowsTile) { span.begin } else { frames[0].end.min(end) };
        archiving.sort(fresh, records_begin, end);
        self.write_run(archiving, fresh, span, &frames).map_err(ArchiveError::Run)?;
        let run = Run::open(&*self.files, span, self.tag).map_err(ArchiveError::Reread)?;
        archiving.take(fresh, end);
        self.views.show(Arc::new(run));
        Ok(())
    }

    fn write_run(
        &self,
        archiving: &mut Archiving,
        fresh: &Fresh,
        span: RunSpan,
        frames: &[FramePlace],
    ) -> io::Result<()> {
        let Archiving { state, entries, head, .. } = archiving;
        let mut run = RunWriter::begin(&*self.files, self.tag, span)?;
        run.compress(self.compression);
        for Entry { page, rsn, bytes } in entries {
            run.push(*page, *rsn, fresh.bytes_of(*rsn, *bytes as usize))?;
        }
        head.clear();
        state.put_whole(head);
        run.finish(head, frames)
    }

    fn give_back(&self, archiving: &Archiving) -> Result<(), ArchiveError> {
        if let Some(rereader) = &self.rereader {
            rereader.catch_up(archiving.state.at())?;
        }
        let upto = horizon(archiving.state.at(), archiving.bases.needed_from());
        Ok(self.stream.release(upto)?)
    }

    fn lock(&self) -> MutexGuard<'_, Archiving> {
        self.archiving.lock().expect("nobody panics who archives")
    }
}

impl Archiving {
    /// Sorts the records of a window.
    fn sort(&mut self, fresh: &Fresh, begin: Rsn, end: Rsn) {
        self.entries.clear();
        let records = fresh.records(begin, end);
        let kept = records.filter(|record| !matches!(record.what, What::Checkpoint(_)));
        self.entries.extend(kept.map(|record| {
            let bytes = u32::try_from(record.end.since(record.rsn)).expect("frames are shorter");
            Entry { page: page_of(&record), rsn: record.rsn, bytes }
        }));
        self.entries.sort_unstable();
    }

    /// Takes the records of a window that is archived.
    fn take(&mut self, fresh: &Fresh, end: Rsn) {
        for record in fresh.records(self.state.at(), end) {
            self.state.take(&record).expect("what is fresh followed from what was before it");
        }
        self.state.mark();
    }

    fn write_base(&mut self) -> Result<(), ArchiveError> {
        self.bases.write(&self.state).map_err(ArchiveError::Base)
    }
}

/// From where on the log is needed: by whoever goes on from the archive, or from the older base.
fn horizon(archived: Rsn, older_base: Rsn) -> Rsn {
    if holds(Invariant::ReleasedByTheLeast) {
        archived.min(older_base)
    } else {
        archived.max(older_base)
    }
}

impl std::fmt::Debug for Archiver {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Archiver").field("views", &self.views).finish_non_exhaustive()
    }
}
