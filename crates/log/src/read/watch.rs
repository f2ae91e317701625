//! Looking at a log that another process may be writing.
//!
//! The files say what is durable: each header has a watermark, and so has the catalogue. This walks
//! over the frames as they appear and believes the watermarks alone; below the highest of them, the
//! log is read as if this process had it open.
//!
//! Promise: readers get what the log's owner has made durable, in order, once a watermark that lies
//! behind it says so. Nothing is changed, and the device may be read-only.
//! Never: claims anything; takes what is still being written for damage.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, HEADER_BYTES, Sealer};
use holdfast_core::recovery::{Scan, Step};
use holdfast_io::checksum::crc32c;
use holdfast_io::{Clock, Files, Named};
use holdfast_memory::Region;

use crate::config::{LogConfig, Parity, Policy, Retention, Scanned};
use crate::error::OpenError;
use crate::format::catalogue::Catalogue;
use crate::open::foresee::has_all;
use crate::open::load::load_table;
use crate::open::opening::Opening;
use crate::open::recovery::{header_at, see, segments_alone};
use crate::read::ahead::Piece;
use crate::read::window::Window;
use crate::segments::Table;
use crate::segments::segment::Access;
use crate::state::Log;
use crate::words;

/// A log that others may have open.
pub struct Watch {
    files: Arc<dyn Files>,
    log: Arc<Log>,
    catalogue: Catalogue,
    /// Where the walk is, and what it has proved.
    scan: Scan,
    window: Window,
}

impl Watch {
    /// Begins to watch the log in the root of `files`. The region is only to hold its marks: a new
    /// one, as small as there is, with the log's identity.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(
        files: Arc<dyn Files>,
        region: Arc<Region>,
        clock: Arc<dyn Clock>,
    ) -> Result<Watch, OpenError> {
        let files: Arc<dyn Files> = Arc::new(Named::new(files));
        let table = settled(&*files)?;
        if table.cut.is_some() {
            let why = "the end of the log is being cut off, or its owner died while it was";
            return Err(OpenError::Io(io::Error::new(io::ErrorKind::ResourceBusy, why)));
        }
        let catalogue = table.catalogue.clone();
        let log = Arc::new(readable(Arc::clone(&files), region, clock, table));
        let scan = Scan::new(log.geometry, catalogue.durable, Lsn(u64::MAX), catalogue.durable);
        log.word(words::MARKED).store(catalogue.first.get(), Ordering::Relaxed);
        let mut watch = Watch { files, log, catalogue, scan, window: Window::new() };
        watch.look()?;
        watch.tell();
        Ok(watch)
    }

    /// The log, to be read as far as it was known to be durable at the last look, and from where it
    /// began when this did, or where it is still there. It takes no frame. A reader that finds
    /// damage looks once more: the file may have been used again.
    #[must_use]
    pub fn log(&self) -> &Arc<Log> {
        &self.log
    }

    /// Looks what has become durable meanwhile. Returns whether there is more than before.
    ///
    /// # Errors
    /// See [`OpenError`]. Readers go on as far as was known.
    pub fn look(&mut self) -> Result<bool, OpenError> {
        if Catalogue::load(&*self.files)? != self.catalogue {
            let table = settled(&*self.files)?;
            self.catalogue = table.catalogue.clone();
            self.log.segments.renew(table);
        }
        self.walk().map_err(OpenError::Io)?;
        if self.scan.position() < self.catalogue.durable {
            // Whatever keeps the walk from going on here is for readers to find out.
            self.scan.skip(self.catalogue.durable);
            self.walk().map_err(OpenError::Io)?;
        }
        Ok(self.tell())
    }

    /// Reads all of the log, which nobody may have open until this is dropped, and takes for
    /// durable what is whole: what an open would go on from.
    ///
    /// # Errors
    /// See [`OpenError`]; among them damage to what was acknowledged.
    pub fn rest(&mut self) -> Result<(), OpenError> {
        let found = has_all(&*self.files, Lsn::ZERO, Policy::Refuse)?;
        self.log.region.lock().reset(found.end.get());
        Ok(())
    }

    /// Moves the marks that readers go by. Returns whether the durable one did.
    fn tell(&self) -> bool {
        let durable = self.scan.proved().max(self.catalogue.durable);
        let more = self.log.marks().durable < durable;
        if more {
            self.log.region.lock().reset(durable.get());
        }
        // A checkpoint takes nothing away from who is on the way; the end of its file does.
        let oldest = self.catalogue.entries.first().map_or(0, |entry| entry.number);
        let oldest = self.log.geometry.segment_start(oldest);
        self.log.word(words::MARKED).fetch_max(oldest.get(), Ordering::Relaxed);
        more
    }

    /// Goes on over whole frames. What lies behind the last one is read anew the next time.
    fn walk(&mut self) -> io::Result<()> {
        self.window.clear();
        while let Step::Frame { at } = self.scan.step()
            && self.step_over(at)?
        {}
        self.scan.again();
        Ok(())
    }

    fn step_over(&mut self, at: Lsn) -> io::Result<bool> {
        if !self.load(at, at.advance(HEADER_BYTES))? {
            return Ok(false);
        }
        let sealer = self.log.sealer;
        let header = header_at(&sealer, self.window.from(at));
        let Some(header) = header.filter(|header| self.scan.fits(header)) else {
            return Ok(false);
        };
        self.load(at, header.end())?;
        Ok(see(&mut self.scan, &sealer, self.window.from(at)).0.is_some())
    }

    /// Brings what lies between two positions of one span into the window, and what is to be
    /// wanted next. Returns whether there is a segment for it.
    fn load(&mut self, at: Lsn, to: Lsn) -> io::Result<bool> {
        if self.window.from(at).len() as u64 >= to.since(at) {
            return Ok(true);
        }
        let geometry = self.log.geometry;
        let segment = self.log.segments.find(geometry.segment_of(at));
        let Some(segment) = segment else { return Ok(false) };
        let from = at.align_down(BLOCK_BYTES);
        let wanted = from.get().saturating_add(self.window.appetite());
        let wanted = geometry.span_end(at).min(Lsn(wanted).align_down(BLOCK_BYTES));
        let to = wanted.max(to.align_up(BLOCK_BYTES));
        self.window.load(&Piece { segment, from, to }, to, &|_| None)?;
        Ok(true)
    }
}

/// The log's files, with nothing changed while they were looked at.
fn settled(files: &dyn Files) -> Result<Table, OpenError> {
    loop {
        let before = Catalogue::load(files)?;
        let table = load_table(files, Access::Read);
        if Catalogue::load(files)? == before {
            return table;
        }
    }
}

/// A log that nothing can be appended to.
fn readable(
    files: Arc<dyn Files>,
    region: Arc<Region>,
    clock: Arc<dyn Clock>,
    table: Table,
) -> Log {
    region.word(words::POISON).store(1, Ordering::Relaxed);
    let geometry = segments_alone(&table.catalogue);
    let sealer = Sealer::new(&table.catalogue.identity, crc32c);
    let config = &LogConfig {
        segment_bytes: geometry.segment_bytes(),
        segments: 0,
        dirty_bytes_max: 0,
        retention: Retention::OnDevice,
        parity: Parity::None,
        policy: Policy::Refuse,
        scan: Scanned::Tail,
    };
    Opening { files, region, clock, config, sealer, geometry }.over(table, 0, None)
}
