//! What can go wrong with backups and with what is restored, and what the caller can do about it.
//!
//! Promise: as `error` and `display`.
//! Never: is needed by anybody who only uses a store.

use std::error::Error;
use std::fmt::{Display, Formatter, Result};
use std::io;

use crate::place::PlaceError;

/// Why there is no backup, or it was not brought forward. If there was one before, there still is.
#[derive(Debug)]
#[non_exhaustive]
pub enum BackupError {
    /// Somebody uses the directory. Wait, or find out who.
    InUse,
    /// The directory has a store. Choose another one.
    IsAStore,
    /// The directory has no backup of this store.
    OtherStore,
    /// See [`holdfast_pages::BackupError`].
    Pages(holdfast_pages::BackupError),
    /// The directory was not read or written; make space, maybe, and try again.
    Io(io::Error),
}

/// Why a store was not made as it was.
#[derive(Debug)]
#[non_exhaustive]
pub enum RestoreError {
    /// Somebody has the store open, or uses the directory. Close it.
    InUse,
    /// There is no store to be restored, and no backup of one.
    NoStore,
    /// There is a store already. Restore to where none is.
    NotEmpty,
    /// What says which store it is, is damaged. Use another backup.
    Header,
    /// It is of another version: restore it with that one.
    OtherVersion {
        /// Version found.
        found: u16,
        /// Version this program knows.
        known: u16,
    },
    /// The log was not made: see to its sizes, or to the disk.
    CreateLog(holdfast_log::CreateError),
    /// See [`holdfast_pages::RestoreError`].
    Pages(holdfast_pages::RestoreError),
    /// The machine did not read or write; make space, maybe, and try again.
    Io(io::Error),
}

impl From<PlaceError> for BackupError {
    fn from(error: PlaceError) -> BackupError {
        match error {
            PlaceError::InUse => BackupError::InUse,
            PlaceError::Io(error) => BackupError::Io(error),
        }
    }
}

impl From<PlaceError> for RestoreError {
    fn from(error: PlaceError) -> RestoreError {
        match error {
            PlaceError::InUse => RestoreError::InUse,
            PlaceError::Io(error) => RestoreError::Io(error),
        }
    }
}

impl Display for BackupError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::InUse => write!(out, "another process uses the directory; wait for it"),
            Self::IsAStore => write!(out, "the directory has a store; choose another one"),
            Self::OtherStore => write!(out, "the directory has no backup of this store"),
            Self::Pages(error) => write!(out, "{error}"),
            Self::Io(error) => write!(out, "the backup failed; make space, try again: {error}"),
        }
    }
}

impl Display for RestoreError {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::InUse => write!(out, "another process uses the store; close it first"),
            Self::NoStore => write!(out, "there is no store and no backup of one"),
            Self::NotEmpty => write!(out, "there is a store already; restore to another place"),
            Self::Header => write!(out, "the header is damaged; use another backup"),
            Self::OtherVersion { found, known } => {
                write!(out, "it is of version {found}; this program knows {known}")
            }
            Self::CreateLog(error) => write!(out, "the log was not made: {error}"),
            Self::Pages(error) => write!(out, "{error}"),
            Self::Io(error) => write!(out, "restore failed; make space and try again: {error}"),
        }
    }
}

impl Error for BackupError {}

impl Error for RestoreError {}
