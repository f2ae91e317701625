//! All snapshots of a store: what is asked of them is done here.
//!
//! Promise: requests are done one after another; each that changes what is there replaces the
//! directory as its last step. What has no place in the directory is free.
//! Never: changes a disk before every page that it is to get was checked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use holdfast_io::Blocks;

use crate::directory::{self, Directory};
use crate::disks::{self, Disks};
use crate::draft::Draft;
use crate::error::{OpenError, Refusal, RespondError};
use crate::pages::is_zeros;
use crate::request::{Answer, ImageKind, NewImage, Request};
use crate::state::{Fault, State};

/// Snapshots in a store, of some disks.
///
/// Durability: that of the store.
pub struct Snapshots {
    blocks: Arc<dyn Blocks>,
    disks: Disks,
    state: Mutex<State>,
}

impl Snapshots {
    /// Takes up the snapshots of a store that they have alone, or begins with none in an empty
    /// one. Disks that were being restored when its last user died are restored now;
    /// [`Self::torn_disks`] says if that was not possible.
    ///
    /// # Errors
    /// See [`OpenError`]. The snapshots are as they were.
    pub fn open(blocks: Arc<dyn Blocks>, disks: Disks) -> Result<Snapshots, OpenError> {
        let state = Mutex::new(State::open(&blocks)?);
        let snapshots = Snapshots { blocks, disks, state };
        snapshots.finish_restore()?;
        Ok(snapshots)
    }

    fn finish_restore(&self) -> Result<(), OpenError> {
        let mut state = self.state();
        let Some(id) = state.directory.restoring else { return Ok(()) };
        match self.restore(&mut state, id) {
            Ok(()) | Err(Fault::Refused(_)) => Ok(()),
            Err(Fault::Failed(error)) => Err(OpenError::Failed(error)),
        }
    }

    /// Disks that are half of one snapshot and half of something else, because what was begun to
    /// be restored can no longer be read. Nobody must use them until they are made anew, and the
    /// snapshot is removed.
    #[must_use]
    pub fn torn_disks(&self) -> Vec<String> {
        let state = self.state();
        let restored = state.directory.restoring.and_then(|id| state.directory.find(id));
        let images = restored.into_iter().flat_map(|entry| entry.images.iter());
        images.filter(|image| image.kind == ImageKind::Disk).map(|it| it.name.clone()).collect()
    }

    /// Does what a client asks, and puts what is answered into `answer`, which is empty.
    ///
    /// # Errors
    /// See [`RespondError`].
    pub fn respond(
        &self,
        client: u64,
        request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        let (request, piece) = Request::decode(request).map_err(|_| RespondError::Malformed)?;
        *answer = match self.done(client, request, piece) {
            Ok(answer) => answer,
            Err(Fault::Refused(refusal)) => Answer::Refused(refusal).encode(&[]),
            Err(Fault::Failed(error)) => return Err(RespondError::Failed(error)),
        };
        Ok(())
    }

    /// A client has gone; what it was making is given up.
    pub fn leave(&self, client: u64) {
        self.state().give_up(client);
    }

    fn done(&self, client: u64, request: Request, piece: &[u8]) -> Result<Vec<u8>, Fault> {
        let mut state = self.state();
        match request {
            Request::Begin { id, name, taken_ms, note, images } => {
                let draft = Draft { id, name, taken_ms, note, images: Vec::new() };
                state.begin(client, draft, self.images(images))?;
            }
            Request::Put { id, image, offset } => state.put(client, id, image, offset, piece)?,
            Request::TakeDisks { id } => {
                let mut draft = state.draft(client, id)?;
                let taken = disks::take(&self.disks, &mut state.store, &mut draft);
                state.keep(client, draft, taken)?;
            }
            Request::Commit { id } => self.commit(&mut state, client, id)?,
            Request::List => return Ok(Answer::Snapshots(state.list()).encode(&[])),
            Request::Read { id, image, offset, bytes } => {
                let read = state.read(id, image, offset, bytes.into())?;
                return Ok(match is_zeros(&read) {
                    true => Answer::Zeros.encode(&[]),
                    false => Answer::Bytes.encode(&read),
                });
            }
            Request::RestoreDisks { id } => self.restore(&mut state, id)?,
            Request::Remove { id } => self.remove(&mut state, id)?,
        }
        Ok(Answer::Done.encode(&[]))
    }

    /// What a client puts, and behind it what the service does.
    fn images(&self, images: Vec<NewImage>) -> Vec<(ImageKind, NewImage)> {
        let disk = |(name, disk): (&String, &Arc<dyn crate::Source>)| {
            let (name, size_bytes) = (name.clone(), disk.size_bytes());
            (ImageKind::Disk, NewImage { name, size_bytes })
        };
        let put = images.into_iter().map(|image| (ImageKind::Memory, image));
        put.chain(self.disks.iter().map(disk)).collect()
    }

    fn commit(&self, state: &mut State, client: u64, id: u64) -> Result<(), Fault> {
        if state.directory.find(id).is_some() {
            return Ok(());
        }
        let draft = state.draft(client, id)?;
        let written = draft.write_indexes(&mut state.store);
        let entry = state.keep(client, draft, written)?;
        let draft = state.draft(client, id)?;
        let rows: Vec<_> = entry.images.iter().flat_map(|image| image.index.clone()).collect();
        let mut directory = state.directory.clone();
        directory.snapshots.push(entry);
        match self.replace(&directory) {
            Ok(()) => {
                state.committed(directory, draft);
                Ok(())
            }
            Err(fault) => {
                state.store.give_rows(&rows);
                draft.give_up(&mut state.store);
                Err(fault)
            }
        }
    }

    fn remove(&self, state: &mut State, id: u64) -> Result<(), Fault> {
        let Some(entry) = state.directory.find(id).cloned() else { return Ok(()) };
        let mut directory = state.directory.clone();
        directory.snapshots.retain(|entry| entry.id != id);
        directory.restoring = directory.restoring.filter(|restoring| *restoring != id);
        self.replace(&directory)?;
        state.removed(directory, &entry);
        Ok(())
    }

    fn restore(&self, state: &mut State, id: u64) -> Result<(), Fault> {
        let entry = state.directory.find(id).cloned().ok_or(Refusal::NoSnapshot)?;
        disks::check(&self.disks, state, &entry)?;
        self.note_restoring(state, Some(id))?;
        disks::restore(&self.disks, state, &entry)?;
        self.note_restoring(state, None)
    }

    /// Notes which snapshot disks are being made of, for whoever comes after a death.
    fn note_restoring(&self, state: &mut State, restoring: Option<u64>) -> Result<(), Fault> {
        let directory = Directory { restoring, ..state.directory.clone() };
        self.replace(&directory)?;
        state.directory = directory;
        Ok(())
    }

    fn replace(&self, directory: &Directory) -> Result<(), Fault> {
        let encoded = directory.encode().ok_or(Refusal::DirectoryFull)?;
        Ok(directory::write(&*self.blocks, &encoded)?)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic in between leaves blocks that are taken and nobody's, and no more.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
