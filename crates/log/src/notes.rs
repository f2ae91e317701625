//! The region's roster, shared by a log's reader and a server that has the log for others.
//!
//! Promise: each finds its own notes, in the order in which they were made, whichever of them was
//! there without the other before.
//! Never: knows what a note says.

use crate::error::NoteError;
use crate::state::Log;

/// Whose a note is. Its first byte in the roster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Noter {
    /// The log's reader.
    Reader = 0,
    /// The process that has the log for its reader.
    Server = 1,
}

impl Noter {
    fn tag(self, note: &[u8]) -> Vec<u8> {
        let mut tagged = Vec::with_capacity(1 + note.len());
        tagged.push(self as u8);
        tagged.extend_from_slice(note);
        tagged
    }
}

impl Log {
    /// Adds a note behind the others.
    ///
    /// # Errors
    /// [`NoteError::Full`]: replace the notes by those that are still needed.
    pub fn note_of(&self, noter: Noter, note: &[u8]) -> Result<(), NoteError> {
        self.region.roster().append(&noter.tag(note)).map_err(|_| NoteError::Full)
    }

    /// All notes of one.
    ///
    /// # Errors
    /// [`NoteError::Damaged`].
    pub fn notes_of(&self, noter: Noter) -> Result<Vec<Vec<u8>>, NoteError> {
        let records = self.region.roster().records();
        let records = records.map_err(|fault| NoteError::Damaged { offset: fault.offset })?;
        let own = |record: Vec<u8>| match record.split_first() {
            Some((tag, note)) if *tag == noter as u8 => Some(note.to_vec()),
            _ => None,
        };
        Ok(records.into_iter().filter_map(own).collect())
    }

    /// Replaces all notes of both in one step; if they do not fit, the old ones stay.
    ///
    /// # Errors
    /// [`NoteError::Full`].
    pub fn replace_notes_of_all(
        &self,
        notes: impl Iterator<Item = (Noter, Vec<u8>)>,
    ) -> Result<(), NoteError> {
        let tagged = notes.map(|(noter, note)| noter.tag(&note));
        self.region.roster().rewrite(tagged).map_err(|_| NoteError::Full)
    }
}
