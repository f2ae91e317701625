//! Disks: copied at one instant, and made what they were.
//!
//! Promise: while disks are copied every change of any of them waits. What was begun to be restored
//! is restored in the end, by whoever opens the store, or its disks are named as torn.
//! Never: keeps a disk still longer than it takes to copy all of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use holdfast_io::{Blocks, BlocksError};

use crate::directory::Entry;
use crate::draft::Draft;
use crate::error::Refusal;
use crate::pages::{PAGE_BYTES, is_zeros};
use crate::request::{ImageKind, PIECE_BYTES_MAX};
use crate::source::Source;
use crate::state::{Fault, State};
use crate::store::{Store, StoreFault};

/// The disks of a service, by name.
pub(crate) type Disks = BTreeMap<String, Arc<dyn Source>>;

/// Copies all disks into the images of a draft that are theirs.
pub(crate) fn take(disks: &Disks, store: &mut Store, draft: &mut Draft) -> Result<(), StoreFault> {
    let mut copied = Ok(());
    let sources: Vec<_> = disks.values().map(|disk| &**disk).collect();
    while_all_still(&sources, &mut || {
        copied = disks.iter().try_for_each(|(name, disk)| {
            let is_its = |kind, of: &str| kind == ImageKind::Disk && of == name;
            let image = draft.images.iter_mut().find(|image| is_its(image.kind, &image.name));
            let image = image.expect("a draft begins with an image of each disk");
            let copy = |(offset, bytes): (u64, &[u8])| {
                store.put(&mut image.pages, (offset / PAGE_BYTES as u64) as usize, bytes)
            };
            pieces(&**disk, copy)
        });
    });
    copied
}

fn while_all_still(disks: &[&dyn Source], job: &mut dyn FnMut()) {
    match disks {
        [] => job(),
        [first, rest @ ..] => first.while_still(&mut || while_all_still(rest, job)),
    }
}

/// Reads a disk from one end to the other.
fn pieces(
    disk: &dyn Blocks,
    mut take: impl FnMut((u64, &[u8])) -> Result<(), StoreFault>,
) -> Result<(), StoreFault> {
    let mut piece = vec![0; PIECE_BYTES_MAX];
    for (offset, bytes) in ranges(disk.size_bytes()) {
        let piece = &mut piece[..bytes as usize];
        disk.read(piece, offset)?;
        take((offset, piece))?;
    }
    Ok(())
}

/// Refuses unless every disk of a snapshot is there, and every page that it is to get is whole.
pub(crate) fn check(disks: &Disks, state: &State, entry: &Entry) -> Result<(), Fault> {
    for (index, image) in of_disks(entry) {
        let disk = disks.get(&image.name);
        let disk = disk.ok_or_else(|| Refusal::NoDisk { disk: image.name.clone() })?;
        let (found, had) = (disk.size_bytes(), image.size_bytes);
        if found != had {
            return Err(Refusal::OtherSize { disk: image.name.clone(), found, had }.into());
        }
        for (offset, bytes) in ranges(had) {
            state.read(entry.id, index, offset, bytes)?;
        }
    }
    Ok(())
}

/// Makes all disks of a snapshot what they were.
pub(crate) fn restore(disks: &Disks, state: &State, entry: &Entry) -> Result<(), Fault> {
    for (index, image) in of_disks(entry) {
        for (offset, bytes) in ranges(image.size_bytes) {
            let piece = state.read(entry.id, index, offset, bytes)?;
            write(&*disks[&image.name], offset, &piece)?;
        }
    }
    Ok(())
}

/// Writes what is not zeros, and empties the rest.
fn write(disk: &dyn Source, offset: u64, piece: &[u8]) -> Result<(), BlocksError> {
    let pages: Vec<&[u8]> = piece.chunks(PAGE_BYTES).collect();
    let mut at = 0;
    for alike in pages.chunk_by(|one, other| is_zeros(one) == is_zeros(other)) {
        let bytes = alike.iter().map(|page| page.len()).sum::<usize>();
        match is_zeros(alike[0]) {
            true => disk.discard(offset + at as u64, bytes as u64)?,
            false => disk.write(&piece[at..][..bytes], offset + at as u64)?,
        }
        at += bytes;
    }
    Ok(())
}

fn of_disks(entry: &Entry) -> impl Iterator<Item = (u32, &crate::directory::ImageEntry)> {
    (0..).zip(&entry.images).filter(|(_, image)| image.kind == ImageKind::Disk)
}

/// The pieces of so many bytes.
fn ranges(size_bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let piece_bytes = PIECE_BYTES_MAX as u64;
    let offsets = (0..size_bytes).step_by(PIECE_BYTES_MAX);
    offsets.map(move |offset| (offset, piece_bytes.min(size_bytes - offset)))
}
