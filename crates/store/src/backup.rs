//! Backups of a store that is in use, and stores made from them.
//!
//! Promise: a backup is one when its making has ended, and so is a store that is restored; either
//! is not taken for anything else before that.
//! Never: copies a page or a record itself; opens a store.

use std::path::Path;

use holdfast_pages::{Archive, At, Manifest, Moment, Progress, Rsn, Tag, foresee_restore};

use crate::error::{BackUpError, OpenError, RestoreError};
use crate::face::closing::Note;
use crate::face::config::Config;
use crate::face::header::{BACKUP, Header, NoHeader, RESTORED, STORE};
use crate::face::place::Place;
use crate::log;
use crate::store::Store;

impl Store {
    /// Makes a backup in a directory that has nothing in it or is not there: a copy of each page,
    /// and the records that bring them to where the store is when this returns. Others go on
    /// meanwhile. `tell` is told how far it is.
    ///
    /// # Errors
    /// See [`BackUpError`].
    pub fn back_up(
        &self,
        to: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackUpError> {
        let to = Place::directory(to, &BACKUP).map_err(|error| BackUpError::To(error.into()))?;
        let manifest = self.back_up_at(&to, tell)?;
        to.keep();
        Ok(manifest)
    }

    /// [`Store::back_up`], at a place that may be a model of one.
    ///
    /// # Errors
    /// See [`BackUpError`].
    pub fn back_up_at(
        &self,
        to: &Place,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackUpError> {
        let io = |error| BackUpError::To(OpenError::Io(error));
        match Header::read(&*to.store, &BACKUP) {
            Ok(_) => return Err(BackUpError::Exists),
            Err(NoHeader::Free) => {}
            Err(fault) => return Err(BackUpError::To(fault.into())),
        }
        self.header.begin(&*to.store, &BACKUP).map_err(io)?;
        let pages = &self.work.engine.pages;
        let manifest = pages.back_up(&to.of_pages(), tell).map_err(BackUpError::Pages)?;
        self.header.finish(&*to.store, &BACKUP).map_err(io)?;
        Ok(manifest)
    }

    /// Brings a backup of this store to where the store is now. `tell` is told how far it is.
    ///
    /// # Errors
    /// See [`BackUpError`].
    pub fn forward(
        &self,
        backup: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackUpError> {
        let backup =
            Place::existing(backup, &[&BACKUP]).map_err(|error| BackUpError::To(error.into()))?;
        self.forward_at(&backup, tell)
    }

    /// [`Store::forward`], at a place that may be a model of one.
    ///
    /// # Errors
    /// See [`BackUpError`].
    pub fn forward_at(
        &self,
        backup: &Place,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackUpError> {
        match Header::read(&*backup.store, &BACKUP) {
            Ok(header) if header == self.header => {
                let renewed = header.renew(&*backup.store, &BACKUP);
                renewed.map_err(|error| BackUpError::To(OpenError::Io(error)))?;
            }
            Ok(header) if header.identity == self.header.identity => {
                return Err(BackUpError::OtherHistory);
            }
            Ok(_) => return Err(BackUpError::To(OpenError::NotAStore)),
            Err(fault) => return Err(BackUpError::To(fault.into())),
        }
        let pages = &self.work.engine.pages;
        pages.forward(&backup.of_pages(), tell).map_err(BackUpError::Pages)
    }
}

/// Makes a store as it was at a moment, from a backup or from one that is closed, in a directory
/// that has nothing in it or is not there. Opening it undoes what had not ended then. `config` says
/// how large its log is.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore(
    from: &Path,
    at: At,
    to: &Path,
    config: &Config,
    tell: &mut dyn FnMut(Progress),
) -> Result<Moment, RestoreError> {
    let from = Place::existing(from, &[&BACKUP, &STORE])
        .map_err(|error| RestoreError::From(error.into()))?;
    let to = Place::directory(to, &RESTORED).map_err(|error| RestoreError::To(error.into()))?;
    let moment = restore_at(&from, at, &to, config, tell)?;
    to.keep();
    Ok(moment)
}

/// [`restore`], at places that may be models.
///
/// # Errors
/// See [`RestoreError`].
pub fn restore_at(
    from: &Place,
    at: At,
    to: &Place,
    config: &Config,
    tell: &mut dyn FnMut(Progress),
) -> Result<Moment, RestoreError> {
    let header = header_of(from).map_err(|fault| RestoreError::From(fault.into()))?;
    if at == At::End && !has_everything(from, header)? {
        return Err(RestoreError::NotClosed);
    }
    match Header::read(&*to.store, &RESTORED) {
        Ok(_) => return Err(RestoreError::Exists),
        Err(NoHeader::Free) => {}
        Err(fault) => return Err(RestoreError::To(fault.into())),
    }
    let tag = Tag::of(&header.identity);
    // A log that was taken for a store that cannot be made could not be used by any other.
    foresee_restore(&from.of_pages(), at, tag).map_err(RestoreError::Pages)?;
    let io = |error| RestoreError::To(OpenError::Io(error));
    let mut history = [0; 8];
    to.entropy.fill(&mut history);
    let header = Header { history: u64::from_le_bytes(history), ..header };
    log::begin(to, &header, &RESTORED, &config.log).map_err(RestoreError::To)?;
    let moment = holdfast_pages::restore(&from.of_pages(), at, tag, &to.of_pages(), tell)
        .map_err(RestoreError::Pages)?;
    header.finish(&*to.store, &RESTORED).map_err(io)?;
    Ok(moment)
}

/// Whether the archive has all that there was: that of a backup has, and that of a closed store if
/// it ends where it did then.
fn has_everything(from: &Place, header: Header) -> Result<bool, RestoreError> {
    if Header::read(&*from.store, &BACKUP).is_ok() {
        return Ok(true);
    }
    let io = |error| RestoreError::From(OpenError::Io(error));
    let Some(end) = Note::end_of_closed(&*from.store, header).map_err(io)? else {
        return Ok(false);
    };
    let archive = Archive::look(&*from.archive, Tag::of(&header.identity))
        .map_err(|error| RestoreError::Pages(error.into()))?;
    Ok(archive.end().unwrap_or(Rsn::FIRST) == end)
}

/// Whose backup or store it is.
fn header_of(from: &Place) -> Result<Header, NoHeader> {
    match Header::read(&*from.store, &BACKUP) {
        Err(NoHeader::Free | NoHeader::Taken) => Header::read(&*from.store, &STORE),
        backup => backup,
    }
}

#[cfg(test)]
mod tests;
