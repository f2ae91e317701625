//! A snapshot that is being made.
//!
//! Promise: nothing of it is written down but pages in blocks that nobody else has: who dies with
//! it leaves those blocks free.
//! Never: becomes a snapshot without an index of each image.

use holdfast_io::checksum::crc32c;

use crate::directory::{Entry, ImageEntry};
use crate::pages::{ENTRY_BYTES, PAGE_BYTES, Pages};
use crate::request::{ImageKind, NewImage};
use crate::store::{Store, StoreFault};

/// What is known of it so far.
#[derive(Debug)]
pub(crate) struct Draft {
    pub(crate) id: u64,
    pub(crate) name: String,
    pub(crate) taken_ms: u64,
    pub(crate) note: String,
    pub(crate) images: Vec<DraftImage>,
}

/// An image that is being put.
#[derive(Debug)]
pub(crate) struct DraftImage {
    pub(crate) name: String,
    pub(crate) kind: ImageKind,
    pub(crate) size_bytes: u64,
    pub(crate) pages: Pages,
}

impl DraftImage {
    pub(crate) fn new(kind: ImageKind, image: NewImage) -> DraftImage {
        let NewImage { name, size_bytes } = image;
        DraftImage { name, kind, size_bytes, pages: Pages::zeros(size_bytes) }
    }
}

impl Draft {
    /// Bytes of all its images, zeros included.
    pub(crate) fn images_bytes(&self) -> u64 {
        self.images.iter().map(|image| image.size_bytes).sum()
    }

    /// Bytes that it has taken of the store.
    pub(crate) fn taken_bytes(&self) -> u64 {
        let blocks: usize = self.images.iter().map(|image| image.pages.blocks().count()).sum();
        (blocks * PAGE_BYTES) as u64
    }

    /// Writes the indexes, and says what a directory has of it.
    pub(crate) fn write_indexes(&self, store: &mut Store) -> Result<Entry, StoreFault> {
        let mut images: Vec<ImageEntry> = Vec::new();
        for image in &self.images {
            let index = image.pages.encode();
            let check = crc32c(0, &index);
            match store.put_rows(&index) {
                Ok(rows) => images.push(image.entry(check, rows)),
                Err(fault) => {
                    images.iter().for_each(|image| store.give_rows(&image.index));
                    return Err(fault);
                }
            }
        }
        let (name, note) = (self.name.clone(), self.note.clone());
        Ok(Entry { id: self.id, name, taken_ms: self.taken_ms, note, images })
    }

    /// Gives back what it has taken.
    pub(crate) fn give_up(self, store: &mut Store) {
        self.images.iter().for_each(|image| store.give_pages(&image.pages));
    }
}

impl DraftImage {
    fn entry(&self, check: u32, index: Vec<crate::store::Row>) -> ImageEntry {
        let (kind, size_bytes) = (self.kind, self.size_bytes);
        ImageEntry { name: self.name.clone(), kind, size_bytes, check, index }
    }
}

/// Bytes of the indexes of images of so many bytes in all.
pub(crate) fn index_bytes(images_bytes: u64) -> u64 {
    images_bytes.div_ceil(PAGE_BYTES as u64).saturating_mul(ENTRY_BYTES as u64)
}
