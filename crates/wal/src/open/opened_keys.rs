//! Whether the keys of a ring are those that sealed the sets of a log.
//!
//! Promise: a key under whose id another one sealed a set that is still needed is told, with its
//! id, before the log takes a set, wherever in the log that set lies. Where frames are damaged, the
//! next segment is looked at.
//! Never: says that a key is missing, or that a set is damaged: whoever reads it is told that.
//!
//! The key of a log changes with an opening alone, and an opening begins a generation: so the sets
//! of a generation have one key, and one of them is looked at. Where a segment begins in the
//! generation that the next one begins in, so are all frames between, and it is passed over. The
//! label knows the key that the log was made with.

use std::sync::Arc;

use holdfast_log::{Log, Lsn};

use crate::error::ReplayError;
use crate::wrapping::{Opener, Wrapping};

/// A look at the sets of a log.
struct Look<'a> {
    log: &'a Arc<Log>,
    opener: Opener,
    made_with: u32,
}

/// The id of a key that is another one than the one which sealed sets under it.
pub(crate) fn wrong(log: &Arc<Log>, wrapping: &Wrapping) -> Option<u32> {
    let made_with = wrapping.made_with_one_of_several()?;
    let mut look = Look { log, opener: Opener::new(wrapping), made_with };
    let (mut from, durable) = (log.first(), log.marks().durable);
    while from < durable {
        let next = log.segment_start(log.segment_number(from) + 1);
        if let Some(id) = look.segment(from, next.min(durable)) {
            return Some(id);
        }
        from = next;
    }
    None
}

impl Look<'_> {
    /// The id of a key that is wrong for a set from there up to where another segment begins, or
    /// the log ends.
    fn segment(&mut self, from: Lsn, next: Lsn) -> Option<u32> {
        let (mut generation, last) = (None, self.generation_at(next));
        let mut frames = self.log.cursor(from);
        // Whoever reads that is told why it goes no further.
        while let Ok(Some(frame)) = frames.next_frame() {
            if frame.header.lsn >= next {
                break;
            }
            if generation.replace(frame.header.generation) == Some(frame.header.generation) {
                continue;
            }
            match self.opener.open(self.log, &frame) {
                Err(ReplayError::WrongKey { id, .. }) if id != self.made_with => return Some(id),
                _ if generation == last => break,
                _ => {}
            }
        }
        None
    }

    /// The generation of the first set from there on, or of the last one before the end.
    fn generation_at(&self, at: Lsn) -> Option<u32> {
        let durable = self.log.marks().durable;
        let (mut frames, mut back) = (self.log.cursor(at), self.log.back_cursor(durable));
        let frame = if at < durable { frames.next_frame() } else { back.next_frame() };
        frame.ok().flatten().map(|frame| frame.header.generation)
    }
}
