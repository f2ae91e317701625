//! An area: a region whose bytes its user arranges, in place of marks and a ring.
//!
//! Promise: what [`Area::attach`] returns was filled by whoever gave it its name, has no other
//! server, and holds what it held when its last server ended or died, wherever that was.
//! Never: knows what the bytes mean, or keeps two threads from the same of them.
//!
//! Nobody ever has a reference to an area's bytes: they are copied in and out, and words are
//! atomic. So a copy that runs while others write gives bytes of several moments, and nothing
//! worse; how to notice that is the user's matter.

use std::sync::atomic::AtomicU64;

use crate::control::PAGE_BYTES;
use crate::error::{AttachError, CreateError};
use crate::medium::{Medium, MediumSurvival};
use crate::region::Region;
use crate::roster;
use crate::superblock::{REGION_BYTES_MAX, RING, Superblock};

/// What a new area is to be.
#[derive(Clone, Copy, Debug)]
pub struct AreaSpec {
    /// What it holds, by a name that its user chose; not zeros.
    pub content: [u8; 8],
    /// Whose it is: 16 bytes that no other area has.
    pub identity: [u8; 16],
    /// Its size: a multiple of 4096.
    pub bytes: u64,
}

/// Durable memory for a user's own arrangement, served by this process, used by many threads.
///
/// Dropping it ends the claim; the contents stay (unless the medium is `Private`). Offsets count
/// from its first byte, which is aligned to 4096.
#[derive(Debug)]
pub struct Area {
    pub(crate) region: Region,
}

impl Area {
    /// Makes an area on `medium`, lets `fill` write into it, and serves it. Before `fill` has
    /// returned there is nothing to attach, whoever dies. What `fill` leaves alone is zeros, but on
    /// a device it is what was there.
    ///
    /// The memory is allocated here, so that no later store can fail for want of it.
    ///
    /// # Errors
    /// See [`CreateError`].
    pub fn create(
        medium: &Medium,
        spec: &AreaSpec,
        fill: impl FnOnce(&Area),
    ) -> Result<Area, CreateError> {
        let area = Area { region: Region::unnamed(medium, plan(medium, spec)?)? };
        fill(&area);
        area.region.finish();
        Ok(area)
    }

    /// Attaches the area on `medium` after its last server ended or died, if it holds `content`.
    ///
    /// As a region, a file that an earlier run of the system used is [`AttachError::OtherBoot`].
    ///
    /// # Errors
    /// See [`AttachError`].
    pub fn attach(medium: &Medium, content: [u8; 8]) -> Result<Area, AttachError> {
        let region = Region::found(medium, content)?;
        region.note_attachment()?;
        Ok(Area { region })
    }

    /// Whose it is.
    #[must_use]
    pub fn identity(&self) -> [u8; 16] {
        self.region.identity()
    }

    /// How often it was attached, this time and its making included.
    #[must_use]
    pub fn generation(&self) -> u64 {
        self.region.generation()
    }

    /// What the memory behind this mapping outlives, as found, not as configured.
    #[must_use]
    pub fn survives(&self) -> MediumSurvival {
        self.region.survives()
    }

    /// Its size.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.region.ring_section().bytes
    }

    /// A shared word for counters and status, which [`Region::observe`] shows to others. Zero in a
    /// new area, otherwise as the last server left it.
    ///
    /// # Panics
    /// If `index` is not below [`crate::WORDS`].
    #[must_use]
    #[inline]
    pub fn counter(&self, index: usize) -> &AtomicU64 {
        self.region.word(index)
    }

    /// The word at byte `at`. Whoever changes it by this calls [`Area::persist`].
    ///
    /// # Panics
    /// If `at` is no multiple of 8, or the word is not in the area.
    #[must_use]
    #[inline]
    pub fn word_at(&self, at: u64) -> &AtomicU64 {
        let offset = self.offset(at, 8);
        &self.region.mapping().words(offset..offset + 8)[0]
    }

    /// Copies the bytes from `at` on. Bytes that another thread writes meanwhile may be old or new.
    ///
    /// # Panics
    /// If they are not all in the area.
    #[inline]
    pub fn copy_out(&self, at: u64, into: &mut [u8]) {
        let offset = self.offset(at, into.len() as u64);
        self.region.mapping().copy_out(offset, into);
    }

    /// Writes the bytes from `at` on. Whoever dies meanwhile leaves some old and some new.
    ///
    /// # Panics
    /// If they are not all in the area.
    #[inline]
    pub fn copy_in(&self, at: u64, from: &[u8]) {
        let offset = self.offset(at, from.len() as u64);
        self.region.mapping().copy_in(offset, from);
    }

    /// Makes stores to these bytes outlive what the medium outlives, before any later store.
    /// Costs nothing unless the area survives the operating system.
    ///
    /// # Panics
    /// If they are not all in the area.
    #[inline]
    pub fn persist(&self, at: u64, bytes: u64) {
        self.region.mapping().persist(self.offset(at, bytes), bytes);
    }

    /// Where in the mapping a range of the area lies.
    #[inline]
    pub(crate) fn offset(&self, at: u64, bytes: u64) -> u64 {
        let section = self.region.ring_section();
        let inside = at.checked_add(bytes).is_some_and(|end| end <= section.bytes);
        assert!(inside, "bytes {at}..+{bytes} lie in an area of {} bytes", section.bytes);
        section.offset + at
    }
}

/// Checks what was asked for and lays it out.
fn plan(medium: &Medium, spec: &AreaSpec) -> Result<Superblock, CreateError> {
    if spec.content == RING {
        return Err(CreateError::BadSpec("what an area holds has a name"));
    }
    if spec.bytes == 0 || !spec.bytes.is_multiple_of(PAGE_BYTES) {
        return Err(CreateError::BadSpec("an area has a multiple of 4096 bytes"));
    }
    if spec.bytes > REGION_BYTES_MAX {
        return Err(CreateError::BadSpec("the area is larger than a region can be"));
    }
    let roster = roster::section_bytes(0);
    let superblock = Superblock::plan(spec.identity, medium.tag(), roster, spec.bytes);
    Ok(Superblock { content: spec.content, ..superblock })
}
