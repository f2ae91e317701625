//! Bringing a file's bytes, room and size home.
//!
//! Promise: bytes, zeros and holes read as they should, whichever calls the home has: what it does
//! not make itself is written.
//! Never: leaves a file longer than the window has it.

use std::io;

use holdfast_io::{Change, Metadata, OpenFile, Seek};

use super::{Applier, BATCH_BYTES, Failed, What};
use crate::clean::plan::Contents;
use crate::home::room_unit::RoomUnit;
use crate::overlay::extents::{Piece, Source};

/// Who may read, write and run.
const RIGHTS: u32 = 0o777;

impl Applier<'_> {
    /// The order matters: first nothing old is left behind the cut; then holes, which give back the
    /// room that the bytes may want; bytes, and the end, which may lie behind the last of them.
    /// Of what lies behind its end a file keeps the room, whatever is punched there, so holes
    /// there come behind that. Ranges get room when no hole takes it away any more.
    pub(super) fn fill_file(
        &mut self,
        file: &dyn OpenFile,
        contents: &Contents,
    ) -> Result<(), Failed> {
        if let Some(cut_bytes) = contents.cut_bytes {
            self.does(What::Size(cut_bytes));
            cut(file, cut_bytes)?;
        }
        let Metadata { size_bytes, mode, .. } = file.metadata()?;
        self.narrow(file, contents, mode)?;
        let is_hole = |piece: &Piece| piece.source == Source::Hole;
        let (holes, others) = contents.extents.iter().partition::<Vec<_>, _>(is_hole);
        let is_within = |piece: &Piece| piece.offset + piece.bytes <= size_bytes;
        let unit = self.volume.space.unit;
        let holes = holes.iter().flat_map(|hole| in_blocks(hole, unit));
        let (within, behind) = holes.partition::<Vec<_>, _>(is_within);
        self.write_runs(file, &within)?;
        self.write_runs(file, &others)?;
        let end_bytes = contents.end_bytes();
        self.does(What::Size(end_bytes));
        if file.metadata()?.size_bytes < end_bytes {
            match contents.size_bytes == Some(end_bytes) {
                true => file.set_len(end_bytes)?,
                // Some file systems take the room behind the end from one that is made longer.
                false => file.write_all_at(&[0], end_bytes - 1)?,
            }
        }
        self.write_runs(file, &behind)?;
        self.reserve(file, contents)?;
        self.does(What::Attributes);
        if contents.change != Change::default() {
            file.change(&contents.change)?;
        }
        Ok(())
    }

    /// Takes rights away before bytes come that were written without them. Rights that are new come
    /// behind the bytes, which may take the place of others.
    fn narrow(&mut self, file: &dyn OpenFile, contents: &Contents, now: u32) -> Result<(), Failed> {
        let Some(mode) = contents.change.mode else { return Ok(()) };
        let is_narrower = now & RIGHTS & !mode != 0;
        if is_narrower && contents.extents.iter().next().is_some() {
            self.does(What::Attributes);
            file.change(&Change { mode: Some(now & mode), ..Change::default() })?;
        }
        Ok(())
    }

    /// Gives ranges room. One that was punched since has none where the home makes holes.
    fn reserve(&mut self, file: &dyn OpenFile, contents: &Contents) -> Result<(), Failed> {
        let gives_back = file.allocation()?.gives_back;
        let punched = contents.punched.iter().filter(|_| !gives_back);
        for Piece { offset, bytes, .. } in contents.reserved.iter().chain(punched) {
            self.does(What::Room(offset, bytes));
            match file.reserve(offset, bytes) {
                Err(error) if is_unknown(&error) => {
                    let end = contents.end_bytes().max(file.metadata()?.size_bytes);
                    self.fill_room(file, offset, end.min(offset + bytes))?;
                }
                reserved => reserved?,
            }
        }
        Ok(())
    }

    /// Gives a range room where the home has no call for that: what it has there is written once
    /// more. Behind the end of the file no room is kept.
    fn fill_room(&mut self, file: &dyn OpenFile, offset: u64, end: u64) -> io::Result<()> {
        let mut at = offset;
        while at < end {
            let part = (end - at).min(BATCH_BYTES as u64) as usize;
            self.batch.resize(part, 0);
            let found = file.read_full_at(&mut self.batch, at)?;
            self.batch[found..].fill(0);
            self.flush(file, at)?;
            at += part as u64;
        }
        Ok(())
    }

    /// Has a range read as zeros where the home has no call for that. What it has no data for does
    /// already, and gets none.
    fn fill_zeros(&mut self, file: &dyn OpenFile, offset: u64, bytes: u64) -> io::Result<()> {
        let (mut at, end) = (offset, offset + bytes);
        while let Some(data) = file.seek(at, Seek::Data)?.filter(|data| *data < end) {
            at = file.seek(data, Seek::Hole)?.unwrap_or(end).min(end);
            for from in (data..at).step_by(BATCH_BYTES) {
                self.batch.resize((at - from).min(BATCH_BYTES as u64) as usize, 0);
                self.flush(file, from)?;
            }
        }
        Ok(())
    }

    /// Writes neighbouring pieces as one, unless the home makes them itself.
    fn write_runs(&mut self, file: &dyn OpenFile, pieces: &[Piece]) -> Result<(), Failed> {
        let mut start = 0;
        let unit = self.volume.space.unit;
        for run in pieces.chunk_by(|piece, next| is_one_run(piece, next, unit)) {
            if self.makes_itself(file, run, start)? {
                let last = run[run.len() - 1];
                start = last.offset + last.bytes;
                continue;
            }
            for piece in run {
                start = self.add_piece(file, piece, start)?;
            }
        }
        Ok(self.flush(file, start)?)
    }

    /// Has the home make a run of pieces without bytes, if it can and they are worth it. What it
    /// refuses of a run is tried piece by piece, so that the record is known that is to blame.
    fn makes_itself(
        &mut self,
        file: &dyn OpenFile,
        run: &[Piece],
        start: u64,
    ) -> Result<bool, Failed> {
        let (first, bytes) = (run[0], run.iter().map(|piece| piece.bytes).sum::<u64>());
        if first.source == Source::Log
            || first.source == Source::Zeros && bytes <= BATCH_BYTES as u64
        {
            return Ok(false);
        }
        self.flush(file, start)?;
        self.does(What::Bytes(first.at));
        let made = match first.source {
            Source::Hole if is_in_blocks(&first, self.volume.space.unit) => {
                file.punch(first.offset, bytes)
            }
            Source::Hole => Err(io::ErrorKind::Unsupported.into()),
            _ => file.zero(first.offset, bytes),
        };
        match made {
            Ok(()) => Ok(true),
            Err(error) if is_unknown(&error) && first.source == Source::Zeros => Ok(false),
            Err(error) if is_unknown(&error) => {
                self.fill_zeros(file, first.offset, bytes)?;
                Ok(true)
            }
            Err(_) if run.len() > 1 => {
                self.write_one_by_one(file, run)?;
                Ok(true)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn write_one_by_one(&mut self, file: &dyn OpenFile, run: &[Piece]) -> Result<(), Failed> {
        for piece in run {
            if !self.makes_itself(file, std::slice::from_ref(piece), piece.offset)? {
                let start = self.add_piece(file, piece, piece.offset)?;
                self.flush(file, start)?;
            }
        }
        Ok(())
    }

    /// Adds a piece to the batch that begins at `start`. Returns where the batch begins now.
    fn add_piece(
        &mut self,
        file: &dyn OpenFile,
        piece: &Piece,
        mut start: u64,
    ) -> Result<u64, Failed> {
        let next = start + self.batch.len() as u64;
        let fits = self.batch.len() as u64 + piece.bytes <= BATCH_BYTES as u64;
        if piece.offset != next || !fits {
            self.flush(file, start)?;
            start = piece.offset;
        }
        if self.batch.is_empty() {
            self.does(What::Bytes(piece.at));
        }
        self.gather(file, piece, start)
    }

    /// Adds a piece to the batch; a piece larger than a batch is written in parts. Returns where
    /// the batch starts now.
    fn gather(&mut self, file: &dyn OpenFile, piece: &Piece, start: u64) -> Result<u64, Failed> {
        let (mut start, mut done) = (start, 0);
        while done < piece.bytes {
            let room = BATCH_BYTES - self.batch.len();
            let part = room.min(usize::try_from(piece.bytes - done).unwrap_or(room));
            let from = self.batch.len();
            self.batch.resize(from + part, 0);
            if piece.source == Source::Log {
                let at = piece.at.advance(done);
                self.volume.log.copy_bytes(at, &mut self.batch[from..])?;
            }
            done += part as u64;
            if self.batch.len() == BATCH_BYTES {
                self.flush(file, start)?;
                start = piece.offset + done;
            }
        }
        Ok(start)
    }

    /// Writes the batch at `start`.
    fn flush(&mut self, file: &dyn OpenFile, start: u64) -> io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        file.write_all_at(&self.batch, start)?;
        self.bytes += self.batch.len() as u64;
        self.batch.clear();
        Ok(())
    }
}

/// Ends the file here, without room behind that. Most file systems leave a file that grows what it
/// has there, and take it from one that is given the size that it has.
fn cut(file: &dyn OpenFile, size_bytes: u64) -> io::Result<()> {
    if file.metadata()?.size_bytes < size_bytes {
        file.set_len(size_bytes)?;
    }
    file.set_len(size_bytes)
}

/// True if the second piece goes on where the first ends, and neither has bytes. A hole in a part
/// of a block is zeros there: with its neighbour it would take the block's room.
fn is_one_run(piece: &Piece, next: &Piece, unit: RoomUnit) -> bool {
    let is_next = piece.offset + piece.bytes == next.offset;
    let is_alike = match piece.source {
        Source::Hole => is_in_blocks(piece, unit) == is_in_blocks(next, unit),
        _ => true,
    };
    is_next && is_alike && piece.source == next.source && piece.source != Source::Log
}

/// A hole as those blocks of it that are whole, and what it has of others.
fn in_blocks(hole: &Piece, unit: RoomUnit) -> impl Iterator<Item = Piece> {
    let (from, to) = (hole.offset, hole.offset + hole.bytes);
    let (first, last) = unit.whole_blocks(hole.offset, hole.bytes);
    let (first, last) = if first < last { (first, last) } else { (to, to) };
    let parts = [(from, first), (first, last), (last, to)].into_iter();
    let piece = |(offset, end)| Piece { offset, bytes: end - offset, ..*hole };
    parts.filter(|(offset, end)| offset < end).map(piece)
}

/// True if it is whole blocks.
fn is_in_blocks(piece: &Piece, unit: RoomUnit) -> bool {
    let end = piece.offset + piece.bytes;
    piece.offset.is_multiple_of(unit.bytes()) && end.is_multiple_of(unit.bytes())
}

/// True if the home has no call for what was asked.
fn is_unknown(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported
}
