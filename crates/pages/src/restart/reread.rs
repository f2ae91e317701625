//! Checkpoints by reading the log again. For comparison with those of the follower alone, whose
//! records they are equal to.
//!
//! Promise: nothing is kept between two checkpoints but the state of the last one.
//! Never: follows the stream, or asks anybody who does.

use std::sync::{Arc, Mutex};

use crate::error::RereadError;
use crate::restart::analysis_state::State;
use crate::restart::follower::put_difference;
use crate::stream::Stream;
use crate::stream::frame::Framed;
use crate::stream::rsn::Rsn;

/// Who reads the stream of one store again. All calls may come from any thread.
pub struct Rereader {
    stream: Arc<Stream>,
    last: Mutex<State>,
}

impl Rereader {
    /// Goes on where a restart has got to. What is behind that must not be released before a
    /// checkpoint has read it.
    #[must_use]
    pub fn new(stream: Arc<Stream>, state: State) -> Rereader {
        Rereader { stream, last: Mutex::new(state) }
    }

    /// As [`crate::Follower::checkpoint`].
    ///
    /// # Errors
    /// See [`RereadError`].
    pub fn checkpoint(&self) -> Result<Option<Rsn>, RereadError> {
        let mut state = self.last.lock().expect("nobody panics who reads");
        self.read(&mut state)?;
        Ok(put_difference(&self.stream, &mut state, &mut Vec::new())?)
    }

    /// Reads what is not going to be there any more, if it has not read that before.
    pub(crate) fn catch_up(&self, upto: Rsn) -> Result<(), RereadError> {
        let mut state = self.last.lock().expect("nobody panics who reads");
        if state.at() < upto { self.read(&mut state) } else { Ok(()) }
    }

    fn read(&self, state: &mut State) -> Result<(), RereadError> {
        self.stream.read_from(state.at(), &mut |framed| fold(state, framed))
    }
}

/// Takes the records of a frame that were not taken before.
fn fold(state: &mut State, framed: &Framed<'_>) -> Result<(), RereadError> {
    for record in framed.records() {
        let record = record.map_err(RereadError::Record)?;
        if record.rsn >= state.at() {
            state.take(&record).map_err(RereadError::Fold)?;
        }
    }
    Ok(())
}

impl std::fmt::Debug for Rereader {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Rereader").field("stream", &self.stream).finish_non_exhaustive()
    }
}
