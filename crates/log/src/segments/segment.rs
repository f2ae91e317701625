//! One segment file: a header block, frames at their places, then the parity, if there is any. The
//! header block has the label of the log, too, so that it is in every segment.
//!
//! Byte table: FORMAT.md, "Segment header".
//! The frame at `lsn` lies at file offset `4096 + lsn mod segment bytes`; behind the last one lies
//! a group of blocks for each stripe, in order.
//!
//! Promise: a segment is whole on the device (allocated, zeroed or recycled, headed, synced) before
//! the first drain reaches it.
//! Never: changes its length once made, but where somebody else has.

use std::cmp::Ordering;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::Lsn;
use holdfast_core::frame::{BLOCK_BYTES, FRAME_ALIGN, FRAME_MAGIC};
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow, named};

use crate::error::{FileFault, OpenError};
use crate::format::buffer::Buffer;
use crate::format::bytes::{array_at, u32_at, u64_at};
use crate::format::shape::Shape;
use crate::format::stripe::{GROUP_BYTES, stripe_bytes};
use crate::segments::pace::Pace;

/// Longest label: it lies in the first block of each segment.
pub(crate) const LABEL_BYTES_MAX: usize = 2048;

const MAGIC: u32 = 0x5346_4648;
/// The version this program writes; it reads version 1, too.
const VERSION: u32 = 2;
/// Without a label.
const VERSION_BARE: u32 = 1;
/// What precedes the label.
const HEADER_BYTES: usize = 56;
const HEADER_BYTES_BARE: usize = 48;

const _: () = assert!(HEADER_BYTES + LABEL_BYTES_MAX <= BLOCK_BYTES as usize);

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) identity: [u8; 16],
    pub(crate) generation: u32,
    pub(crate) number: u64,
    pub(crate) segment_bytes: u64,
}

/// An open segment file.
#[derive(Clone)]
pub(crate) struct Segment {
    /// None if nothing is left of it.
    file: Option<Arc<dyn OpenFile>>,
    /// Number in its name.
    number: u32,
    shape: Shape,
    /// Whether zeros take the place of what is not there.
    remains: bool,
}

/// The name of a segment file.
pub(crate) fn segment_name(file: u32) -> String {
    format!("segment-{file:08}")
}

/// The number in the name of a segment file.
pub(crate) fn file_number(name: &str) -> Option<u32> {
    name.strip_prefix("segment-").and_then(|number| number.parse().ok())
}

/// Whether a name in a directory could be a segment's of a log.
#[must_use]
pub fn is_segment_name(name: &str) -> bool {
    name.strip_prefix("segment-").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// A segment's header, and the label in it.
pub(crate) type Headed = (SegmentHeader, Vec<u8>);

/// What a file says of itself that is not listed.
pub(crate) fn header_of(files: &dyn Files, name: &str) -> io::Result<Result<Headed, FileFault>> {
    let file = open_any(files, name)?;
    read_header(&*file)
}

/// The label in a file of this log, or of any, if nobody knows which it is.
pub(crate) fn label_in(
    files: &dyn Files,
    name: &str,
    identity: Option<[u8; 16]>,
) -> io::Result<Option<Vec<u8>>> {
    let headed = header_of(files, name)?.ok();
    let own = |of: &Headed| identity.is_none_or(|identity| identity == of.0.identity);
    Ok(headed.filter(own).map(|(_, label)| label).filter(|label| !label.is_empty()))
}

/// Whether anything that begins as a frame does lies behind the header. What a power cut left of
/// zeros that were being written is none.
pub(crate) fn is_used(files: &dyn Files, name: &str) -> io::Result<bool> {
    let file = open_any(files, name)?;
    let mut piece = Buffer::zeroed(Pace::Full.piece_bytes() as usize);
    let magic = FRAME_MAGIC.to_le_bytes();
    let mut at = BLOCK_BYTES;
    loop {
        let got = file.read_full_at(piece.bytes_mut(), at)?;
        let mut places = piece.bytes()[..got].chunks(FRAME_ALIGN as usize);
        if places.any(|place| place.starts_with(&magic)) {
            return Ok(true);
        }
        if got < piece.bytes().len() {
            return Ok(false);
        }
        at += got as u64;
    }
}

/// Not around the cache if its end is a part of a block.
fn open_any(files: &dyn Files, name: &str) -> io::Result<Arc<dyn OpenFile>> {
    let direct = files.metadata(Path::new(name))?.size_bytes.is_multiple_of(BLOCK_BYTES);
    files.open(Path::new(name), OpenHow { direct, ..OpenHow::default() })
}

fn read_header(file: &dyn OpenFile) -> io::Result<Result<Headed, FileFault>> {
    let mut block = Buffer::zeroed(BLOCK_BYTES as usize);
    let got = file.read_full_at(block.bytes_mut(), 0)?;
    Ok(decode(&block.bytes()[..got]))
}

impl Segment {
    /// Makes a file full of real zeros and syncs it; the directory is the caller's to sync.
    /// Whatever an interrupted attempt left under this name is overwritten; nothing is left where
    /// there is no room.
    pub(crate) fn make(
        files: &dyn Files,
        file: u32,
        shape: Shape,
        pace: Pace<'_>,
    ) -> io::Result<Segment> {
        let create_mode = Some(0o600);
        let how = OpenHow { write: true, create_mode, direct: true, ..OpenHow::default() };
        let segment = Segment::whole(files.open(&path(file), how)?, file, shape);
        match segment.fill(pace) {
            Err(error) if error.kind() == io::ErrorKind::StorageFull => {
                // What it has of the room is wanted by others. The error is told in any case.
                let _ = files.remove_file(&path(file));
                Err(error)
            }
            filled => filled.map(|()| segment),
        }
    }

    /// Makes a file beside those of these numbers, so that it is there after a power cut.
    pub(crate) fn make_another(
        files: &dyn Files,
        others: impl Iterator<Item = u32>,
        shape: Shape,
        pace: Pace<'_>,
    ) -> io::Result<(u32, Segment)> {
        let file = others.map(|other| other + 1).max().unwrap_or(0);
        let segment = Segment::make(files, file, shape, pace)?;
        files.sync_dir(Path::new("")).map(|()| (file, segment))
    }

    fn whole(file: Arc<dyn OpenFile>, number: u32, shape: Shape) -> Segment {
        Segment { file: Some(file), number, shape, remains: false }
    }

    /// What this crate itself calls an error of the file.
    pub(crate) fn error(&self, doing: &'static str, kind: io::ErrorKind) -> io::Error {
        named(doing, &path(self.number), kind.into())
    }

    /// What is not there can only be read.
    fn file(&self) -> io::Result<&dyn OpenFile> {
        self.file.as_deref().ok_or_else(|| self.error("opening", io::ErrorKind::NotFound))
    }

    fn fill(&self, pace: Pace<'_>) -> io::Result<()> {
        self.file()?.set_len(self.file_bytes())?;
        self.write_zeros(0, self.file_bytes(), pace)?;
        self.file()?.sync_data()
    }

    /// Opens an existing file. Of one that is missing or has not its length, this is what is left,
    /// with what is wrong with it.
    pub(crate) fn open(
        files: &dyn Files,
        number: u32,
        shape: Shape,
        access: Access,
    ) -> Result<(Segment, Option<OpenError>), OpenError> {
        let how = OpenHow { write: access == Access::Write, direct: true, ..OpenHow::default() };
        let (name, whole_bytes) = (segment_name(number), shape.file_bytes());
        let left = || Segment::what_is_left(files, number, shape).map_err(OpenError::Io);
        let file = match files.open(&path(number), how) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok((left()?, Some(OpenError::MissingSegment { name })));
            }
            file => file.map_err(OpenError::Io)?,
        };
        let found = file.metadata().map_err(OpenError::Io)?.size_bytes;
        let fault = match found.cmp(&whole_bytes) {
            Ordering::Equal => return Ok((Segment::whole(file, number, shape), None)),
            Ordering::Less => FileFault::Length { found },
            Ordering::Greater => FileFault::TooLong { found, length: whole_bytes },
        };
        Ok((left()?, Some(OpenError::File { name, fault })))
    }

    /// Whether the file is missing, or has not its length.
    pub(crate) fn is_absent(&self) -> bool {
        self.remains
    }

    /// Whether there is no such file.
    pub(crate) fn is_missing(&self) -> bool {
        self.file.is_none()
    }

    /// Gives a file that is missing or short everything but its last block: zeros, and what is left
    /// of it. Until it is [`Segment::completed`], it is short, and one that is too long stays that.
    /// The directory is the caller's to sync.
    pub(crate) fn complete(&self, files: &dyn Files) -> io::Result<Segment> {
        let create_mode = Some(0o600);
        let how = OpenHow { write: true, create_mode, direct: true, ..OpenHow::default() };
        let file = files.open(&path(self.number), how)?;
        let (found, short_bytes) = (file.metadata()?.size_bytes, self.file_bytes() - BLOCK_BYTES);
        let segment = Segment { file: Some(file), ..self.clone() };
        if found < short_bytes {
            let from = found.next_multiple_of(BLOCK_BYTES);
            segment.file()?.set_len(short_bytes)?;
            segment.write_zeros(from, short_bytes - from, Pace::Full)?;
        } else if found > short_bytes && found < self.file_bytes() {
            // A part of the last block is there. It stays.
            segment.file()?.set_len(self.file_bytes())?;
        }
        segment.sync()?;
        Ok(segment)
    }

    /// The file with its last block, which is zeros unless somebody has written it meanwhile, and
    /// with nothing behind that.
    pub(crate) fn completed(self) -> io::Result<Segment> {
        if self.file()?.metadata()?.size_bytes != self.file_bytes() {
            self.file()?.set_len(self.file_bytes())?;
            self.sync()?;
        }
        Ok(Segment { remains: false, ..self })
    }

    /// The file, which had nothing, made again if it is missing.
    pub(crate) fn made_again(&self, files: &dyn Files) -> io::Result<Segment> {
        if !self.remains {
            return Ok(self.clone());
        }
        let segment = self.complete(files)?;
        files.sync_dir(Path::new(""))?;
        segment.completed()
    }

    /// What is left of a file, to be read: zeros take the place of what is not there.
    pub(crate) fn what_is_left(
        files: &dyn Files,
        number: u32,
        shape: Shape,
    ) -> io::Result<Segment> {
        // Not around the cache: the rest of it may be no whole block.
        let left = match files.open(&path(number), OpenHow::default()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            file => Some(file?),
        };
        Ok(Segment { file: left, number, shape, remains: true })
    }

    /// How long a file is; 0 if it is not there.
    pub(crate) fn found_bytes(files: &dyn Files, file: u32) -> io::Result<u64> {
        match files.metadata(&path(file)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            found => found.map(|found| found.size_bytes),
        }
    }

    /// Reads and checks the header.
    pub(crate) fn header(&self) -> io::Result<Result<Headed, FileFault>> {
        self.file.as_deref().map_or(Ok(Err(FileFault::Missing)), read_header)
    }

    /// Writes header and label, and syncs them. The file must not hold anything that is still
    /// needed.
    pub(crate) fn write_header(&self, header: &SegmentHeader, label: &[u8]) -> io::Result<()> {
        let mut block = Buffer::zeroed(BLOCK_BYTES as usize);
        let bytes = encode(header, label);
        block.bytes_mut()[..bytes.len()].copy_from_slice(&bytes);
        self.file()?.write_all_at(block.bytes(), 0)?;
        self.file()?.sync_data()
    }

    /// Reads frames from `lsn` on, which must be at the start of a block, inside this segment.
    pub(crate) fn read(&self, lsn: Lsn, into: &mut [u8]) -> io::Result<()> {
        self.read_at(into, self.offset(lsn))
    }

    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let got = self.file.as_ref().map_or(Ok(0), |file| file.read_full_at(into, offset))?;
        if got < into.len() && !self.remains {
            return Err(self.error("reading", io::ErrorKind::UnexpectedEof));
        }
        into[got..].fill(0);
        Ok(())
    }

    /// Writes whole blocks of frames and makes them durable; returns how many bytes were taken.
    pub(crate) fn write_through(&self, lsn: Lsn, bytes: &[u8]) -> io::Result<usize> {
        self.file()?.write_through_at(bytes, self.offset(lsn))
    }

    /// Writes whole blocks of frames, all of them.
    pub(crate) fn write_all(&self, lsn: Lsn, bytes: &[u8]) -> io::Result<()> {
        self.file()?.write_all_at(bytes, self.offset(lsn))
    }

    /// Writes the groups of one or several stripes, the first of which starts at `stripe`, through
    /// to the device.
    pub(crate) fn write_groups(&self, stripe: Lsn, groups: &[u8]) -> io::Result<()> {
        let (mut done, offset) = (0, self.group_offset(stripe));
        while done < groups.len() {
            match self.file()?.write_through_at(&groups[done..], offset + done as u64) {
                Ok(0) => return Err(self.error("writing", io::ErrorKind::WriteZero)),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the groups of one or several stripes.
    pub(crate) fn read_groups(&self, stripe: Lsn, into: &mut [u8]) -> io::Result<()> {
        self.read_at(into, self.group_offset(stripe))
    }

    /// Reads blocks of frames one by one where the device does not give them as a whole; zeros take
    /// the place of those that it does not give at all. Returns which they are, by number.
    pub(crate) fn salvage(&self, lsn: Lsn, into: &mut [u8]) -> Vec<u64> {
        self.salvage_at(self.offset(lsn), into)
    }

    /// [`Segment::salvage`], of the group of a stripe.
    pub(crate) fn salvage_group(&self, stripe: Lsn, into: &mut [u8]) -> Vec<u64> {
        self.salvage_at(self.group_offset(stripe), into)
    }

    fn salvage_at(&self, offset: u64, into: &mut [u8]) -> Vec<u64> {
        let mut unread = Vec::new();
        if self.read_at(into, offset).is_ok() {
            return unread;
        }
        for (index, block) in (0..).zip(into.chunks_mut(BLOCK_BYTES as usize)) {
            if self.read_at(block, offset + index * BLOCK_BYTES).is_err() {
                block.fill(0);
                unread.push(index);
            }
        }
        unread
    }

    /// Zeroes whole blocks from one position to another (both inside, `to` may be the end).
    pub(crate) fn zero(&self, from: Lsn, to: Lsn) -> io::Result<()> {
        self.write_zeros(self.offset(from), to.since(from), Pace::Full)
    }

    /// Makes everything written durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file()?.sync_data()
    }

    fn write_zeros(&self, offset: u64, bytes: u64, pace: Pace<'_>) -> io::Result<()> {
        let zeros = Buffer::zeroed(Pace::Full.piece_bytes().min(bytes) as usize);
        let mut done = 0;
        while done < bytes {
            let (began, piece_bytes) = (Instant::now(), (bytes - done).min(pace.piece_bytes()));
            self.file()?.write_all_at(&zeros.bytes()[..piece_bytes as usize], offset + done)?;
            pace.pause(began);
            done += piece_bytes;
        }
        Ok(())
    }

    fn offset(&self, lsn: Lsn) -> u64 {
        BLOCK_BYTES + lsn.offset_in(self.shape.segment_bytes)
    }

    /// Where the group of the stripe that starts at `stripe` lies.
    fn group_offset(&self, stripe: Lsn) -> u64 {
        let segment_bytes = self.shape.segment_bytes;
        let groups_before = stripe.offset_in(segment_bytes) / stripe_bytes(segment_bytes);
        BLOCK_BYTES + segment_bytes + groups_before * GROUP_BYTES
    }

    fn file_bytes(&self) -> u64 {
        self.shape.file_bytes()
    }
}

fn path(file: u32) -> PathBuf {
    Path::new(&segment_name(file)).to_path_buf()
}

/// A header with its label as bytes.
pub(crate) fn encode(header: &SegmentHeader, label: &[u8]) -> Vec<u8> {
    assert!(label.len() <= LABEL_BYTES_MAX, "a label is short");
    let mut bytes = vec![0; HEADER_BYTES];
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&header.generation.to_le_bytes());
    bytes[16..32].copy_from_slice(&header.identity);
    bytes[32..40].copy_from_slice(&header.number.to_le_bytes());
    bytes[40..48].copy_from_slice(&header.segment_bytes.to_le_bytes());
    bytes[48..52].copy_from_slice(&(label.len() as u32).to_le_bytes());
    bytes.extend_from_slice(label);
    let check = crc32c(0, &bytes[12..]);
    bytes[8..12].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<Headed, FileFault> {
    if bytes.len() < HEADER_BYTES {
        return Err(FileFault::Length { found: bytes.len() as u64 });
    }
    if u32_at(bytes, 0) != MAGIC {
        return Err(FileFault::Magic);
    }
    let label_at = match u32_at(bytes, 4) {
        VERSION => HEADER_BYTES,
        VERSION_BARE => HEADER_BYTES_BARE,
        _ => return Err(FileFault::Contents),
    };
    let label_bytes = if label_at == HEADER_BYTES { u32_at(bytes, 48) as usize } else { 0 };
    let end = label_at.saturating_add(label_bytes);
    if bytes.get(12..end).is_none_or(|said| u32_at(bytes, 8) != crc32c(0, said)) {
        return Err(FileFault::Check);
    }
    let header = SegmentHeader {
        generation: u32_at(bytes, 12),
        identity: array_at(bytes, 16),
        number: u64_at(bytes, 32),
        segment_bytes: u64_at(bytes, 40),
    };
    Ok((header, bytes[label_at..end].to_vec()))
}

/// The names of all segment files, in order of number.
pub(crate) fn segment_names(files: &dyn Files) -> io::Result<Vec<String>> {
    let entries = files.read_dir(Path::new(""))?.into_iter();
    let names = entries.map(|entry| String::from_utf8_lossy(&entry.name).into_owned());
    let mut names: Vec<String> = names.filter(|name| is_segment_name(name)).collect();
    names.sort();
    Ok(names)
}

/// A segment file that holds frames.
pub(crate) fn used_segment(files: &dyn Files) -> io::Result<Option<String>> {
    for name in segment_names(files)? {
        if is_used(files, &name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

/// What the segment files are opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    Read,
    Write,
}
