//! What a driver asks for.
//!
//! Promise: a request that was parsed lies on the disk, and its data has the length that it says;
//! whatever else was sent is a [`Refusal`], which becomes the answer.
//! Never: touches memory of a guest, or a disk.

use super::wire::{
    DATA_BYTES_MAX, HEADER_BYTES, ID_BYTES, RANGE_BYTES, RANGE_SECTORS_MAX, RANGE_UNMAP,
    RANGES_MAX, request, status,
};
use crate::sectors::SECTOR_BYTES;

pub use crate::sectors::Extent;

#[cfg(test)]
mod tests;

/// A request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Bytes for the guest.
    Read(Extent),
    /// Bytes from the guest, behind the header.
    Write(Extent),
    /// All that was answered is to be durable.
    Flush,
    /// The disk's name, for so many bytes of room.
    GetId(usize),
    /// So many ranges, behind the header, are given back.
    Discard(usize),
    /// So many ranges, behind the header, are to read as zeros.
    WriteZeroes(usize),
}

/// Why a request is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device does not know such a request, or such a flag.
    #[error("a request or flag that is not known: {0}")]
    Unknown(u32),
    /// It ends behind the disk.
    #[error("a request behind the end of the disk")]
    OutOfRange,
    /// Data that is no whole number of sectors or ranges, or more than allowed.
    #[error("a request whose data has a wrong length")]
    Length,
}

impl Refusal {
    /// What the guest is told.
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Unknown(_) => status::UNSUPPORTED,
            Self::OutOfRange | Self::Length => status::IO_ERROR,
        }
    }
}

/// Parses a header. `from_guest` bytes follow it, there is room for `to_guest` bytes before the
/// status, and the disk has `size_bytes`.
pub fn parse(
    header: &[u8; HEADER_BYTES],
    from_guest: u64,
    to_guest: u64,
    size_bytes: u64,
) -> Result<Request, Refusal> {
    let sector = u64_at(header, 8);
    match u32_at(header, 0) {
        request::READ => Ok(Request::Read(data(sector, to_guest, size_bytes)?)),
        request::WRITE => Ok(Request::Write(data(sector, from_guest, size_bytes)?)),
        // Its sector is garbage in some drivers.
        request::FLUSH => Ok(Request::Flush),
        request::GET_ID => Ok(Request::GetId(to_guest.min(ID_BYTES as u64) as usize)),
        request::DISCARD => Ok(Request::Discard(ranges(from_guest)?)),
        request::WRITE_ZEROES => Ok(Request::WriteZeroes(ranges(from_guest)?)),
        kind => Err(Refusal::Unknown(kind)),
    }
}

/// Parses one range of [`Request::Discard`], or of [`Request::WriteZeroes`], in which it may say
/// that its space is not needed: then the second value is true.
pub fn parse_range(
    range: &[u8; RANGE_BYTES],
    is_discard: bool,
    size_bytes: u64,
) -> Result<(Extent, bool), Refusal> {
    let (sector, sectors, flags) = (u64_at(range, 0), u32_at(range, 8), u32_at(range, 12));
    let allowed = if is_discard { 0 } else { RANGE_UNMAP };
    if flags & !allowed != 0 {
        return Err(Refusal::Unknown(flags));
    }
    if sectors > RANGE_SECTORS_MAX {
        return Err(Refusal::Length);
    }
    let extent = extent(sector, u64::from(sectors) * SECTOR_BYTES, size_bytes)?;
    Ok((extent, is_discard || flags == RANGE_UNMAP))
}

fn data(sector: u64, bytes: u64, size_bytes: u64) -> Result<Extent, Refusal> {
    if bytes > DATA_BYTES_MAX {
        return Err(Refusal::Length);
    }
    extent(sector, bytes, size_bytes)
}

fn extent(sector: u64, bytes: u64, size_bytes: u64) -> Result<Extent, Refusal> {
    match bytes.is_multiple_of(SECTOR_BYTES) {
        true => Extent::at(sector, bytes, size_bytes).ok_or(Refusal::OutOfRange),
        false => Err(Refusal::Length),
    }
}

fn ranges(bytes: u64) -> Result<usize, Refusal> {
    let count = bytes / RANGE_BYTES as u64;
    let is_whole = bytes.is_multiple_of(RANGE_BYTES as u64);
    if is_whole && (1..=RANGES_MAX.into()).contains(&count) {
        Ok(count as usize)
    } else {
        Err(Refusal::Length)
    }
}

fn u32_at(bytes: &[u8; 16], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("inside sixteen bytes"))
}

fn u64_at(bytes: &[u8; 16], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("inside sixteen bytes"))
}
