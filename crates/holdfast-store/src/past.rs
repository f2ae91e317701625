//! Backups of a store, and the store as it was at a moment.
//!
//! Promise: a backup is made, and brought forward, while the store is in use; what is restored is
//! opened like a store that crashed at that moment, so it has whole transactions only. Cut short
//! there is neither a backup nor a store.
//! Never: changes the store or the backup that it reads from.
//!
//! A backup is a directory like that of a store, with an empty log.

use std::path::Path;

use holdfast_pages::{At, Manifest, Moment, Progress, Tag, restore as restore_pages};

use crate::config::Config;
use crate::embedded;
use crate::header::{Header, NoHeader, VERSION};
use crate::past_error::{BackupError, RestoreError};
use crate::place::Place;
use crate::store::{Store, directories};

impl Store {
    /// Copies the store into a directory that has no backup, while it is in use. The backup holds
    /// everything that was committed before this call, and is durable when it returns. `tell` is
    /// told how far it is.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn back_up(
        &self,
        to: &Path,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackupError> {
        self.back_up_to(&Place::directory(to)?, tell)
    }

    /// [`Store::back_up`], to a place that may be a model of one.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn back_up_to(
        &self,
        to: &Place,
        tell: &mut dyn FnMut(Progress),
    ) -> Result<Manifest, BackupError> {
        refuse_store(to)?;
        self.header().mark_backup(&*to.store).map_err(BackupError::Io)?;
        let backed_up = self.pages().back_up(&directories(to), tell);
        backed_up.map_err(BackupError::Pages)
    }

    /// Brings a backup of this store to where the store is now, without copying it again.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn forward_backup(&self, backup: &Path) -> Result<Manifest, BackupError> {
        self.forward_backup_at(&Place::directory(backup)?)
    }

    /// [`Store::forward_backup`], at a place that may be a model of one.
    ///
    /// # Errors
    /// See [`BackupError`].
    pub fn forward_backup_at(&self, backup: &Place) -> Result<Manifest, BackupError> {
        refuse_store(backup)?;
        match Header::of_either(&*backup.store) {
            Ok(header) if header == self.header() => {}
            _ => return Err(BackupError::OtherStore),
        }
        self.pages().forward(&directories(backup)).map_err(BackupError::Pages)
    }
}

/// Makes the store that `from` has, which is closed, or of which it is a backup, again in the
/// directory `to`, as it was at a moment, and returns that moment. What had not been committed by
/// then is undone when the store is opened. `tell` is told how far it is.
///
/// # Errors
/// See [`RestoreError`]; `to` has no store then.
pub fn restore(
    from: &Path,
    at: At,
    to: &Path,
    config: &Config,
    tell: &mut dyn FnMut(Progress),
) -> Result<Moment, RestoreError> {
    if !from.is_dir() {
        return Err(RestoreError::NoStore);
    }
    restore_at(&Place::directory(from)?, at, &Place::directory(to)?, config, tell)
}

/// [`restore`], from and to places that may be models of some.
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
    let header = Header::of_either(&*from.store).map_err(|none| match none {
        NoHeader::Free | NoHeader::Taken => RestoreError::NoStore,
        NoHeader::Damaged => RestoreError::Header,
        NoHeader::OtherVersion(found) => RestoreError::OtherVersion { found, known: VERSION },
        NoHeader::Io(error) => RestoreError::Io(error),
    })?;
    if Header::read(&*to.store).is_ok() {
        return Err(RestoreError::NotEmpty);
    }
    let (source, target) = (directories(from), directories(to));
    let made = restore_pages(&source, at, Tag::of(&header.identity), &target, tell);
    let moment = made.map_err(RestoreError::Pages)?;
    embedded::create(&*to.log, header.identity, &config.log).map_err(RestoreError::CreateLog)?;
    // Last: without its header it is no store.
    header.put(&*to.store).map_err(RestoreError::Io)?;
    Ok(moment)
}

/// A store is not overwritten by a backup.
fn refuse_store(place: &Place) -> Result<(), BackupError> {
    if Header::read(&*place.store).is_ok() { Err(BackupError::IsAStore) } else { Ok(()) }
}
