//! What the kernel asks for.
//!
//! Promise: a request that was parsed lies on the disk, and its data fits a queue's buffer;
//! whatever else was asked is a [`Refusal`], which becomes the answer.
//! Never: touches data, or a disk.

use super::wire::{DATA_BYTES_MAX, request};
use crate::sectors::SECTOR_BYTES;

pub use super::wire::Description;
pub use crate::sectors::Extent;

#[cfg(test)]
mod tests;

/// A request, without its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Bytes for the kernel.
    Read(Extent),
    /// Bytes from the kernel.
    Write(Extent),
    /// All that was answered is to be durable.
    Flush,
    /// These bytes are given back.
    Discard(Extent),
    /// These bytes are to read as zeros, and keep their space.
    WriteZeroes(Extent),
}

/// Why a request is not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The device did not say that it can do this.
    #[error("a request that is not known: {0}")]
    Unknown(u8),
    /// It ends behind the disk.
    #[error("a request behind the end of the disk")]
    OutOfRange,
    /// More data than the device said that it takes at once.
    #[error("a request with too much data")]
    Length,
}

/// Parses a description for a disk of `size_bytes`. True beside a change: it is to be durable when
/// it is answered.
pub fn parse(asked: &Description, size_bytes: u64) -> Result<(Request, bool), Refusal> {
    let is_durable = asked.kind & request::FUA != 0;
    let range = || extent(asked, size_bytes);
    // The kind comes first: a flush has no range, whatever stands in its place.
    let parsed = match (asked.kind & 0xff) as u8 {
        request::READ => return Ok((Request::Read(data(range()?)?), false)),
        request::FLUSH => return Ok((Request::Flush, false)),
        request::WRITE => Request::Write(data(range()?)?),
        request::DISCARD => Request::Discard(range()?),
        request::WRITE_ZEROES if asked.kind & request::NO_UNMAP != 0 => {
            Request::WriteZeroes(range()?)
        }
        request::WRITE_ZEROES => Request::Discard(range()?),
        kind => return Err(Refusal::Unknown(kind)),
    };
    Ok((parsed, is_durable))
}

fn data(extent: Extent) -> Result<Extent, Refusal> {
    match extent.bytes <= DATA_BYTES_MAX as u64 {
        true => Ok(extent),
        false => Err(Refusal::Length),
    }
}

fn extent(asked: &Description, size_bytes: u64) -> Result<Extent, Refusal> {
    let bytes = u64::from(asked.sectors) * SECTOR_BYTES;
    Extent::at(asked.sector, bytes, size_bytes).ok_or(Refusal::OutOfRange)
}
