//! LZ4, a block a set.
//!
//! Promise: the memory that it works in is kept from set to set, one a thread.
//! Never: compresses twice.

use std::cell::Cell;

use lz4_flex::block::{
    CompressTable, compress_into_with_table, decompress_into, get_maximum_output_size,
};

use super::{Compression, UnpackFault};
use crate::aligned::Aligned;

/// What precedes the block: u32 length of the set.
const HEAD_BYTES: usize = 4;
/// Shorter sets gain nothing.
const SET_BYTES_MIN: usize = 128;
/// One of so many parts has to be saved.
const PARTS: usize = 8;

/// The memory of longer ones is not kept.
const KEPT_BYTES_MAX: usize = 1 << 20;

thread_local! {
    static PACKER: Cell<Option<Packer>> = const { Cell::new(None) };
}

/// The memory in which sets are compressed.
#[derive(Default)]
struct Packer {
    table: CompressTable,
    packed: Vec<u8>,
}

/// What `then` makes of a set compressed, or of none if it is not to be or does not save enough.
pub(crate) fn with_packed<T>(
    how: Compression,
    set: &[u8],
    then: impl FnOnce(Option<&[u8]>) -> T,
) -> T {
    if how == Compression::None || set.len() < SET_BYTES_MIN {
        return then(None);
    }
    let mut packer = PACKER.take().unwrap_or_default();
    let result = then(packer.pack(set));
    if set.len() <= KEPT_BYTES_MAX {
        PACKER.set(Some(packer));
    }
    result
}

impl Packer {
    fn pack(&mut self, set: &[u8]) -> Option<&[u8]> {
        let length = u32::try_from(set.len()).ok()?;
        let room = HEAD_BYTES + get_maximum_output_size(set.len());
        if self.packed.len() < room {
            self.packed.resize(room, 0);
        }
        let (head, block) = self.packed.split_at_mut(HEAD_BYTES);
        head.copy_from_slice(&length.to_le_bytes());
        let bytes = compress_into_with_table(set, block, &mut self.table);
        let end = HEAD_BYTES + bytes.expect("there is room for the worst case");
        (end <= set.len() - set.len() / PARTS).then(|| &self.packed[..end])
    }
}

/// Decompresses a set of at most `bytes_max` bytes.
pub(crate) fn unpack(
    payload: &[u8],
    bytes_max: u64,
    into: &mut Aligned,
) -> Result<(), UnpackFault> {
    let (length, block) = payload.split_first_chunk().ok_or(UnpackFault::Damaged)?;
    let length = u32::from_le_bytes(*length);
    if u64::from(length) > bytes_max {
        return Err(UnpackFault::Damaged);
    }
    match decompress_into(block, into.room(length as usize)) {
        Ok(bytes) if bytes == length as usize => Ok(()),
        _ => Err(UnpackFault::Damaged),
    }
}

#[cfg(test)]
mod tests;
