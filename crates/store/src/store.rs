//! A store: opened, asked for trees and transactions, closed.
//!
//! Promise: what was durable when the process before ended is there, whole transactions of it and
//! nothing of others; it is open before anything is undone or any page is read.
//! Never: does what a transaction or a service does.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_log::Spoilt;
use holdfast_pages::{
    CheckpointError, CleanError, FlushError, Found, PageNumber, Pages, Rsn, SyncError, Tag,
};

use crate::engine::{Durability, Engine, Patience};
use crate::error::{CloseError, OpenError, OpenTreeError, ReclaimError, ServiceError};
use crate::face::closing::Note;
use crate::face::config::{Config, Restart, Services};
use crate::face::header::{Header, NoHeader, STORE};
use crate::face::place::Place;
use crate::face::services::{Service, Threads, Work};
use crate::face::stat::Stat;
use crate::face::verify::Verified;
use crate::locks::Locks;
use crate::locks::names::Name;
use crate::log::{self, StoreLog};
use crate::node::contents::NodeContents;
use crate::pool::Pool;
use crate::pool::allocator::Allocator;
use crate::restart::losers::Losers;
use crate::restart::slots::Slots;
use crate::snapshot::formers::Formers;
use crate::transaction::{Direction, Transaction};
use crate::transaction_error::TransactionError;
use crate::trees::named_tree::Tree;
use crate::trees::{DROPPED, NAMES_ROOT, root_in, root_value};

/// An open store. All calls may come from any thread. Dropping it without [`Store::close`] loses
/// nothing that was durable.
#[derive(Debug)]
pub struct Store {
    /// First, so that they end first.
    threads: Option<Threads>,
    pub(crate) work: Work,
    pub(crate) header: Header,
    opened: Note,
    /// Last, so that the directory is free when everything else is gone.
    place: Place,
}

/// What was found when a store was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    /// Whether the store was made by this call.
    pub is_new: bool,
    /// How many transactions were running when the process before ended. They are undone when
    /// somebody needs what they changed, or when there is time.
    pub losers: usize,
    /// Where the records ended that were found.
    pub end: Rsn,
    /// Up to where it was written down how far the store was.
    pub base: Rsn,
    /// Whether a newer one did not serve: it was damaged, or of an archive that is not there.
    pub fell_back: bool,
    /// How many bytes of records were read from the log.
    pub read_bytes: u64,
    /// How many records were looked at one by one.
    pub records_folded: u64,
    /// Which of the two catalogues of its own log was not as it should be, and has been made again
    /// from the other one, which says all that it said.
    pub remade: Vec<Spoilt>,
}

impl Store {
    /// Opens the store in a directory, or makes one there if the directory has nothing in it or is
    /// not there.
    ///
    /// Memory in which its log was counts as lost if `config` names other memory now, or none: what
    /// only that memory has is missing then, and the memory is refused from there on. So whoever
    /// has a store with memory that outlives a process ([`crate::LogPlace::Embedded`]) is the only
    /// one to open it. The directory of tables that a server serves is the server's.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(directory: &Path, config: &Config) -> Result<(Store, Recovery), OpenError> {
        Store::open_at(Store::place(directory)?, config)
    }

    /// The directory of a store on this machine, which is made unless it is there, locked against
    /// everybody else until this goes, or the store that is opened at it. What lies beside its log
    /// is as whoever had the store last left it: who has to look at that first looks here, and
    /// then opens it with [`Store::open_at`].
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn place(directory: &Path) -> Result<Place, OpenError> {
        Ok(Place::directory(directory, &STORE)?)
    }

    /// [`Store::open`], at a place that may be a model of one, or that somebody looked at before.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_at(place: Place, config: &Config) -> Result<(Store, Recovery), OpenError> {
        let (header, is_new) = header(&place, config)?;
        let identity = header.identity;
        let least = Note::least_log_end(&*place.store, header).map_err(OpenError::Io)?;
        let (log, remade) = log::open(&place, identity, &config.log, least)?;
        let (pages, found) = open_pages(&place, identity, &log, config)?;
        header.renew(&*place.store, &STORE).map_err(OpenError::Io)?;
        // Before there is anything that the archive has not.
        let opened = Note::open(&*place.store, &*place.entropy, header, log.begun());
        let opened = opened.map_err(OpenError::Io)?;
        let recovery = Recovery {
            is_new,
            losers: found.losers.len(),
            end: found.next,
            base: found.base,
            fell_back: found.fell_back,
            read_bytes: found.read_bytes,
            records_folded: found.records_folded,
            remade,
        };
        let next_page = found.next_page;
        let has_names = next_page > NAMES_ROOT;
        let engine = Arc::new(engine(header, pages, found, config)?);
        if !has_names {
            make_names(&engine)?;
        }
        if config.restart == Restart::Classical {
            engine.bring_all(next_page).map_err(OpenError::Redo)?;
            engine.undo_all().map_err(OpenError::Undo)?;
        }
        let work = Work { engine, log };
        let threads = match config.services {
            Services::Threads => Some(Threads::start(work.clone(), config.checkpoint_ms)),
            Services::Stepped => None,
        };
        let threads = threads.transpose().map_err(OpenError::Thread)?;
        place.keep();
        Ok((Store { threads, work, header, opened, place }, recovery))
    }

    /// Whether a directory has a store in it, sound or not: one of the two files that say so is
    /// enough.
    ///
    /// # Errors
    /// The machine does not say.
    pub fn is_at(directory: &Path) -> io::Result<bool> {
        let is_there = |name| std::fs::exists(directory.join(name));
        Ok(is_there(STORE.name)? || is_there(STORE.copy)?)
    }

    /// The tree of this name, which is made if there is none. That is as durable as the next
    /// transaction that uses it.
    ///
    /// # Errors
    /// See [`OpenTreeError`].
    pub fn tree(&self, name: &str) -> Result<Tree, OpenTreeError> {
        let found = self.find_tree(name)?;
        found.map_or_else(|| self.make_tree(name), Ok)
    }

    /// The tree of this name, if there is one.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn find_tree(&self, name: &str) -> Result<Option<Tree>, TransactionError> {
        let found = self.begin().get(&self.work.engine.names(), name.as_bytes())?;
        found.map(|value| Ok(self.work.engine.tree_named(name, root_of(&value)?))).transpose()
    }

    /// The names of all trees, in order.
    ///
    /// # Errors
    /// See [`TransactionError`].
    pub fn tree_names(&self) -> Result<Vec<String>, TransactionError> {
        let mut reading = self.begin();
        let names = reading.scan(&self.work.engine.names(), ..&[DROPPED][..], Direction::Up);
        names.map(|found| Ok(String::from_utf8_lossy(&found?.0).into_owned())).collect()
    }

    /// Begins a transaction.
    ///
    /// # Panics
    /// If 65536 are running.
    #[must_use]
    pub fn begin(&self) -> Transaction<'_> {
        Transaction::begin(&self.work.engine, Patience::Waits)
    }

    /// Begins a transaction that is told to be [`TransactionError::Busy`] where another one
    /// would wait for a lock.
    ///
    /// # Panics
    /// As [`Store::begin`].
    #[must_use]
    pub fn begin_impatient(&self) -> Transaction<'_> {
        Transaction::begin(&self.work.engine, Patience::NeverWaits)
    }

    /// Begins a transaction that keeps what it changes to itself until it is committed. Then all of
    /// it reaches the log at once, without the old values. It must fit there, and into half of the
    /// pool: see [`CommitError::TooLarge`](crate::CommitError) and
    /// [`TransactionError::PoolTooSmall`].
    ///
    /// # Panics
    /// As [`Store::begin`].
    #[must_use]
    pub fn begin_redo_only(&self) -> Transaction<'_> {
        Transaction::begin_redo_only(&self.work.engine, Patience::Waits)
    }

    /// [`Store::begin_redo_only`], of one that never waits, as with [`Store::begin_impatient`]. Its
    /// commit can be told that it would have to, too.
    ///
    /// # Panics
    /// As [`Store::begin`].
    #[must_use]
    pub fn begin_redo_only_impatient(&self) -> Transaction<'_> {
        Transaction::begin_redo_only(&self.work.engine, Patience::NeverWaits)
    }

    /// Returns when everything that was committed is durable, whatever it was committed as.
    ///
    /// # Errors
    /// See [`SyncError`].
    pub fn sync(&self) -> Result<(), SyncError> {
        let stream = self.work.engine.stream();
        stream.sync(stream.next())
    }

    /// Notes how far the store is, so that a restart has less to look at. Waits for no device, and
    /// takes no latch unless it is a classical one. False if there was nothing to note.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint(&self) -> Result<bool, CheckpointError> {
        self.work.engine.checkpoint()
    }

    /// How many latches checkpoints have taken since the store was opened: none, unless they are
    /// classical ones.
    #[must_use]
    pub fn checkpoint_latches(&self) -> u64 {
        self.work.engine.surveyed.load(Ordering::Relaxed)
    }

    /// How many latches were taken to bring the page file up to date since the store was opened:
    /// none, unless the cleaner is the classical one.
    #[must_use]
    pub fn cleaner_latches(&self) -> u64 {
        self.work.engine.copied.load(Ordering::Relaxed)
    }

    /// Compares every page, in memory and on its device, with what its records say, and looks at
    /// all trees, while others go on. `progress` hears of it after each page.
    ///
    /// # Errors
    /// See [`FlushError`]. What is wrong with pages is no error but the answer.
    pub fn verify(&self, progress: &mut dyn FnMut(&Verified)) -> Result<Verified, FlushError> {
        self.work.engine.verify(progress)
    }

    /// Frees pages that no tree leads to, and returns how many that were: a crash leaves some if it
    /// comes between the end of a transaction and the return of its large values' pages, which may
    /// be long after it if snapshots show them: see [`Stat::unfreed_pages`]. Rolls back all losers
    /// first, and reads all trees, so it has the store alone. What it did is as durable
    /// as the next transaction; where a crash interrupts it, the rest is freed by the next call.
    ///
    /// # Errors
    /// See [`ReclaimError`].
    pub fn reclaim(&mut self) -> Result<u64, ReclaimError> {
        self.work.engine.reclaim()
    }

    /// Leaves out of the archive now what [`Config::keep`] does not ask for, instead of by and by,
    /// and returns how many bytes that was. Brings the archive and the page file up to date first:
    /// what the page file lacks is never left out.
    ///
    /// # Errors
    /// See [`ServiceError`]; all that is to be kept is there.
    pub fn trim(&self) -> Result<u64, ServiceError> {
        let pages = &self.work.engine.pages;
        self.step(Service::Flush)?;
        pages.archive_all().map_err(ServiceError::Archive)?;
        while self.step(Service::Clean)? {}
        let before = self.stat().archive_bytes;
        pages.trim().map_err(ServiceError::Merge)?;
        Ok(before.saturating_sub(self.stat().archive_bytes))
    }

    /// Takes a new page file into use, because the old one is lost or its device fails. Its pages
    /// come back while the store is used; nobody waits for more than the page that he needs.
    ///
    /// # Errors
    /// See [`CleanError`]; call again.
    pub fn replace_pages(&self) -> Result<(), CleanError> {
        self.work.engine.pages.restore()
    }

    /// How the store is doing.
    #[must_use]
    pub fn stat(&self) -> Stat {
        Stat::of(&self.work)
    }

    /// One step of a service. True if there was something to do. Needed only with
    /// [`Services::Stepped`], but never wrong.
    ///
    /// # Errors
    /// See [`ServiceError`].
    pub fn step(&self, service: Service) -> Result<bool, ServiceError> {
        self.work.step(service)
    }

    /// What a thread of the store failed at last, since this was asked.
    #[must_use]
    pub fn trouble(&self) -> Option<ServiceError> {
        self.threads.as_ref().and_then(Threads::trouble)
    }

    /// Closes the store so that its archive has everything, and the next open little to do.
    ///
    /// # Errors
    /// See [`CloseError`].
    pub fn close(mut self) -> Result<(), CloseError> {
        self.threads = None;
        // What cannot be freed now is freed by whoever reclaims.
        while matches!(self.work.engine.trees().free_put_off(), Ok(true)) {}
        self.sync().map_err(CloseError::Sync)?;
        let Work { engine, log } = &self.work;
        engine.pages.archive_all().map_err(CloseError::Archive)?;
        engine.pages.write_base().map_err(CloseError::Archive)?;
        log.close().map_err(CloseError::Log)?;
        let end = engine.pages.archived();
        self.opened.close(&*self.place.store, end).map_err(CloseError::Io)
    }

    fn make_tree(&self, name: &str) -> Result<Tree, OpenTreeError> {
        let mut making = self.begin();
        // Somebody else may have made it meanwhile.
        if let Some(value) = making.get_for_update(&self.work.engine.names(), name.as_bytes())? {
            return Ok(self.work.engine.tree_named(name, root_of(&value)?));
        }
        let root = self
            .work
            .engine
            .trees()
            .create()
            .map_err(|error| OpenTreeError::Transaction(error.into()))?;
        making.insert(&self.work.engine.names(), name.as_bytes(), &root_value(root))?;
        making.commit(Durability::Memory)?;
        Ok(self.work.engine.tree_named(name, root))
    }
}

/// The root that the value of a tree's name tells.
pub(crate) fn root_of(value: &[u8]) -> Result<PageNumber, TransactionError> {
    root_in(value).map_err(|why| TransactionError::Corrupt { page: NAMES_ROOT, why })
}

/// Whose store is there; true if it has just been made.
fn header(place: &Place, config: &Config) -> Result<(Header, bool), OpenError> {
    match Header::read(&*place.store, &STORE) {
        Ok(header) => Ok((header, false)),
        Err(NoHeader::Free) => Ok((create(place, config)?, true)),
        Err(fault) => Err(fault.into()),
    }
}

/// Makes a store, or goes on where that was cut short.
fn create(place: &Place, config: &Config) -> Result<Header, OpenError> {
    let begun = log::identity_of(place, &config.log);
    let identity = begun.unwrap_or_else(|| {
        let mut identity = [0; 16];
        place.entropy.fill(&mut identity);
        identity
    });
    let header = Header { identity, history: 0 };
    log::begin(place, &header, &STORE, &config.log)?;
    Pages::create(&place.of_pages(), Tag::of(&identity)).map_err(OpenError::Io)?;
    header.finish(&*place.store, &STORE).map_err(OpenError::Io)?;
    Ok(header)
}

fn open_pages(
    place: &Place,
    identity: [u8; 16],
    log: &StoreLog,
    config: &Config,
) -> Result<(Pages, Found), OpenError> {
    let (clock, pages) = (Arc::clone(&place.clock), config.pages(log.window_bytes()));
    let (tag, contents) = (Tag::of(&identity), Arc::new(NodeContents));
    Pages::open(&place.of_pages(), clock, log.as_commit_log(), tag, contents, &pages)
        .map_err(OpenError::Pages)
}

/// What transactions work on, with the locks of losers taken.
fn engine(
    header: Header,
    pages: Pages,
    found: Found,
    config: &Config,
) -> Result<Engine, OpenError> {
    let pages = Arc::new(pages);
    let undo_bytes_max = config.undo_bytes_max(pages.stream().group_bytes_max());
    let mut engine = Engine {
        header,
        pool: Pool::new(config.frames(), Arc::clone(&pages), config.eviction),
        pages,
        numbers: Allocator::new(found.next_page, found.free),
        formers: Formers::new(config.snapshot_bytes),
        locks: Locks::default(),
        losers: Losers::default(),
        slots: Slots::without(&[]),
        named: Mutex::default(),
        checkpoints: config.checkpoints,
        surveyed: AtomicU64::new(0),
        undo_bytes_max,
        cleaner: config.cleaner,
        clean_every_bytes: config.clean_every_bytes,
        copied: AtomicU64::new(0),
        // What was found may not be durable yet.
        shown: AtomicU64::new(found.next.get()),
        freeing: Mutex::default(),
        has_dropped: AtomicBool::new(true),
    };
    let names_of = |body: &[u8], each: &mut dyn FnMut(Name)| engine.trees().names_of(body, each);
    let losers = Losers::adopt(&found.losers, &engine.locks, names_of);
    engine.losers = losers.map_err(|error| OpenError::Loser(error.into()))?;
    engine.slots = Slots::without(&engine.losers.slots());
    Ok(engine)
}

/// Makes the tree of names, in a store that has no page.
fn make_names(engine: &Engine) -> Result<(), OpenError> {
    let root = engine.trees().create().map_err(|error| OpenError::Names(error.into()))?;
    assert!(root == NAMES_ROOT, "the first page of a store is that of its names");
    Ok(())
}
