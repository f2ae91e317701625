//! What a region lies in, where that is a character device of the kernel's: memory that is mapped
//! and can be neither read nor written.
//!
//! Promise: length and first bytes of an open file, whatever kind of file it is.
//! Never: knows what the bytes mean.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::fs::{major, minor};

use crate::raw::Mapping;

/// Where the kernel tells of character devices, by number.
const DEVICES: &str = "/sys/dev/char";

/// Whether the file can only be mapped.
pub(crate) fn is_memory(file: &File) -> io::Result<bool> {
    Ok(file.metadata()?.file_type().is_char_device())
}

/// Bytes of a file or device.
pub(crate) fn length(mut file: &File) -> io::Result<u64> {
    if is_memory(file)? {
        let told = std::fs::read_to_string(told_of(file.metadata()?.rdev()).join("size"));
        let text = told.map_err(|_| io::Error::other("the device is no memory"))?;
        return text.trim().parse().map_err(io::Error::other);
    }
    // A block device has no length of its own; the end that seeking finds is it.
    file.seek(SeekFrom::End(0))
}

/// The first `bytes`, or as many of them as there are.
pub(crate) fn head(file: &File, bytes: usize) -> io::Result<Vec<u8>> {
    let mut head = vec![0; bytes];
    if is_memory(file)? {
        Mapping::read_only(file.as_fd(), length(file)? as usize)?.copy_out(0, &mut head);
        return Ok(head);
    }
    let mut have = 0;
    while have < head.len() {
        match file.read_at(&mut head[have..], have as u64)? {
            0 => break,
            more => have += more,
        }
    }
    head.truncate(have);
    Ok(head)
}

/// The kernel's folder about a character device.
fn told_of(device: u64) -> PathBuf {
    Path::new(DEVICES).join(format!("{}:{}", major(device), minor(device)))
}
