//! What is known of a store: its directory, where each page is, and what is being made.
//!
//! Promise: every block is free, or in one place here. The directory here is the one in the store.
//! Never: touches a disk.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use holdfast_io::checksum::crc32c;
use holdfast_io::{Blocks, BlocksError};

use crate::directory::{DIRECTORY_BLOCKS, Directory, Entry, ImageEntry};
use crate::draft::{Draft, DraftImage, index_bytes};
use crate::error::{OpenError, Refusal};
use crate::pages::{ENTRY_BYTES, PAGE_BYTES, Pages};
use crate::request::{Image, ImageKind, NewImage, PIECE_BYTES_MAX, Snapshot};
use crate::space::Space;
use crate::store::{Store, StoreFault, failure};

/// Longest name of a snapshot.
const NAME_BYTES_MAX: usize = 64;

/// Why a request is not done.
#[derive(Debug)]
pub(crate) enum Fault {
    Refused(Refusal),
    Failed(io::Error),
}

pub(crate) struct State {
    pub(crate) store: Store,
    pub(crate) directory: Directory,
    /// Where the pages of the images are, by snapshot; none of an image whose index is damaged.
    pages: BTreeMap<u64, Vec<Option<Pages>>>,
    /// What each client is making.
    drafts: BTreeMap<u64, Draft>,
}

impl State {
    pub(crate) fn open(blocks: &Arc<dyn Blocks>) -> Result<State, OpenError> {
        let directory = Directory::read(&**blocks)?;
        let count = blocks.size_bytes() / PAGE_BYTES as u64;
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let store = Store::new(Arc::clone(blocks), Space::new(count, DIRECTORY_BLOCKS));
        let (pages, drafts) = (BTreeMap::new(), BTreeMap::new());
        let mut state = State { store, directory, pages, drafts };
        state.find_pages().map_err(|error| OpenError::Failed(failure(error)))?;
        Ok(state)
    }

    /// Reads all indexes. What one of them has is in use; a damaged one has nothing.
    fn find_pages(&mut self) -> Result<(), BlocksError> {
        for entry in &self.directory.snapshots {
            let found = entry.images.iter().map(|image| find_pages(&mut self.store, image));
            self.pages.insert(entry.id, found.collect::<Result<_, _>>()?);
        }
        Ok(())
    }

    /// Begins to make a snapshot. The images are made room for in memory only once it is known that
    /// their indexes would fit.
    pub(crate) fn begin(
        &mut self,
        client: u64,
        draft: Draft,
        images: Vec<(ImageKind, NewImage)>,
    ) -> Result<(), Fault> {
        self.give_up(client);
        let is_named = |other: &Entry| other.name == draft.name || other.id == draft.id;
        if self.directory.snapshots.iter().any(is_named) {
            return Err(Refusal::NameTaken.into());
        }
        if !is_name(&draft.name) {
            return Err(Refusal::BadName.into());
        }
        let sizes = images.iter().map(|(_, image)| image.size_bytes);
        let images_bytes = sizes.fold(0, u64::saturating_add);
        if index_bytes(images_bytes) > self.room_bytes() {
            return Err(self.no_space(0, images_bytes).into());
        }
        let images = images.into_iter().map(|(kind, image)| DraftImage::new(kind, image));
        let draft = Draft { images: images.collect(), ..draft };
        self.drafts.insert(client, draft);
        Ok(())
    }

    /// The snapshot of this number that the client is making; for the time being it is the
    /// caller's.
    pub(crate) fn draft(&mut self, client: u64, id: u64) -> Result<Draft, Fault> {
        let is_it = self.drafts.get(&client).is_some_and(|draft| draft.id == id);
        let draft = is_it.then(|| self.drafts.remove(&client)).flatten();
        draft.ok_or(Fault::Refused(Refusal::NoDraft))
    }

    /// Takes a draft back, or gives it up if something went wrong with it.
    pub(crate) fn keep<T>(
        &mut self,
        client: u64,
        draft: Draft,
        done: Result<T, StoreFault>,
    ) -> Result<T, Fault> {
        match done {
            Ok(done) => {
                self.drafts.insert(client, draft);
                Ok(done)
            }
            Err(StoreFault::Failed(error)) => {
                draft.give_up(&mut self.store);
                Err(Fault::Failed(error))
            }
            Err(StoreFault::Full) => {
                let refusal = self.no_space(draft.taken_bytes(), draft.images_bytes());
                draft.give_up(&mut self.store);
                Err(refusal.into())
            }
        }
    }

    /// Puts a piece into an image.
    pub(crate) fn put(
        &mut self,
        client: u64,
        id: u64,
        image: u32,
        offset: u64,
        piece: &[u8],
    ) -> Result<(), Fault> {
        let mut draft = self.draft(client, id)?;
        let place = draft.images.get_mut(image as usize).and_then(|image| {
            let first = first_page(image.size_bytes, offset, piece.len() as u64)?;
            Some((&mut image.pages, first))
        });
        let done = match place {
            Some((pages, first)) => self.store.put(pages, first, piece),
            None => {
                self.drafts.insert(client, draft);
                return Err(Refusal::OutOfRange.into());
            }
        };
        self.keep(client, draft, done)
    }

    /// Takes up what the directory in the store has by now.
    pub(crate) fn committed(&mut self, directory: Directory, draft: Draft) {
        let pages = draft.images.into_iter().map(|image| Some(image.pages));
        self.pages.insert(draft.id, pages.collect());
        self.directory = directory;
    }

    /// Gives back what a snapshot has that the directory in the store has no longer.
    pub(crate) fn removed(&mut self, directory: Directory, entry: &Entry) {
        self.directory = directory;
        let images = self.pages.remove(&entry.id).expect("each snapshot has its pages");
        for (image, pages) in entry.images.iter().zip(images) {
            // What a damaged index had was free all the time.
            let Some(pages) = pages else { continue };
            self.store.give_pages(&pages);
            self.store.give_rows(&image.index);
        }
    }

    /// Reads pages of an image of a snapshot that is there.
    pub(crate) fn read(
        &self,
        id: u64,
        image: u32,
        offset: u64,
        bytes: u64,
    ) -> Result<Vec<u8>, Fault> {
        let entry = self.directory.find(id).ok_or(Refusal::NoSnapshot)?;
        let found = entry.images.get(image as usize).ok_or(Refusal::OutOfRange)?;
        if bytes > PIECE_BYTES_MAX as u64 {
            return Err(Refusal::OutOfRange.into());
        }
        let first = first_page(found.size_bytes, offset, bytes).ok_or(Refusal::OutOfRange)?;
        let damaged = |offset| Refusal::Damaged { image: found.name.clone(), offset };
        let pages = self.pages[&id][image as usize].as_ref().ok_or(damaged(0))?;
        let mut read = vec![0; bytes as usize];
        match self.store.read(pages, first, &mut read)? {
            None => Ok(read),
            Some(page) => Err(damaged((page * PAGE_BYTES) as u64).into()),
        }
    }

    /// What there is, the oldest first.
    pub(crate) fn list(&self) -> Vec<Snapshot> {
        self.directory.snapshots.iter().map(|entry| self.told(entry)).collect()
    }

    fn told(&self, entry: &Entry) -> Snapshot {
        let image = |(image, pages): (&ImageEntry, &Option<Pages>)| Image {
            name: image.name.clone(),
            kind: image.kind,
            size_bytes: image.size_bytes,
            held_bytes: pages.as_ref().map(|it| (it.blocks().count() * PAGE_BYTES) as u64),
        };
        let images = entry.images.iter().zip(&self.pages[&entry.id]).map(image).collect();
        let Entry { id, name, taken_ms, note, .. } = entry.clone();
        Snapshot { id, name, taken_ms, note, images }
    }

    /// Gives up what the client is making.
    pub(crate) fn give_up(&mut self, client: u64) {
        if let Some(draft) = self.drafts.remove(&client) {
            draft.give_up(&mut self.store);
        }
    }

    /// What no snapshot has, nor anybody else's draft.
    fn room_bytes(&self) -> u64 {
        u64::from(self.store.space.free()) * PAGE_BYTES as u64
    }

    pub(crate) fn no_space(&self, taken_bytes: u64, images_bytes: u64) -> Refusal {
        let (room_bytes, size_bytes) = (self.room_bytes() + taken_bytes, self.store.size_bytes());
        Refusal::NoSpace { taken_bytes, images_bytes, room_bytes, size_bytes }
    }
}

/// Where the pages of an image are, if its index is whole; they and the index are in use.
fn find_pages(store: &mut Store, image: &ImageEntry) -> Result<Option<Pages>, BlocksError> {
    let blocks = image.index.iter().flat_map(|row| row.blocks());
    let (count, in_store) = (blocks.clone().count(), store.space.blocks());
    let entries = image.size_bytes.div_ceil(PAGE_BYTES as u64);
    let index_bytes = entries * ENTRY_BYTES as u64;
    let is_right = count as u64 == index_bytes.div_ceil(PAGE_BYTES as u64);
    if !is_right || blocks.clone().any(|block| block >= in_store) {
        return Ok(None);
    }
    let index = store.read_rows(&image.index)?;
    let index = &index[..index_bytes as usize];
    if crc32c(0, index) != image.check {
        return Ok(None);
    }
    let pages = Pages::decode(index);
    let in_use = blocks.chain(pages.blocks());
    let claimed: Vec<bool> = in_use.map(|block| store.space.claim(block)).collect();
    Ok(claimed.iter().all(|is_new| *is_new).then_some(pages))
}

/// The first page of a range of an image; none unless it is of whole pages.
fn first_page(size_bytes: u64, offset: u64, bytes: u64) -> Option<usize> {
    let padded_bytes = size_bytes.checked_next_multiple_of(PAGE_BYTES as u64)?;
    let is_whole = (offset | bytes).is_multiple_of(PAGE_BYTES as u64);
    let is_inside = offset.checked_add(bytes)? <= padded_bytes;
    (is_whole && is_inside).then(|| usize::try_from(offset / PAGE_BYTES as u64).ok())?
}

fn is_name(name: &str) -> bool {
    let is_fine = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=NAME_BYTES_MAX).contains(&name.len()) && name.bytes().all(is_fine)
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Fault {
        Fault::Refused(refusal)
    }
}

impl From<BlocksError> for Fault {
    fn from(error: BlocksError) -> Fault {
        Fault::Failed(failure(error))
    }
}
