//! The only writer of the page file: brings it to where the archive has got to.
//!
//! Promise: what is said to be clean is in the page file, synced, and so are its versions; a page
//! that its records do not follow is rebuilt; one whose records are lost hinders no other, and
//! stays expected with them; while an archive that lost its last runs ends before what is clean,
//! nothing is written; after any failure the pass begins anew, and writes again whatever it had
//! written.
//! Never: reads the buffered pages, or a record that is not durable; takes a latch. `framed` does,
//! for comparison.

pub(crate) mod framed;

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use holdfast_io::{Clock, Files};

use crate::archive::Archive;
use crate::backup::restoring::Restoring;
use crate::canary::{Invariant, holds};
use crate::clean::order::{CleaningOrder, Ground, Plan};
use crate::clean::sweep::{Brought, Sweep};
use crate::error::{CleanError, WritePagesError};
use crate::page::Page;
use crate::page::apply::Contents;
use crate::page::images::{Images, OtherVersion};
use crate::page::page_file::PageFile;
use crate::repair::repairs::Repairs;
use crate::repair::view::Views;
use crate::restart::stale::{Imaged, Stale};
use crate::stream::Stream;
use crate::stream::record::What;
use crate::stream::rsn::{PageNumber, Rsn};
use framed::Framed;

/// However little there is to clean, it waits no longer than this.
const PATIENCE_NS: u64 = 10_000_000_000;

/// Who cleans the pages of one store. All calls may come from any thread.
pub(crate) struct Cleaner {
    on: CleanerOn,
    /// An RSN: every page in the page file has all records before it.
    cleaned: AtomicU64,
    cleaning: Mutex<Cleaning>,
    written: AtomicU64,
    rebuilt: AtomicU64,
    lost: AtomicU64,
}

/// What a cleaner works on.
pub(crate) struct CleanerOn {
    /// Where the page file is.
    pub(crate) files: Arc<dyn Files>,
    /// What is written.
    pub(crate) pages: Arc<PageFile>,
    /// What is said of each page on the device.
    pub(crate) images: Arc<Images>,
    /// What is known of each page.
    pub(crate) stale: Arc<Stale>,
    /// Pages that are to be written although they should have all that is archived.
    pub(crate) repairs: Arc<Repairs>,
    /// Whether all pages are.
    pub(crate) restoring: Arc<Restoring>,
    /// Where records come from.
    pub(crate) views: Arc<Views>,
    /// Where it is said how far pages are clean.
    pub(crate) stream: Arc<Stream>,
    /// What records mean.
    pub(crate) contents: Arc<dyn Contents>,
    /// Says how long there has been something to clean.
    pub(crate) clock: Arc<dyn Clock>,
    /// As soon as so much is archived and not clean, cleaning begins.
    pub(crate) every_bytes: u64,
    /// Which pages are written then.
    pub(crate) order: CleaningOrder,
}

#[derive(Default)]
struct Cleaning {
    pass: Option<Pass>,
    /// Since when there is something to clean, if that has not begun.
    waits_since_ns: Option<u64>,
    /// What some pages have durably got to although all others have not.
    ahead: HashMap<PageNumber, Rsn>,
}

/// Once through the page file.
struct Pass {
    sweep: Sweep,
    from: Rsn,
    upto: Rsn,
    /// Whether it brings back pages that were lost.
    restores: bool,
    /// Whether it writes what is in frames.
    is_framed: bool,
    /// What was told to be written again.
    told: BTreeSet<PageNumber>,
    /// What is to be written beside what the archive has, and was not yet.
    left: BTreeSet<PageNumber>,
    /// What pages have got to, in order.
    written: Vec<(PageNumber, Rsn)>,
    /// Pages of this segment whose second half the device has as it is to be.
    halved: Vec<PageNumber>,
}

impl Pass {
    fn next_page(&self) -> Option<PageNumber> {
        let left = self.left.first().copied();
        self.sweep.next_page().into_iter().chain(left).min()
    }
}

impl Cleaning {
    /// Remembers which pages have got further than all of them, now that a pass is through.
    fn keep_ahead(&mut self, pass: &Pass) {
        let clean_to = pass.sweep.plan().clean_to();
        self.ahead.extend(pass.written.iter().copied());
        self.ahead.retain(|_, rsn| *rsn >= clean_to);
    }
}

impl Cleaner {
    /// Who goes on where cleaning has got to.
    pub(crate) fn new(on: CleanerOn, cleaned: Rsn) -> Cleaner {
        Cleaner {
            on,
            cleaned: AtomicU64::new(cleaned.get()),
            cleaning: Mutex::default(),
            written: AtomicU64::new(0),
            rebuilt: AtomicU64::new(0),
            lost: AtomicU64::new(0),
        }
    }

    /// Every page in the page file has all records before this place.
    pub(crate) fn cleaned(&self) -> Rsn {
        Rsn(self.cleaned.load(Ordering::Relaxed))
    }

    /// How many pages were written, each as often as it was.
    pub(crate) fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// How many pages were not what their records follow, and could be rebuilt.
    pub(crate) fn rebuilt(&self) -> u64 {
        self.rebuilt.load(Ordering::Relaxed)
    }

    /// How many pages could not be built; who asks for one is told so.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Writes a segment, or ends the pass, or begins one if there is enough to clean. True if there
    /// was something to do. What is written comes from the archive, or from frames if there are
    /// some.
    ///
    /// # Errors
    /// See [`CleanError`]; the next step begins the pass anew.
    pub(crate) fn step(&self, framed: Option<&Framed<'_>>) -> Result<bool, CleanError> {
        let mut cleaning = self.cleaning.lock().expect("nobody panics who cleans");
        let pass = match cleaning.pass.take() {
            None => self.begin(&mut cleaning, framed)?,
            pass => pass,
        };
        let Some(mut pass) = pass else { return Ok(false) };
        let is_through = match self.go_on(&mut pass, framed) {
            Err(error) => {
                self.on.repairs.put_back(pass.told);
                return Err(error);
            }
            Ok(is_through) => is_through,
        };
        if is_through {
            cleaning.waits_since_ns = None;
            cleaning.keep_ahead(&pass);
        } else {
            cleaning.pass = Some(pass)
        }
        Ok(true)
    }

    /// Takes a new page file into use, in the place of one that was lost. Its pages come back, a
    /// segment a step; who loads one meanwhile does not wait for that.
    ///
    /// # Errors
    /// [`CleanError::Reopen`]; call again.
    pub(crate) fn restore(&self, path: &Path) -> Result<(), CleanError> {
        let mut cleaning = self.cleaning.lock().expect("nobody panics who cleans");
        if let Some(pass) = cleaning.pass.take() {
            self.on.repairs.put_back(pass.told);
        }
        cleaning.ahead.clear();
        self.replace(path).map_err(CleanError::Reopen)
    }

    fn replace(&self, path: &Path) -> io::Result<()> {
        let CleanerOn { files, pages, restoring, .. } = &self.on;
        restoring.begin()?;
        restoring.put_aside(path)?;
        pages.reopen(&**files)?;
        files.sync_dir(Path::new(""))
    }

    /// A pass, if it is time for one.
    fn begin(
        &self,
        cleaning: &mut Cleaning,
        framed: Option<&Framed<'_>>,
    ) -> Result<Option<Pass>, CleanError> {
        let (cleaned, archive) = (self.cleaned(), self.on.views.archive());
        let upto = archive.end().unwrap_or(Rsn::FIRST);
        // Pages at the archive's end would lack records that they are said to have.
        let Some(bytes) = upto.checked_since(cleaned) else { return Ok(None) };
        let (restores, told) = (self.on.restoring.is_on(), self.on.repairs.take());
        if !restores && !self.is_time(cleaning, bytes, !told.is_empty()) {
            self.on.repairs.put_back(told);
            return Ok(None);
        }
        // What is lost comes from the archive, whoever cleans.
        let framed = framed.filter(|_| !restores);
        let from = match framed {
            _ if restores => Rsn::FIRST,
            Some(_) => upto,
            None => cleaned,
        };
        let is_framed = framed.is_some();
        let plan = match restores || is_framed {
            true => Plan::whole(upto),
            false => self.plan(&archive, (from, upto), &cleaning.ahead, &told),
        };
        let sweep = Sweep::readable(archive, from, Arc::clone(&self.on.contents), plan);
        let (mut left, written, halved) = (told.clone(), Vec::new(), Vec::new());
        left.extend(framed.into_iter().flat_map(Framed::dirty));
        Ok(Some(Pass { sweep, from, upto, restores, is_framed, told, left, written, halved }))
    }

    /// What a pass is to write between these places.
    fn plan(
        &self,
        archive: &Archive,
        (from, upto): (Rsn, Rsn),
        ahead: &HashMap<PageNumber, Rsn>,
        told: &BTreeSet<PageNumber>,
    ) -> Plan {
        let segment_pages = self.on.pages.segment_pages();
        let ground = Ground { from, upto, segment_pages, ahead, told };
        Plan::of(self.on.order, archive, &ground)
    }

    /// Whether so many bytes of records have waited long enough, or something that was told has.
    fn is_time(&self, cleaning: &mut Cleaning, bytes: u64, is_told: bool) -> bool {
        if bytes == 0 && !is_told {
            return false;
        }
        let now_ns = self.on.clock.monotonic_ns();
        let since_ns = *cleaning.waits_since_ns.get_or_insert(now_ns);
        bytes >= self.on.every_bytes || now_ns - since_ns >= PATIENCE_NS
    }

    /// Copies the next pages of a pass from their frames, and writes them.
    fn write_framed(&self, pass: &mut Pass, framed: &Framed<'_>) -> Result<(), CleanError> {
        let mut pages = framed.copies(&mut pass.left)?;
        pass.written.extend(pages.iter().map(|page| (page.number(), page.rsn())));
        self.on.pages.write_all(&mut pages)?;
        self.written.fetch_add(pages.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    /// Writes the next segment, or ends the pass. True if it is through.
    fn go_on(&self, pass: &mut Pass, framed: Option<&Framed<'_>>) -> Result<bool, CleanError> {
        match (pass.next_page(), framed.filter(|_| pass.is_framed)) {
            (Some(_), Some(framed)) => self.write_framed(pass, framed)?,
            (Some(page), None) => self.write_segment(pass, page)?,
            (None, _) => {
                if pass.sweep.has_passed() && !pass.is_framed {
                    self.lose_passed(pass)?;
                }
                self.end(pass)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Brings the pages of a segment forward, from this one on, and writes them.
    fn write_segment(&self, pass: &mut Pass, first: PageNumber) -> Result<(), CleanError> {
        let pages = &self.on.pages;
        let is_inside = |page: &PageNumber| pages.segment_of(*page) == pages.segment_of(first);
        let mut brought = Vec::new();
        pass.halved.clear();
        while let Some(number) = pass.next_page().filter(is_inside) {
            brought.extend(self.bring(pass, number)?);
        }
        pages.write_changed(&mut brought, &pass.halved)?;
        self.written.fetch_add(brought.len() as u64, Ordering::Relaxed);
        if pass.restores {
            self.on.restoring.pass(pages.first_of(pages.segment_of(first) + 1));
        }
        Ok(())
    }

    /// The page as it is to be written, whether it is there already or not: a sync that failed in a
    /// life before this one leaves in the cache what the device has not. That half of it which no
    /// record of this pass has changed need not be, if it was synced.
    fn bring(&self, pass: &mut Pass, number: PageNumber) -> Result<Option<Page>, CleanError> {
        let mut page = Page::zeroed();
        if !pass.left.remove(&number) {
            // What cannot be read is nothing, from which a page can be built as well.
            let _ = self.on.pages.read(number, &mut page);
        }
        if page.rsn() >= pass.upto {
            // Only what is archived is written.
            page.clear();
        }
        let half = self.synced_half(pass, &page);
        let brought = pass.sweep.bring(number, &mut page)?;
        let least = self.least(pass, number)?;
        let rsn = match brought {
            Brought::Forward(rsn) | Brought::Rebuilt(rsn) if rsn < least => {
                self.lose(pass, number, Rsn::NONE)?;
                return Ok(None);
            }
            Brought::Forward(rsn) => {
                pass.halved.extend(half.filter(|half| half == page.second_half()).map(|_| number));
                rsn
            }
            Brought::Rebuilt(rsn) => {
                self.rebuilt.fetch_add(u64::from(!pass.restores), Ordering::Relaxed);
                rsn
            }
            Brought::Nothing => return Ok(None),
            Brought::Lost(rsn) => {
                self.lose(pass, number, rsn)?;
                return Ok(None);
            }
        };
        pass.written.push((number, rsn));
        Ok(Some(page))
    }

    /// What a page must have got to at least when this pass has come to it, if parts of runs were
    /// passed: they may have had records of it.
    fn least(&self, pass: &Pass, number: PageNumber) -> Result<Rsn, CleanError> {
        if !pass.sweep.has_passed() {
            return Ok(Rsn::NONE);
        }
        let told = self.told(pass, number)?;
        let is_known = told != Rsn::NONE || self.on.stale.noted(number) >= pass.upto;
        Ok(if is_known { told } else { pass.sweep.passed() })
    }

    /// The newest record of a page before this pass ends that anybody tells of: who follows the
    /// stream, or the versions.
    fn told(&self, pass: &Pass, number: PageNumber) -> Result<Rsn, CleanError> {
        let noted = self.noted(pass, number);
        let known = self.on.images.known(number);
        let known = known.map_err(|OtherVersion(found)| CleanError::OtherVersion { found })?;
        Ok(match known.imaged {
            Imaged::At(rsn) if rsn < pass.upto => rsn.max(noted),
            _ => noted,
        })
    }

    /// The newest record of a page that came behind those which are clean, before this pass ends.
    fn noted(&self, pass: &Pass, number: PageNumber) -> Rsn {
        let noted = self.on.stale.noted(number);
        if pass.from <= noted && noted < pass.upto { noted } else { Rsn::NONE }
    }

    /// Says that a page cannot be had, which has this record or a newer one. It is expected
    /// nevertheless, so nobody takes what is there for the page; if nobody knows with which record,
    /// nothing is said of it.
    fn lose(&self, pass: &mut Pass, number: PageNumber, rsn: Rsn) -> Result<(), CleanError> {
        self.lost.fetch_add(1, Ordering::Relaxed);
        let told = self.told(pass, number)?;
        let is_known = told != Rsn::NONE || rsn >= pass.sweep.passed();
        if is_known && rsn.max(told) != Rsn::NONE {
            pass.written.push((number, rsn.max(told)));
        }
        Ok(())
    }

    /// The same of pages that the walk did not come to, since what it passed had their records.
    fn lose_passed(&self, pass: &mut Pass) -> Result<(), CleanError> {
        pass.written.sort_unstable();
        let is_written = |page| pass.written.binary_search_by_key(&page, |(page, _)| *page).is_ok();
        let pages = (1..self.on.stale.end().get()).map(PageNumber);
        let waits = |page| pass.sweep.plan().leaves_out(page);
        let unwritten = pages.filter(|page| !is_written(*page) && !waits(*page));
        let lost = unwritten.filter(|page| self.noted(pass, *page) != Rsn::NONE);
        let lost: Vec<_> = lost.collect();
        lost.into_iter().try_for_each(|page| self.lose(pass, page, Rsn::NONE))?;
        pass.written.sort_unstable();
        Ok(())
    }

    /// The second half of a page as it was read, if the device has it, too: an image that has no
    /// record of this pass was synced by the pass that wrote it.
    fn synced_half(&self, pass: &Pass, image: &Page) -> Option<Vec<u8>> {
        let is_synced = !pass.restores && image.rsn() < self.cleaned();
        let is_left_out = is_synced || !holds(Invariant::LeftOutHalvesAreSynced);
        (is_left_out && image.rsn() != Rsn::NONE).then(|| image.second_half().to_vec())
    }

    /// Says that the pass is through, once it is true.
    fn end(&self, pass: &Pass) -> Result<(), CleanError> {
        if holds(Invariant::SyncedBeforeCleaned) {
            self.sync(pass)?;
        }
        let clean_to = pass.sweep.plan().clean_to();
        if clean_to > self.cleaned() {
            let what = What::Cleaned(clean_to);
            self.on.stream.append(&mut |group| {
                group.put(&what);
            })?;
        }
        for (page, rsn) in &pass.written {
            // What comes from a frame may have got further than the archive had.
            self.on.stale.prune(*page, *rsn, pass.upto.max(rsn.advance(1)));
        }
        self.cleaned.store(clean_to.get(), Ordering::Relaxed);
        if !holds(Invariant::SyncedBeforeCleaned) {
            self.sync(pass)?;
        }
        if pass.restores {
            self.on.restoring.end().map_err(CleanError::Reopen)?;
        }
        Ok(())
    }

    /// Makes durable what was written, and then that it was.
    fn sync(&self, pass: &Pass) -> Result<(), CleanError> {
        let CleanerOn { files, pages, images, .. } = &self.on;
        let synced = pages.sync();
        if matches!(synced, Err(WritePagesError::Failed(_))) {
            pages.reopen(&**files).map_err(CleanError::Reopen)?;
        }
        synced?;
        let cleaned = pass.sweep.plan().clean_to().max(self.cleaned());
        images.write(&pass.written, cleaned, pass.sweep.archive(), pages, &**files)
    }
}

impl std::fmt::Debug for Cleaner {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Cleaner").field("cleaned", &self.cleaned()).finish_non_exhaustive()
    }
}
