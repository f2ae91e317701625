//! A region: claimed memory with a superblock, marks, words, a roster and a ring.
//!
//! Promise: what [`Region::attach`] returns has its marks in order and no other server; a death
//! between any two stores of the server before leaves a region that attaches.
//! Never: repairs damage. It names the field and leaves every byte as it was.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use holdfast_io::Opener;

use crate::backing::{self, Backing, Claim, POPULATE_BYTES_MAX};
use crate::bell::Bell;
use crate::boot::{READ_BOOT_ID, boot_of};
use crate::control::{ControlPage, FIELDS, PAGE_BYTES, WORDS};
use crate::error::{AttachError, CreateError};
use crate::futex::Scope;
use crate::lock::HOLDER_MAX;
use crate::marks::{MarkWords, Marks};
use crate::medium::{self, Medium, MediumSurvival};
use crate::observed::Observed;
use crate::raw::Mapping;
use crate::roster::{self, Roster};
use crate::superblock::{
    GENERATION_OFFSET, REGION_BYTES_MAX, RING, Section, Superblock, SuperblockFault, VERSION,
    generation_in, generation_word,
};
use crate::turn::{Turn, look_anew};

/// What is populated at once: as much as a huge page.
const POPULATE_BYTES: u64 = 2 << 20;

/// What a new region is to be.
#[derive(Clone, Copy, Debug)]
pub struct RegionSpec {
    /// Bytes of the ring: a power of two, at least 4096.
    pub ring_bytes: u64,
    /// Bytes of records that the roster must hold, each record counted with 8 bytes more and
    /// rounded up to 8.
    pub roster_bytes: u64,
    /// Whose region it is: the identity of the log that the ring belongs to.
    pub identity: [u8; 16],
}

/// The readers that need ring bytes to stay. In the serving process only: pins die with it.
#[derive(Debug, Default)]
pub(crate) struct Pins {
    /// Lowest byte each pin needs, in no order.
    from: Mutex<Vec<u64>>,
}

impl Pins {
    /// Stops pins from coming and going. Nobody panics while holding it, except a failed
    /// assertion that changed nothing.
    pub(crate) fn hold(&self) -> MutexGuard<'_, Vec<u64>> {
        self.from.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Durable memory, served by this process. Used as `Arc<Region>` by many threads.
///
/// Dropping it ends the claim; the contents stay (unless the medium is `Private`).
#[derive(Debug)]
pub struct Region {
    mapping: Arc<Mapping>,
    superblock: Superblock,
    /// This attachment's number, which is also its name in the lock word.
    generation: u32,
    survives: MediumSurvival,
    /// Whether other hosts may have the memory too, where no lock of this one's keeps them out.
    may_be_taken: bool,
    /// The run of the system, where the medium may hold bytes of an earlier one.
    boot: [u64; 2],
    roster: Roster,
    pins: Pins,
    bell: Bell,
    opener: Opener,
    /// Bytes that need not be populated any more.
    populated: AtomicU64,
    /// Last, so that the claim ends after the memory is unmapped.
    claim: Option<Claim>,
}

impl Region {
    /// Makes a region on `medium` and serves it.
    ///
    /// The memory is allocated here, so that no later store can fail for want of it. That of a
    /// `Private` region, which is lost with its process anyway, is not, because whoever opens a log
    /// waits for this call: see [`Region::populate`] and [`Region::populate_some`].
    pub fn create(medium: &Medium, spec: &RegionSpec) -> Result<Region, CreateError> {
        let region = Region::unnamed(medium, plan(medium, spec)?)?;
        region.finish();
        Ok(region)
    }

    /// Attaches the region on `medium` after its last server ended or died, and serves it.
    ///
    /// A `Private` region is [`AttachError::Missing`] to everybody: it dies with its process. A
    /// file that an earlier run of the system used is [`AttachError::OtherBoot`], unless stores
    /// reach persistent memory itself: the system wrote parts of the file to its disk, at moments
    /// that nobody knows.
    pub fn attach(medium: &Medium) -> Result<Region, AttachError> {
        let region = Region::found(medium, RING)?;
        region.note_attachment()?;
        Ok(region)
    }

    /// [`Region::attach`] by a host that others may follow: `term` is the number of its turn. Once
    /// a host has attached the region in a newer one, nobody does in an older one
    /// ([`AttachError::NewerTerm`]); of two hosts that attach at the same moment, one does.
    pub fn attach_in_term(medium: &Medium, term: u64) -> Result<Region, AttachError> {
        let region = Region::found(medium, RING)?;
        match region.note_term(term) {
            found if found > term => return Err(AttachError::NewerTerm { found }),
            _ => region.note_attachment()?,
        }
        Ok(region)
    }

    /// Says in which term the region is served. The highest that was noted before.
    pub fn note_term(&self, term: u64) -> u64 {
        // EDGE term-noted: it is there before the generation of whoever attaches next.
        let before = self.control().notes.0.term.fetch_max(term, Ordering::AcqRel);
        self.mapping.persist_control();
        before
    }

    /// Whether this attachment is the last one. On persistent memory that other hosts have as well,
    /// one of them may have attached the region since; then nothing here may be acknowledged any
    /// more. What was published before this said yes is seen by whoever attaches next. It is not a
    /// child's that was forked.
    #[must_use]
    #[inline]
    pub fn is_current(&self) -> bool {
        self.opener.is_here() && (!self.may_be_taken || self.is_newest())
    }

    /// The process that serves it.
    #[must_use]
    #[inline]
    pub fn opener(&self) -> Opener {
        self.opener
    }

    /// Gets some of the memory that a `Private` region has not touched yet, before somebody who
    /// appends has to wait for it. A little a call: whoever maps memory waits for this. False if
    /// there was none left.
    pub fn populate_some(&self) -> bool {
        let (bytes, from) = (self.mapping.len(), self.populated.load(Ordering::Relaxed));
        let is_some = from < bytes && bytes <= POPULATE_BYTES_MAX;
        if is_some {
            self.populated.store(from + POPULATE_BYTES, Ordering::Relaxed);
            self.mapping.populate(from, POPULATE_BYTES.min(bytes - from));
        }
        is_some
    }

    /// Gets all of it, for a log whose first appends are to be as fast as all others.
    pub fn populate(&self) {
        while self.populate_some() {}
    }

    /// Does to a region what a death of this process and a new attach would do: checks it, takes
    /// a new generation, and forgets pins and a lock that were left behind.
    ///
    /// For a `Private` region, whose next user lives in the same process.
    pub fn reattach(&mut self) -> Result<(), AttachError> {
        self.generation = check_state(&self.mapping, &self.superblock)? + 1;
        self.pins = Pins::default();
        self.note_attachment()
    }

    /// Looks at the region on `medium` without serving it, whoever serves it meanwhile.
    pub fn observe(medium: &Medium) -> Result<Observed, AttachError> {
        let mapping = backing::observe(medium)?;
        let superblock = read_superblock(&mapping)?;
        Ok(Observed::new(mapping, superblock))
    }

    /// [`Region::observe`], for who asks what an attachment would come to: memory that an earlier
    /// run of the system used is [`AttachError::OtherBoot`] here too.
    pub fn observe_to_attach(medium: &Medium) -> Result<Observed, AttachError> {
        let mapping = backing::observe(medium)?;
        let superblock = read_superblock(&mapping)?;
        let boot =
            boot_of(medium).map_err(|source| AttachError::Io { doing: READ_BOOT_ID, source })?;
        let noted = noted_boot(mapping.control());
        match noted == boot || noted == [0; 2] || backing::outlives_os(medium)? {
            true => Ok(Observed::new(mapping, superblock)),
            false => Err(AttachError::OtherBoot),
        }
    }

    /// Removes the region on `medium` and all that is in it. A region that is served is left
    /// alone ([`io::ErrorKind::ResourceBusy`]).
    pub fn remove(medium: &Medium) -> io::Result<()> {
        backing::remove(medium)
    }

    /// Removes this region, which stays usable until it is dropped. False if `medium` no longer
    /// leads to it: what has the name by now is somebody's, and stays.
    ///
    /// # Errors
    /// As the system says.
    pub fn remove_this(&self, medium: &Medium) -> io::Result<bool> {
        match self.claim.as_ref().zip(medium.path()) {
            Some((claim, path)) => claim.remove(medium, path),
            None => Ok(true),
        }
    }

    /// Gives the file of the region on `medium` this name in its folder, where it stays whole. A
    /// region that is served is left alone ([`io::ErrorKind::ResourceBusy`]); one on a device
    /// cannot be put aside ([`io::ErrorKind::Unsupported`]).
    ///
    /// # Errors
    /// These, and what the system says.
    pub fn put_aside(medium: &Medium, name: &OsStr) -> io::Result<PathBuf> {
        backing::put_aside(medium, name)
    }

    /// Gives the memory of a region whose name is gone its name back: makes a file on `medium` with
    /// all that `held` has, which was opened when it had the name, and returns it to be held in
    /// turn. A region that is served is left alone ([`io::ErrorKind::ResourceBusy`]), and so is
    /// anything that has the name by now ([`io::ErrorKind::AlreadyExists`]).
    ///
    /// # Errors
    /// These, and what the system says.
    pub fn put_back(medium: &Medium, held: &File) -> io::Result<File> {
        backing::put_back(medium, held)
    }

    /// Whose region it is.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        self.superblock.identity
    }

    /// How often the region was attached, this time and its making included.
    #[must_use]
    pub fn generation(&self) -> u64 {
        u64::from(self.generation)
    }

    /// Bytes of the ring, a power of two. Its first byte is aligned to 4096.
    #[must_use]
    #[inline]
    pub fn ring_bytes(&self) -> u64 {
        self.superblock.ring.bytes
    }

    /// What the memory behind this mapping outlives, as found, not as configured.
    #[must_use]
    pub fn survives(&self) -> MediumSurvival {
        self.survives
    }

    /// The marks now.
    #[must_use]
    #[inline]
    pub fn marks(&self) -> Marks {
        self.words_of_marks().read()
    }

    /// Says that everything below `lsn` is on the device. Falling values change nothing.
    ///
    /// # Panics
    /// If `lsn` is above the tail.
    pub fn set_durable(&self, lsn: u64) {
        let tail = self.words_of_marks().tail();
        assert!(lsn <= tail, "what is durable was published: {lsn} > {tail}");
        self.words_of_marks().set_durable(lsn);
        self.mapping.persist_control();
    }

    /// Gives the ring bytes below `lsn` back to be written again.
    ///
    /// # Panics
    /// If `lsn` falls, is not durable yet, or a [`Pin`](crate::Pin) needs bytes below it.
    pub fn release(&self, lsn: u64) {
        let pins = self.pins.hold();
        let marks = self.marks();
        assert!(marks.released <= lsn, "released never falls: {lsn} < {}", marks.released);
        assert!(lsn <= marks.durable, "only durable bytes are released: {lsn} > {}", marks.durable);
        assert!(pins.iter().all(|from| *from >= lsn), "a reader needs bytes below {lsn}");
        self.words_of_marks().set_released(lsn);
        self.mapping.persist_control();
    }

    /// A shared word for counters and status, free for the region's user. Zero in a new region,
    /// otherwise as the last server left it.
    ///
    /// # Panics
    /// If `index` is not below [`WORDS`].
    #[must_use]
    #[inline]
    pub fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < WORDS, "a region has {WORDS} words, {index} is not one of them");
        &self.control().words.0[index]
    }

    /// Puts a number into a word that the next server goes by: when this returns it is as safe as
    /// the memory is.
    ///
    /// # Panics
    /// If `index` is not below [`WORDS`].
    pub fn set_word(&self, index: usize, value: u64) {
        self.word(index).store(value, Ordering::Relaxed);
        self.mapping.persist_control();
    }

    /// Waits until the tail is above `seen`, a wake-up, or `timeout`; the tail then.
    pub fn wait_tail(&self, seen: u64, timeout: Duration) -> u64 {
        let guard = self.lock();
        let sleeper = self.bell.announce();
        drop(guard);
        let found = || self.words_of_marks().tail() > seen;
        sleeper.sleep_unless(found, Some(timeout), Scope::Process);
        self.words_of_marks().tail()
    }

    /// Wakes everybody in [`Region::wait_tail`], whatever the tail is.
    pub fn wake_tail_waiters(&self) {
        self.bell.ring(Scope::Process);
    }

    /// Small records that outlive the process.
    #[must_use]
    pub fn roster(&self) -> &Roster {
        &self.roster
    }
}

/// What ring and area, in their own files, need of a region.
impl Region {
    /// A new region, which is none to anybody else before [`Region::finish`].
    pub(crate) fn unnamed(medium: &Medium, superblock: Superblock) -> Result<Region, CreateError> {
        let boot =
            boot_of(medium).map_err(|source| CreateError::Io { doing: READ_BOOT_ID, source })?;
        let backing = backing::create(medium, superblock.region_bytes())?;
        Ok(Region::begin(medium, backing, superblock, (1, boot)))
    }

    /// Makes a new region one that can be attached.
    pub(crate) fn finish(&self) {
        write_superblock(&self.mapping, &self.superblock);
        self.note_server();
    }

    /// The region on `medium`, if it holds `content`; its attachment is not noted yet.
    pub(crate) fn found(medium: &Medium, content: [u8; 8]) -> Result<Region, AttachError> {
        let backing = backing::attach(medium)?;
        let superblock = read_superblock(&backing.mapping)?;
        if superblock.content != content {
            return Err(AttachError::OtherContent { found: superblock.content });
        }
        if superblock.medium != medium.tag() {
            let found = medium::name_of(superblock.medium).expect("decoding checked the medium");
            return Err(AttachError::OtherMedium { found });
        }
        let boot =
            boot_of(medium).map_err(|source| AttachError::Io { doing: READ_BOOT_ID, source })?;
        let kept = medium.survives().os && backing.mapping.persists();
        let noted = noted_boot(backing.mapping.control());
        let is_unnoted = noted == [0; 2] && backing.may_be_unnoted(medium, content == RING);
        if !kept && noted != boot && !is_unnoted {
            return Err(AttachError::OtherBoot);
        }
        let generation = check_state(&backing.mapping, &superblock)?;
        Ok(Region::begin(medium, backing, superblock, (generation + 1, boot)))
    }

    #[inline]
    pub(crate) fn mapping(&self) -> &Mapping {
        &self.mapping
    }

    #[inline]
    pub(crate) fn ring_section(&self) -> Section {
        self.superblock.ring
    }

    pub(crate) fn pins(&self) -> &Pins {
        &self.pins
    }

    pub(crate) fn bell(&self) -> &Bell {
        &self.bell
    }

    #[inline]
    pub(crate) fn words_of_marks(&self) -> &MarkWords {
        &self.control().marks
    }

    /// Moves the tail, unless another host has attached the region since it was `from`.
    #[inline]
    pub(crate) fn publish(&self, from: u64, to: u64) -> bool {
        if self.may_be_taken {
            return self.turn().is_ours() && self.words_of_marks().publish_from(from, to);
        }
        self.words_of_marks().publish(to);
        true
    }

    /// Waits for the lock.
    #[inline]
    pub(crate) fn take_lock(&self) {
        // One attachment serves at a time, so any other in the lock word is a dead one.
        self.control().lock.0.take(self.generation, |holder| holder != self.generation);
    }

    /// Gives the lock back, unless it is another host's.
    #[inline]
    pub(crate) fn unlock(&self) {
        if !self.may_be_taken || self.turn().is_ours() {
            self.control().lock.0.give(self.generation);
        }
    }

    /// Puts all marks at `lsn` such that a death half-way is finished by the next attach.
    pub(crate) fn reset_marks(&self, lsn: u64) {
        let notes = &self.control().notes.0;
        notes.reset_lsn.store(lsn, Ordering::Relaxed);
        // EDGE reset-noted: the place is noted before the note counts.
        notes.reset_pending.store(1, Ordering::Release);
        self.mapping.persist_control();
        finish_reset(&self.mapping);
    }

    #[inline]
    pub(crate) fn control(&self) -> &ControlPage {
        self.mapping.control()
    }

    fn begin(
        medium: &Medium,
        backing: Backing,
        superblock: Superblock,
        (generation, boot): (u32, [u64; 2]),
    ) -> Region {
        let mapping = Arc::new(backing.mapping);
        let survives = medium.survives();
        let populated = if *medium == Medium::Private { 0 } else { mapping.len() };
        Region {
            populated: AtomicU64::new(populated),
            roster: Roster::new(Arc::clone(&mapping), &superblock),
            survives: MediumSurvival { os: survives.os && mapping.persists(), ..survives },
            may_be_taken: matches!(medium, Medium::Pmem { .. }),
            mapping,
            superblock,
            generation,
            boot,
            pins: Pins::default(),
            bell: Bell::new(),
            opener: Opener::this_process(),
            claim: backing.claim,
        }
    }

    /// Writes this attachment into the region, unless somebody has attached it since it was looked
    /// at.
    pub(crate) fn note_attachment(&self) -> Result<(), AttachError> {
        let before = generation_word(&self.superblock.identity, self.generation - 1);
        if !self.turn().take(before) {
            let pid = self.control().notes.0.server_pid.load(Ordering::Relaxed);
            return Err(AttachError::InUse { pid });
        }
        self.mapping.persist(0, PAGE_BYTES);
        self.note_server();
        Ok(())
    }

    /// Writes the process and the run of the system into the region.
    fn note_server(&self) {
        let notes = &self.control().notes.0;
        notes.server_pid.store(std::process::id(), Ordering::Relaxed);
        for (word, half) in notes.boot.iter().zip(self.boot) {
            word.store(half, Ordering::Relaxed);
        }
        // EDGE attached-or-seen: the generation is in memory before the marks are looked at.
        look_anew(|| self.mapping.persist_control());
    }

    /// The word with the generation of the last attachment.
    fn newest(&self) -> &AtomicU64 {
        &self.mapping.words(0..PAGE_BYTES)[GENERATION_OFFSET as usize / 8]
    }

    fn is_newest(&self) -> bool {
        // EDGE attached-or-seen: what was published is in memory before this look.
        look_anew(|| self.mapping.persist(GENERATION_OFFSET, 8));
        self.turn().is_ours()
    }

    #[inline]
    fn turn(&self) -> Turn<'_> {
        Turn::new(self.newest(), generation_word(&self.superblock.identity, self.generation))
    }
}

/// Checks what was asked for and lays it out.
fn plan(medium: &Medium, spec: &RegionSpec) -> Result<Superblock, CreateError> {
    if !spec.ring_bytes.is_power_of_two() || spec.ring_bytes < PAGE_BYTES {
        return Err(CreateError::BadSpec("the ring is a power of two of at least 4096 bytes"));
    }
    if spec.ring_bytes > REGION_BYTES_MAX || spec.roster_bytes > roster::HALF_BYTES_MAX {
        return Err(CreateError::BadSpec("the ring or the roster is larger than a region can be"));
    }
    let roster = roster::section_bytes(spec.roster_bytes);
    Ok(Superblock::plan(spec.identity, medium.tag(), roster, spec.ring_bytes))
}

/// Stores the superblock, its magic last: before that the region does not exist.
fn write_superblock(mapping: &Mapping, superblock: &Superblock) {
    let page = superblock.encode();
    let words = mapping.words(0..PAGE_BYTES);
    for (word, bytes) in words.iter().zip(page.as_chunks().0).rev() {
        // EDGE superblock-whole: the magic, stored last, follows the rest.
        word.store(u64::from_le_bytes(*bytes), Ordering::Release);
    }
    mapping.persist(0, PAGE_BYTES);
}

/// Reads the superblock once and checks the copy.
fn read_superblock(mapping: &Mapping) -> Result<Superblock, AttachError> {
    let mut page = Vec::with_capacity(PAGE_BYTES as usize);
    for word in mapping.words(0..PAGE_BYTES) {
        // EDGE superblock-whole: having seen the magic, the rest is there.
        page.extend_from_slice(&word.load(Ordering::Acquire).to_le_bytes());
    }
    Superblock::decode(&page, mapping.len()).map_err(|fault| match fault {
        SuperblockFault::OtherVersion { found } => {
            AttachError::OtherVersion { found, known: VERSION }
        }
        SuperblockFault::Field { name, offset } => {
            AttachError::Damaged { field: name, offset: offset as u64 }
        }
    })
}

/// Checks what changes while a region is served, finishes what a death left half-done, and
/// returns the last generation.
fn check_state(mapping: &Mapping, superblock: &Superblock) -> Result<u32, AttachError> {
    // EDGE term-noted: having seen the generation, its term is there.
    let word = mapping.words(0..PAGE_BYTES)[GENERATION_OFFSET as usize / 8].load(Ordering::Acquire);
    let generation = generation_in(&superblock.identity, word)
        .filter(|generation| *generation < HOLDER_MAX)
        .ok_or(AttachError::Damaged { field: "generation", offset: GENERATION_OFFSET })?;
    let control = mapping.control();
    if !roster::is_whole(control, superblock) {
        return Err(damaged_control("roster_published"));
    }
    // EDGE reset-noted: having seen the note, its place is there.
    match control.notes.0.reset_pending.load(Ordering::Acquire) {
        0 => {}
        1 => finish_reset(mapping),
        _ => return Err(damaged_control("reset_pending")),
    }
    match control.marks.read().fault(superblock.ring.bytes) {
        None => Ok(generation),
        Some(mark) => Err(damaged_control(mark)),
    }
}

/// Puts all marks where the note says, then withdraws the note.
fn finish_reset(mapping: &Mapping) {
    let control = mapping.control();
    control.marks.set_all(control.notes.0.reset_lsn.load(Ordering::Relaxed));
    // EDGE reset-noted: the marks are set before the note is gone.
    control.notes.0.reset_pending.store(0, Ordering::Release);
    mapping.persist_control();
}

/// The run of the system that used the region last; zeros where that does not matter.
fn noted_boot(control: &ControlPage) -> [u64; 2] {
    control.notes.0.boot.each_ref().map(|word| word.load(Ordering::Relaxed))
}

fn damaged_control(name: &'static str) -> AttachError {
    let field = FIELDS.iter().find(|field| field.0 == name);
    let (field, offset, _) = *field.expect("the name is one of the page's fields");
    AttachError::Damaged { field, offset: offset as u64 }
}

#[cfg(test)]
mod tests;
