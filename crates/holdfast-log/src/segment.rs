//! One segment file: a header block, frames at their places, then the parity, if there is any.
//!
//! Byte table: FORMAT.md, "Segment header".
//! The frame at `lsn` lies at file offset `4096 + lsn mod segment bytes`; behind the last one lies
//! a group of blocks for each stripe, in order.
//!
//! Promise: a segment is whole on the device (allocated, zeroed or recycled, headed, synced) before
//! the first drain reaches it.
//! Never: changes its length once made.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use holdfast_core::Lsn;
use holdfast_core::frame::BLOCK_BYTES;
use holdfast_io::checksum::crc32c;
use holdfast_io::{Files, OpenFile, OpenHow};

use crate::buffer::Buffer;
use crate::catalogue::{VERSION, array_at, u32_at, u64_at};
use crate::config::Parity;
use crate::error::{FileFault, OpenError};
use crate::open::Access;
use crate::pace::Pace;
use crate::stripe::{GROUP_BYTES, stripe_bytes};

const MAGIC: u32 = 0x5346_4648;
const HEADER_BYTES: usize = 48;

/// What a segment's header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentHeader {
    pub(crate) identity: [u8; 16],
    pub(crate) generation: u32,
    pub(crate) number: u64,
    pub(crate) segment_bytes: u64,
}

/// What every segment file of a log is like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) segment_bytes: u64,
    pub(crate) parity: Parity,
}

/// An open segment file.
#[derive(Clone)]
pub(crate) struct Segment {
    file: Arc<dyn OpenFile>,
    shape: Shape,
}

/// The name of a segment file.
pub(crate) fn segment_name(file: u32) -> String {
    format!("segment-{file:08}")
}

/// Whether a name could be one of ours.
pub(crate) fn is_segment_name(name: &str) -> bool {
    name.strip_prefix("segment-").is_some_and(|rest| rest.bytes().all(|b| b.is_ascii_digit()))
}

/// What a file says of itself that is not listed.
pub(crate) fn header_of(
    files: &dyn Files,
    name: &str,
) -> io::Result<Result<SegmentHeader, FileFault>> {
    let file = files.open(Path::new(name), OpenHow { direct: true, ..OpenHow::default() })?;
    read_header(&*file)
}

fn read_header(file: &dyn OpenFile) -> io::Result<Result<SegmentHeader, FileFault>> {
    let mut block = Buffer::zeroed(BLOCK_BYTES as usize);
    let got = file.read_full_at(block.bytes_mut(), 0)?;
    Ok(decode(&block.bytes()[..got]))
}

impl Segment {
    /// Makes a file full of real zeros and syncs it; the directory is the caller's to sync.
    /// Whatever an interrupted attempt left under this name is overwritten.
    pub(crate) fn make(
        files: &dyn Files,
        file: u32,
        shape: Shape,
        pace: Pace<'_>,
    ) -> io::Result<Segment> {
        let create_mode = Some(0o600);
        let how = OpenHow { write: true, create_mode, direct: true, ..OpenHow::default() };
        let file = files.open(&path(file), how)?;
        let segment = Segment { file, shape };
        segment.file.set_len(segment.file_bytes())?;
        segment.write_zeros(0, segment.file_bytes(), pace)?;
        segment.file.sync_data()?;
        Ok(segment)
    }

    /// Opens an existing file and checks its length.
    pub(crate) fn open(
        files: &dyn Files,
        file: u32,
        shape: Shape,
        access: Access,
    ) -> Result<Segment, OpenError> {
        let write = access == Access::Write;
        let how = OpenHow { write, direct: true, ..OpenHow::default() };
        let name = segment_name(file);
        let file = files.open(&path(file), how).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => OpenError::MissingSegment { name: name.clone() },
            kind => OpenError::Io(io::Error::new(kind, format!("{name}: {error}"))),
        })?;
        let segment = Segment { file, shape };
        let found = segment.file.metadata().map_err(OpenError::Io)?.size_bytes;
        if found != segment.file_bytes() {
            return Err(OpenError::File { name, fault: FileFault::Length { found } });
        }
        Ok(segment)
    }

    /// Reads and checks the header.
    pub(crate) fn header(&self) -> io::Result<Result<SegmentHeader, FileFault>> {
        read_header(&*self.file)
    }

    /// Writes the header and syncs it. The file must not hold anything that is still needed.
    pub(crate) fn write_header(&self, header: &SegmentHeader) -> io::Result<()> {
        let mut block = Buffer::zeroed(BLOCK_BYTES as usize);
        block.bytes_mut()[..HEADER_BYTES].copy_from_slice(&encode(header));
        self.file.write_all_at(block.bytes(), 0)?;
        self.file.sync_data()
    }

    /// Reads frames from `lsn` on, which must be at the start of a block, inside this segment.
    pub(crate) fn read(&self, lsn: Lsn, into: &mut [u8]) -> io::Result<()> {
        let got = self.file.read_full_at(into, self.offset(lsn))?;
        if got < into.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
    }

    /// Writes whole blocks of frames and makes them durable; returns how many bytes were taken.
    pub(crate) fn write_through(&self, lsn: Lsn, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_through_at(bytes, self.offset(lsn))
    }

    /// Writes whole blocks of frames, all of them.
    pub(crate) fn write_all(&self, lsn: Lsn, bytes: &[u8]) -> io::Result<()> {
        self.file.write_all_at(bytes, self.offset(lsn))
    }

    /// Writes the groups of one or several stripes, the first of which starts at `stripe`, through
    /// to the device.
    pub(crate) fn write_groups(&self, stripe: Lsn, groups: &[u8]) -> io::Result<()> {
        let (mut done, offset) = (0, self.group_offset(stripe));
        while done < groups.len() {
            match self.file.write_through_at(&groups[done..], offset + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Reads the groups of one or several stripes.
    pub(crate) fn read_groups(&self, stripe: Lsn, into: &mut [u8]) -> io::Result<()> {
        let got = self.file.read_full_at(into, self.group_offset(stripe))?;
        if got < into.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(())
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
        let whole = |got: io::Result<usize>, bytes: usize| got.is_ok_and(|got| got == bytes);
        let mut unread = Vec::new();
        if whole(self.file.read_full_at(into, offset), into.len()) {
            return unread;
        }
        for (index, block) in (0..).zip(into.chunks_mut(BLOCK_BYTES as usize)) {
            if !whole(self.file.read_full_at(block, offset + index * BLOCK_BYTES), block.len()) {
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
        self.file.sync_data()
    }

    fn write_zeros(&self, offset: u64, bytes: u64, pace: Pace<'_>) -> io::Result<()> {
        let zeros = Buffer::zeroed(Pace::Full.piece_bytes().min(bytes) as usize);
        let mut done = 0;
        while done < bytes {
            let (began, piece_bytes) = (Instant::now(), (bytes - done).min(pace.piece_bytes()));
            self.file.write_all_at(&zeros.bytes()[..piece_bytes as usize], offset + done)?;
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
        let Shape { segment_bytes, parity } = self.shape;
        let groups = match parity {
            Parity::None => 0,
            Parity::TenPercent => segment_bytes / stripe_bytes(segment_bytes),
        };
        BLOCK_BYTES + segment_bytes + groups * GROUP_BYTES
    }
}

fn path(file: u32) -> PathBuf {
    Path::new(&segment_name(file)).to_path_buf()
}

/// A header as bytes.
pub(crate) fn encode(header: &SegmentHeader) -> [u8; HEADER_BYTES] {
    let mut bytes = [0u8; HEADER_BYTES];
    bytes[0..4].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[4..8].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&header.generation.to_le_bytes());
    bytes[16..32].copy_from_slice(&header.identity);
    bytes[32..40].copy_from_slice(&header.number.to_le_bytes());
    bytes[40..48].copy_from_slice(&header.segment_bytes.to_le_bytes());
    let check = crc32c(0, &bytes[12..]);
    bytes[8..12].copy_from_slice(&check.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8]) -> Result<SegmentHeader, FileFault> {
    if bytes.len() < HEADER_BYTES {
        return Err(FileFault::Length { found: bytes.len() as u64 });
    }
    if u32_at(bytes, 0) != MAGIC {
        return Err(FileFault::Magic);
    }
    if u32_at(bytes, 8) != crc32c(0, &bytes[12..HEADER_BYTES]) {
        return Err(FileFault::Check);
    }
    if u32_at(bytes, 4) != VERSION {
        return Err(FileFault::Contents);
    }
    Ok(SegmentHeader {
        generation: u32_at(bytes, 12),
        identity: array_at(bytes, 16),
        number: u64_at(bytes, 32),
        segment_bytes: u64_at(bytes, 40),
    })
}
