//! What there is to say about a section of any kind: `[volume.NAME]`, `[log.NAME]` and the others.
//!
//! Promise: a kind that says this is read, completed, checked beside all others, and searched.
//! Never: looks at the machine.

use crate::sockets::Address;
use crate::values::check_name;
use std::collections::BTreeMap;
use std::path::Path;

/// A section of the configuration.
pub trait Section: PartialEq {
    /// The word before its name.
    const KIND: &'static str;

    /// Fills in what has a default that depends on the name, then checks every field.
    ///
    /// # Errors
    /// A sentence that names the key.
    fn complete(&mut self, name: &str) -> Result<(), String>;

    /// The paths that are its own, by their keys.
    fn paths(&self) -> Vec<(&'static str, &Path)>;

    /// The directory in which everything is its own, by its key.
    fn folder(&self) -> Option<(&'static str, &Path)> {
        None
    }

    /// Where it is a network block device.
    fn nbd(&self) -> &[Address] {
        &[]
    }

    /// N, if it is the block device /dev/ublkbN of this machine.
    fn ublk(&self) -> Option<u32> {
        None
    }
}

/// What stands before the key of a section's path: `("memory.path", path)`, if it has one.
pub(crate) fn region(path: Option<&Path>) -> impl Iterator<Item = (&'static str, &Path)> {
    path.into_iter().map(|path| ("memory.path", path))
}

/// Completes all sections of a kind.
pub(crate) fn complete<T: Section>(sections: &mut BTreeMap<String, T>) -> Result<(), String> {
    sections.iter_mut().try_for_each(|(name, section)| {
        let completed = check_name(name).and_then(|()| section.complete(name));
        completed.map_err(|why| format!("[{}.{name}]: {why}", T::KIND))
    })
}

/// Every path of the sections of a kind, and its place in the file.
pub(crate) fn paths_of<T: Section>(
    sections: &BTreeMap<String, T>,
) -> impl Iterator<Item = (String, &Path)> {
    sections.iter().flat_map(|(name, section)| {
        let place = move |key| format!("[{}.{name}] {key}", T::KIND);
        section.paths().into_iter().map(move |(key, path)| (place(key), path))
    })
}

/// Every directory in which all is one section's own, and its place in the file.
pub(crate) fn folders_of<T: Section>(
    sections: &BTreeMap<String, T>,
) -> impl Iterator<Item = (String, &Path)> {
    sections.iter().filter_map(|(name, section)| {
        let (key, path) = section.folder()?;
        Some((format!("[{}.{name}] {key}", T::KIND), path))
    })
}

/// What each section of a kind is called, and its network block devices.
pub(crate) fn nbd_of<T: Section>(
    sections: &BTreeMap<String, T>,
) -> impl Iterator<Item = (String, &[Address])> {
    sections.iter().map(|(name, section)| (format!("{}.{name}", T::KIND), section.nbd()))
}

/// What each section of a kind is called, and its block device.
pub(crate) fn ublk_of<T: Section>(
    sections: &BTreeMap<String, T>,
) -> impl Iterator<Item = (String, Option<u32>)> {
    sections.iter().map(|(name, section)| (format!("{}.{name}", T::KIND), section.ublk()))
}
