//! The pages of one store: opened, handed over, and kept by steps.
//!
//! Promise: what was durable when the process before ended is found, without a page being read;
//! each step leaves the store as good as it was, however it ends.
//! Never: starts a thread, or knows what a page holds.
//!
//! Whoever has the pages calls the steps, from one thread or several, whenever there is time. None
//! of them waits for a latch, and only [`Pages::archive`] and what follows it write to a device.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_io::{Clock, Files};
use holdfast_log::{CommitLog, Lsn};

use crate::archive::Archive;
use crate::archive::archiver::Archiver;
use crate::archive::merger::{Keep, Merger};
use crate::archive::run_block::Compression;
use crate::archive::run_format::RunSpan;
use crate::backup::manifest::Manifest;
use crate::backup::restoring::Restoring;
use crate::backup::{back_up, forward};
use crate::clean::cleaner::framed::{Framed, Frames};
use crate::clean::cleaner::{Cleaner, CleanerOn};
use crate::clean::order::CleaningOrder;
use crate::directories::{Directories, PAGES};
use crate::error::{
    ArchiveError, BackupError, CheckpointError, CleanError, CompareError, FetchError, FollowError,
    MergeError, OpenError,
};
use crate::page::Page;
use crate::page::apply::Contents;
use crate::page::images::Images;
use crate::page::page_file::PageFile;
use crate::page::versions::Versions;
use crate::progress::Progress;
use crate::repair::compare::Checked;
use crate::repair::fetch::{Fetch, Fetched};
use crate::repair::repairs::Repairs;
use crate::repair::view::Views;
use crate::restart::analysis::{Analysis, analyse};
use crate::restart::analysis_state::State;
use crate::restart::bases::Bases;
use crate::restart::follower::{Follower, Running};
use crate::restart::reread::Rereader;
use crate::restart::stale::Stale;
use crate::stream::Stream;
use crate::stream::rsn::{PageNumber, Rsn, Slot};
use crate::stream::tag::Tag;

/// What says how far its pages are.
const VERSIONS: &str = "versions";

/// How the pages of a store are kept.
#[derive(Clone, Copy, Debug)]
pub struct PagesConfig {
    /// How much of the log is archived at once, in bytes. The log keeps up to four times as much,
    /// and a restart reads that.
    pub window_bytes: u64,
    /// How many neighbours in the page file are read and written at once.
    pub segment_pages: u64,
    /// How many bytes of records may wait until pages are cleaned; a few wait for some seconds at
    /// most.
    pub clean_every_bytes: u64,
    /// Which pages are cleaned then, and which wait.
    pub cleaning: CleaningOrder,
    /// How much of the past is kept.
    pub keep: Keep,
    /// How what is archived is compressed.
    pub compression: Compression,
    /// How it is known what a checkpoint has to say.
    pub checkpoints: Checkpoints,
}

/// The two ways to a checkpoint. The records that they put are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checkpoints {
    /// From memory, by following the stream.
    #[default]
    Followed,
    /// From the log, by reading what came behind the last one. For comparison only.
    Reread,
}

/// What was found when the pages were opened.
#[derive(Debug)]
pub struct Found {
    /// Transactions that were running, and what they have to undo, oldest first.
    pub losers: Vec<(Slot, Vec<Vec<u8>>)>,
    /// The first page that never was.
    pub next_page: PageNumber,
    /// Pages before that which are not in use, in order.
    pub free: Vec<PageNumber>,
    /// Where the next record will stand.
    pub next: Rsn,
    /// Up to where the base was that served.
    pub base: Rsn,
    /// Whether there was a newer base, or another one, that did not serve.
    pub fell_back: bool,
    /// How many bytes of records were read from the log.
    pub read_bytes: u64,
    /// How many records were taken one by one.
    pub records_folded: u64,
}

/// The pages of one open store. All calls may come from any thread.
#[derive(Debug)]
pub struct Pages {
    tag: Tag,
    archiver: Arc<Archiver>,
    cleaner: Cleaner,
    merger: Merger,
    rereader: Option<Arc<Rereader>>,
    fetch: Fetch,
}

/// The files of pages that are not runs or bases.
struct OpenFiles {
    pages: Arc<PageFile>,
    versions: Arc<Versions>,
    restoring: Arc<Restoring>,
}

impl Pages {
    /// Makes what a store without records has, in directories that have nothing, or what a call
    /// left that was cut short. It survives a power cut when this returns.
    ///
    /// # Errors
    /// Of the machine; call again.
    pub fn create(directories: &Directories, tag: Tag) -> io::Result<()> {
        let store = &directories.store;
        PageFile::open(&**store, Path::new(PAGES), tag, 1)?;
        Versions::open(&**store, Path::new(VERSIONS), tag)?;
        Bases::create(Arc::clone(store), tag, &State::new()).map(drop)
    }

    /// Opens the pages of the store with this tag, whose records are in `log` and in the archive.
    /// A log that has no room for records is given some by archiving what it has.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        directories: &Directories,
        clock: Arc<dyn Clock>,
        log: Arc<dyn CommitLog>,
        tag: Tag,
        contents: Arc<dyn Contents>,
        config: &PagesConfig,
    ) -> Result<(Pages, Found), OpenError> {
        let Known { archive, bases, analysis, found } = know(directories, &*log, tag)?;
        let files = OpenFiles::open(&directories.store, tag, config)?;

        let Analysis { state, archived, fresh, frames, .. } = analysis;
        let (cleaned, end) = (state.cleaned(), state.at());
        files.versions.distrust_before(cleaned);
        let archived = archived.expect("a base behind the archive's end does not serve");
        let stream = Arc::new(Stream::new(log, Arc::clone(&clock), tag, state.at(), frames));
        let rereader = rereader(&stream, &state, config.checkpoints);
        let stale = Arc::new(Stale::new());
        let follower = Follower::new(Arc::clone(&stream), Arc::clone(&stale), state, fresh);
        let follower = Arc::new(follower);
        let views = Arc::new(Views::new(Arc::clone(&follower), archive, cleaned));
        let archiver = Arc::new(Archiver::new(
            Arc::clone(&directories.archive),
            tag,
            (Arc::clone(&stream), Arc::clone(&follower), rereader.clone()),
            Arc::clone(&views),
            (archived, bases),
            (config.window_bytes, config.compression),
        ));
        make_room_by_archiving(&stream, &archiver);
        let fetch = Fetch {
            stream,
            follower,
            views,
            images: Arc::new(Images::new(Arc::clone(&stale), files.versions, end)),
            stale,
            pages: files.pages,
            repairs: Arc::new(Repairs::new()),
            restoring: files.restoring,
            contents,
            scratch: Mutex::default(),
            elided: AtomicU64::new(0),
        };
        let store = Arc::clone(&directories.store);
        let merger = Merger::new(
            Arc::clone(&directories.archive),
            tag,
            Arc::clone(&fetch.views),
            Arc::clone(&clock),
            (config.keep, config.compression),
        );
        let cleaner = cleaner(&fetch, (store, clock), config, cleaned);
        Ok((Pages { tag, archiver, cleaner, merger, rereader, fetch }, found))
    }

    /// The records on their way.
    #[must_use]
    pub fn stream(&self) -> &Arc<Stream> {
        &self.fetch.stream
    }

    /// Makes `into`, which is nothing, this page with all its records. Those that were noted must
    /// be stable.
    ///
    /// # Errors
    /// See [`FetchError`]; `into` may be anything then.
    pub fn load(&self, number: PageNumber, into: &mut Page) -> Result<Fetched, FetchError> {
        self.fetch.load(number, into)
    }

    /// Compares a page as somebody has it in memory with what its records make of nothing. They
    /// must be stable.
    ///
    /// # Errors
    /// See [`CompareError`].
    pub fn compare(&self, page: &Page) -> Result<(), CompareError> {
        self.fetch.compare(page)
    }

    /// What is wrong with a page on its device, if anything is: it is compared with what its
    /// records in the archive and behind it make of nothing. Nothing is repaired or counted.
    ///
    /// # Errors
    /// See [`FetchError`]: the page cannot be had at all.
    pub fn check(&self, number: PageNumber) -> Result<Checked, FetchError> {
        self.fetch.check(number)
    }

    /// Stretches of the stream whose records the archive has lost.
    #[must_use]
    pub fn lost_records(&self) -> Vec<RunSpan> {
        self.fetch.views.archive().lost().collect()
    }

    /// From now on the page is loaded with its records up to this one at least.
    pub fn note(&self, number: PageNumber, rsn: Rsn) {
        self.fetch.stale.raise(number, rsn);
    }

    /// Whether records of the page are known that the page file may lack.
    #[must_use]
    pub fn is_stale(&self, number: PageNumber) -> bool {
        self.fetch.stale.is_noted(number)
    }

    /// What was wrong with pages on their device.
    #[must_use]
    pub fn repairs(&self) -> &Repairs {
        &self.fetch.repairs
    }

    /// Takes what has become stable. True if there was something.
    ///
    /// # Errors
    /// See [`FollowError`].
    pub fn follow(&self) -> Result<bool, FollowError> {
        self.fetch.follower.step()
    }

    /// Where what is stable ends, and which transactions run there: see [`Follower::running`].
    ///
    /// # Errors
    /// See [`FollowError`].
    pub fn running(&self) -> Result<(Rsn, Running), FollowError> {
        self.fetch.follower.running()
    }

    /// A checkpoint, without a sync: see [`Follower::checkpoint`]. True if there was something to
    /// tell.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint(&self) -> Result<bool, CheckpointError> {
        let told = match &self.rereader {
            None => self.fetch.follower.checkpoint()?,
            Some(rereader) => rereader.checkpoint()?,
        };
        Ok(told.is_some())
    }

    /// Archives a window of the stream, if one is over: see [`Archiver::step`].
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn archive(&self) -> Result<bool, ArchiveError> {
        self.archiver.step()
    }

    /// Archives everything that was put before this call.
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn archive_all(&self) -> Result<bool, ArchiveError> {
        self.fetch.stream.sync(self.fetch.stream.next())?;
        self.archiver.close_window()
    }

    /// Writes a base of where the archive ends: see [`Archiver::write_base`].
    ///
    /// # Errors
    /// See [`ArchiveError`].
    pub fn write_base(&self) -> Result<bool, ArchiveError> {
        self.archiver.write_base()
    }

    /// Writes pages to the page file, a segment a call, once enough is archived that it has not.
    /// True if there was something to do.
    ///
    /// # Errors
    /// See [`CleanError`].
    pub fn clean(&self) -> Result<bool, CleanError> {
        self.cleaner.step(None)
    }

    /// As [`Pages::clean`], but writes what is in these frames instead of what the archive has. For
    /// comparison only: a page that cannot be had hinders all others.
    ///
    /// # Errors
    /// See [`CleanError`].
    pub fn clean_from(&self, frames: &dyn Frames) -> Result<bool, CleanError> {
        let framed = Framed { frames, fetch: &self.fetch, archiver: &self.archiver };
        self.cleaner.step(Some(&framed))
    }

    /// Merges runs of the archive, a stretch a call, once there are many. True if there was
    /// something to do.
    ///
    /// # Errors
    /// See [`MergeError`].
    pub fn merge(&self) -> Result<bool, MergeError> {
        self.merger.step(self.cleaned())
    }

    /// Leaves out of the archive now what is not kept, as far as the page file has it. True if
    /// there was something.
    ///
    /// # Errors
    /// See [`MergeError`]; all records are where they were.
    pub fn trim(&self) -> Result<bool, MergeError> {
        self.merger.trim(self.cleaned())
    }

    /// The runs of the archive, as they are now.
    #[must_use]
    pub fn runs(&self) -> Archive {
        self.merger.archive()
    }

    /// Takes a new page file into use, in the place of one that was lost. Its pages come back by
    /// [`Pages::clean`], a segment a call; whoever loads one does not wait for that. If the file is
    /// missing when pages are opened, this is so without a call.
    ///
    /// # Errors
    /// [`CleanError::Reopen`]; call again.
    pub fn restore(&self) -> Result<(), CleanError> {
        self.cleaner.restore(Path::new(PAGES))
    }

    /// Whether pages of the page file are still missing.
    #[must_use]
    pub fn is_restoring(&self) -> bool {
        self.fetch.restoring.is_on()
    }

    /// Makes a backup in directories that have none: of each page a copy, and all records to bring
    /// them to where the stream is at the end of this call. `tell` is told how far it is.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn back_up(
        &self,
        to: &Directories,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackupError> {
        let archive = || self.archive_all().map(|_| self.fetch.views.archive()).map_err(Into::into);
        back_up(&self.fetch, self.cleaned(), &archive, to, self.tag, tell)
    }

    /// Brings a backup to where the stream is now. `tell` is told how far it is.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn forward(
        &self,
        backup: &Directories,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackupError> {
        self.archive_all()?;
        forward(&self.fetch, self.fetch.views.archive(), backup, self.tag, tell)
    }

    /// How many pages were loaded without a look at the device, since they were opened: their
    /// newest image was in memory.
    #[must_use]
    pub fn elided(&self) -> u64 {
        self.fetch.elided.load(Ordering::Relaxed)
    }

    /// How many pages cleaning has written since they were opened, each as often as it did.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.cleaner.written()
    }

    /// How many pages cleaning has found to be other than their records say, and rebuilt.
    #[must_use]
    pub fn rebuilt(&self) -> u64 {
        self.cleaner.rebuilt()
    }

    /// How many pages cleaning has found that cannot be rebuilt. Whoever loads one is told.
    #[must_use]
    pub fn lost(&self) -> u64 {
        self.cleaner.lost()
    }

    /// The page file has every record before this place.
    #[must_use]
    pub fn cleaned(&self) -> Rsn {
        self.cleaner.cleaned()
    }

    /// Where the first record stands that is not archived.
    #[must_use]
    pub fn archived(&self) -> Rsn {
        self.fetch.views.archived()
    }
}

impl OpenFiles {
    fn open(files: &Arc<dyn Files>, tag: Tag, config: &PagesConfig) -> io::Result<OpenFiles> {
        // First: a page file that is made here has none of its pages.
        let restoring = Restoring::open(Arc::clone(files), Path::new(PAGES))?;
        let pages = PageFile::open(&**files, Path::new(PAGES), tag, config.segment_pages)?;
        let versions = Versions::open(&**files, Path::new(VERSIONS), tag)?;
        let (pages, versions, restoring) =
            (Arc::new(pages), Arc::new(versions), Arc::new(restoring));
        Ok(OpenFiles { pages, versions, restoring })
    }
}

/// Who reads the log again, if somebody is to.
fn rereader(
    stream: &Arc<Stream>,
    state: &State,
    checkpoints: Checkpoints,
) -> Option<Arc<Rereader>> {
    let rereader = || Arc::new(Rereader::new(Arc::clone(stream), state.clone()));
    (checkpoints == Checkpoints::Reread).then(rereader)
}

/// Who cleans the pages that are fetched there.
fn cleaner(
    fetch: &Fetch,
    (files, clock): (Arc<dyn Files>, Arc<dyn Clock>),
    config: &PagesConfig,
    cleaned: Rsn,
) -> Cleaner {
    let on = CleanerOn {
        files,
        pages: Arc::clone(&fetch.pages),
        images: Arc::clone(&fetch.images),
        stale: Arc::clone(&fetch.stale),
        repairs: Arc::clone(&fetch.repairs),
        restoring: Arc::clone(&fetch.restoring),
        views: Arc::clone(&fetch.views),
        stream: Arc::clone(&fetch.stream),
        contents: Arc::clone(&fetch.contents),
        clock,
        every_bytes: config.clean_every_bytes,
        order: config.cleaning,
    };
    Cleaner::new(on, cleaned)
}

/// What is known of a store before anything of it is used.
struct Known {
    archive: Archive,
    bases: Bases,
    analysis: Analysis,
    found: Found,
}

/// Finds out where archive, bases and log have got to. If records behind the archive's last run are
/// in the log no more, runs are lost; a base behind them goes on from there.
fn know(directories: &Directories, log: &dyn CommitLog, tag: Tag) -> Result<Known, OpenError> {
    let archive = Archive::open(&*directories.archive, tag)?;
    let end = archive.end().unwrap_or(Rsn::FIRST);
    let first = match know_from(directories, log, tag, end) {
        Ok((bases, analysis, found)) => {
            return Ok(Known::of(&archive, bases, analysis, found, tag));
        }
        Err(error) => error,
    };
    for at in Bases::ends(&*directories.store, tag).into_iter().filter(|at| *at > end) {
        if let Ok((bases, analysis, found)) = know_from(directories, log, tag, at) {
            return Ok(Known::of(&archive, bases, analysis, found, tag));
        }
    }
    Err(first)
}

/// What bases and log tell if the archive has every record before this, or has lost it.
fn know_from(
    directories: &Directories,
    log: &dyn CommitLog,
    tag: Tag,
    archived: Rsn,
) -> Result<(Bases, Analysis, Found), OpenError> {
    let (bases, loaded) = Bases::load(Arc::clone(&directories.store), tag, archived)?;
    let (base, fell_back) = (loaded.state.at(), loaded.damaged.is_some());
    let analysis = analyse(log, tag, loaded.state, archived)?;
    let found = Found::of(&analysis, base, fell_back);
    Ok((bases, analysis, found))
}

impl Known {
    /// With what the archive has lost of what is needed: each image in the page file is brought
    /// forward by what is archived. Runs before that are only needed if an image does not serve.
    fn of(archive: &Archive, bases: Bases, analysis: Analysis, found: Found, tag: Tag) -> Known {
        let archived = analysis.fresh.begin();
        let archive = archive.complete(analysis.state.cleaned(), archived, tag);
        Known { archive, bases, analysis, found }
    }
}

/// Lets whoever finds the log full archive what it has.
fn make_room_by_archiving(stream: &Stream, archiver: &Arc<Archiver>) {
    let (archiver, seen) = (Arc::downgrade(archiver), AtomicU64::new(stream.released().get()));
    stream.make_room_by(move |_| {
        let archiver = archiver.upgrade().ok_or_else(|| other("the store is closed"))?;
        let failed = |error: ArchiveError| Arc::new(io::Error::other(error));
        if archiver.sync().map_err(failed)? {
            return Ok(());
        }
        let made = archiver.make_room_beyond(Lsn(seen.load(Ordering::Relaxed)));
        let released = made.map_err(failed)?;
        let is_more = seen.fetch_max(released.get(), Ordering::Relaxed) < released.get();
        if is_more { Ok(()) } else { Err(other("the log is too small")) }
    });
}

fn other(what: &'static str) -> Arc<io::Error> {
    Arc::new(io::Error::other(what))
}

impl Found {
    fn of(analysis: &Analysis, base: Rsn, fell_back: bool) -> Found {
        let Analysis { state, read_bytes, records_folded, .. } = analysis;
        let losers = state.running().map(|(slot, bodies)| (slot, bodies.map(Vec::from).collect()));
        Found {
            losers: losers.collect(),
            next_page: state.next_page(),
            free: state.free().collect(),
            next: state.at(),
            base,
            fell_back,
            read_bytes: *read_bytes,
            records_folded: *records_folded,
        }
    }
}

impl std::fmt::Debug for Directories {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Directories").finish_non_exhaustive()
    }
}
