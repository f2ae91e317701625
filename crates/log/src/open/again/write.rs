//! An open writes once more what is not proved to be on the device.
//!
//! Promise: a block that is written over is in the file beside the log until it has arrived.
//! Never: changes what is read.

use std::path::Path;

use holdfast_core::Lsn;

use super::{Again, PIECE_BYTES, encode, open_file};
use crate::error::OpenError;
use crate::format::buffer::Buffer;
use crate::open::opening::Opening;
use crate::read::spans::SpanReader;
use crate::segments::Table;

impl Opening<'_> {
    /// Writes whole blocks from `from` to `to` once more, and syncs them.
    pub(crate) fn write_again(&self, table: &Table, from: Lsn, to: Lsn) -> Result<(), OpenError> {
        if from == to {
            return Ok(());
        }
        let file = open_file(&*self.files).map_err(OpenError::Io)?;
        self.files.sync_dir(Path::new("")).map_err(OpenError::Io)?;
        let mut reader = SpanReader::new(table, self.geometry);
        let mut at = from;
        while at < to {
            let end = at.advance(PIECE_BYTES).min(self.geometry.span_end(at)).min(to);
            let blocks = reader.between(at, end)?;
            let segment = self.segment_at(table, at)?.0;
            let kept = encode(&table.catalogue.identity, at, blocks);
            let mut buffer = Buffer::zeroed(blocks.len());
            buffer.bytes_mut().copy_from_slice(blocks);
            file.write_all_at(&kept, 0)
                .and_then(|()| file.sync_data())
                .and_then(|()| segment.write_all(at, buffer.bytes()))
                .and_then(|()| segment.sync())
                .map_err(OpenError::Io)?;
            at = end;
        }
        Again::clear(&*self.files).map_err(OpenError::Io)
    }
}
