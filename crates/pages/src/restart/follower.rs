//! Follows the stream: what is stable becomes fresh records, and a state.
//!
//! Promise: whoever has caught up finds every record before that place fresh or archived, and noted
//! in the stale table; a checkpoint takes no latch, no lock and no sync, and asks nobody else.
//! Never: flushes, so that anybody may catch up who holds a latch; reads the log.

use std::sync::{Arc, Mutex, MutexGuard};

use crate::archive::fresh::Fresh;
use crate::error::{CheckpointError, FollowError, StageError};
use crate::restart::analysis_state::State;
use crate::restart::stale::Stale;
use crate::stream::record::{Records, What};
use crate::stream::rsn::{PageNumber, Rsn, Slot};
use crate::stream::{Feed, Stream};

/// Transactions that have changed something and not ended, each with the bodies of what it has not
/// undone, oldest first.
pub type Running = Vec<(Slot, Vec<Vec<u8>>)>;

/// Who follows the stream of one store. All calls may come from any thread.
pub struct Follower {
    stream: Arc<Stream>,
    stale: Arc<Stale>,
    fresh: Mutex<Fresh>,
    following: Mutex<Following>,
}

struct Following {
    state: State,
    feed: Feed,
    /// Pages with records in the feed, each once.
    fed: Vec<PageNumber>,
    difference: Vec<u8>,
}

impl Follower {
    /// Goes on where a restart has got to, and notes what that found stale.
    ///
    /// # Panics
    /// If state and records do not end where the stream goes on.
    #[must_use]
    pub fn new(stream: Arc<Stream>, stale: Arc<Stale>, state: State, fresh: Fresh) -> Follower {
        assert!(state.at() == fresh.end(), "state and records end together");
        assert!(state.at() == stream.stable(), "the stream goes on where they end");
        state.stale().for_each(|(page, last)| stale.raise(page, last));
        let (feed, fed, difference) = Default::default();
        let following = Following { state, feed, fed, difference };
        let (fresh, following) = (Mutex::new(fresh), Mutex::new(following));
        Follower { stream, stale, fresh, following }
    }

    /// Takes what has become stable. True if there was something.
    ///
    /// # Errors
    /// See [`FollowError`].
    pub fn step(&self) -> Result<bool, FollowError> {
        self.take(&mut self.following())
    }

    /// Returns when every record before `upto` was taken, which must be stable.
    ///
    /// # Errors
    /// See [`FollowError`].
    ///
    /// # Panics
    /// If it is not.
    pub fn catch_up(&self, upto: Rsn) -> Result<(), FollowError> {
        assert!(upto <= self.stream.stable(), "only what is stable can be followed");
        let mut following = self.following();
        if following.state.at() < upto {
            self.take(&mut following)?;
        }
        Ok(())
    }

    /// The records that are fresh at this moment. Who also wants the archive takes that after
    /// these, so that no record is in between.
    #[must_use]
    pub fn fresh(&self) -> Fresh {
        self.lock_fresh().clone()
    }

    /// The first page of which no record was taken.
    pub(crate) fn next_page(&self) -> PageNumber {
        self.following().state.next_page()
    }

    /// Forgets the records before this place, which the archive has and shows everybody.
    pub fn forget_below(&self, archived: Rsn) {
        self.lock_fresh().forget_below(archived);
    }

    /// Puts into the stream what changed since the last checkpoint, and returns up to where that
    /// tells; none if it would tell nothing, or is too long, in which case a base says it shorter.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn checkpoint(&self) -> Result<Option<Rsn>, CheckpointError> {
        let mut following = self.following();
        self.take(&mut following)?;
        Ok(self.put_difference(&mut following)?)
    }

    /// Takes what has become stable, and returns where that ends and which transactions run there.
    ///
    /// # Errors
    /// See [`FollowError`].
    pub fn running(&self) -> Result<(Rsn, Running), FollowError> {
        let mut following = self.following();
        self.take(&mut following)?;
        let state = &following.state;
        let running = state.running().map(|(slot, bodies)| (slot, bodies.map(Vec::from).collect()));
        Ok((state.at(), running.collect()))
    }

    fn take(&self, following: &mut Following) -> Result<bool, FollowError> {
        self.stream.take_feed(&mut following.feed);
        let Some(first) = following.feed.frames.first() else { return Ok(false) };
        let first = first.first;
        // First: whoever learns of a record from the stale table finds it here.
        self.lock_fresh().push(&following.feed.bytes, &following.feed.frames);
        let folded = following.fold(first);
        // Once a page: noting is dear, and most records are of pages that have many.
        for page in following.fed.drain(..) {
            self.stale.raise(page, following.state.last(page));
        }
        folded.map(|()| true)
    }

    fn put_difference(&self, following: &mut Following) -> Result<Option<Rsn>, StageError> {
        let Following { state, difference, .. } = following;
        put_difference(&self.stream, state, difference)
    }

    fn following(&self) -> MutexGuard<'_, Following> {
        self.following.lock().expect("nobody panics who follows")
    }

    fn lock_fresh(&self) -> MutexGuard<'_, Fresh> {
        self.fresh.lock().expect("nothing panics with fresh records")
    }
}

impl Following {
    /// Takes the records of the feed, the first of which stands at `first`.
    fn fold(&mut self, first: Rsn) -> Result<(), FollowError> {
        let Following { state, feed, fed, .. } = self;
        for record in Records::new(first, &feed.bytes) {
            let record = record.map_err(FollowError::Record)?;
            let page = record.what.link().map(|link| link.page);
            let is_first = page.filter(|page| state.last(*page) < first);
            state.take(&record).map_err(FollowError::Fold)?;
            fed.extend(is_first);
        }
        Ok(())
    }
}

/// Puts into the stream what changed since the last mark, which moves then. `scratch` is only to
/// save an allocation.
pub(crate) fn put_difference(
    stream: &Stream,
    state: &mut State,
    scratch: &mut Vec<u8>,
) -> Result<Option<Rsn>, StageError> {
    scratch.clear();
    if !state.is_as_marked() {
        state.put_difference(scratch);
    }
    if scratch.is_empty() || scratch.len() as u64 > stream.group_bytes_max() / 4 {
        return Ok(None);
    }
    let what = What::Checkpoint(scratch);
    stream.append(&mut |group| {
        group.put(&what);
    })?;
    state.mark();
    Ok(Some(state.at()))
}

impl std::fmt::Debug for Follower {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Follower").field("stream", &self.stream).finish_non_exhaustive()
    }
}
