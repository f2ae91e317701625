//! How something was configured when it was attached, in a file without a name.
//!
//! Promise: what is read is what was written, whole, or nothing: a version that knows other
//! settings reads nothing.
//! Never: looks into the configuration of now.

use rustix::fs::{MemfdFlags, memfd_create};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;

/// Longer than any settings.
const BYTES_MAX: usize = 1 << 20;

/// A file with these settings. Nothing is served worse without one.
pub(crate) fn written(settings: &impl Serialize) -> Option<OwnedFd> {
    let write = || {
        let mut file = File::from(memfd_create("holdfast-settings", MemfdFlags::CLOEXEC)?);
        file.write_all(&serde_json::to_vec(settings)?)?;
        std::io::Result::Ok(file.into())
    };
    let written = write();
    written.inspect_err(|error| tracing::warn!(%error, "settings cannot be kept")).ok()
}

/// The settings in such a file, if it has some that this version understands.
pub(crate) fn read<T: DeserializeOwned>(descriptor: &OwnedFd) -> Option<T> {
    let file = File::from(descriptor.try_clone().ok()?);
    let bytes = usize::try_from(file.metadata().ok()?.len()).ok().filter(|it| *it < BYTES_MAX)?;
    let mut text = vec![0; bytes];
    file.read_exact_at(&mut text, 0).ok()?;
    serde_json::from_slice(&text).ok()
}

#[cfg(test)]
mod tests;
