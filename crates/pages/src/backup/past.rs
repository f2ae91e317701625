//! The past of a store: which moment is meant, and what there was to know then.
//!
//! Promise: what is found is the end of a frame of a run that is whole; the state there is what a
//! fold of all records before it gives.
//! Never: reads a page; writes.

use std::sync::Arc;

use crate::archive::Archive;
use crate::archive::run_reader::Run;
use crate::backup::moment::{At, Moment};
use crate::error::RestoreError;
use crate::restart::analysis_state::State;
use crate::stream::record::parse;
use crate::stream::rsn::{PageNumber, Rsn};

/// Records are put back into their order in stretches of this length, so that memory for that is
/// bounded, however wide a run is.
const STRETCH_BYTES: u64 = 64 << 20;

impl At {
    /// The moment that is meant, not before `least`, and not within a run that is not whole.
    pub(crate) fn moment(self, archive: &Archive, least: Rsn) -> Result<Moment, RestoreError> {
        let trimmed = archive.runs().iter().rfind(|run| run.is_trimmed());
        let least = trimmed.map_or(least, |run| least.max(run.span().end));
        let mut search = Search { at: self, least, oldest: None, found: None, newest: None };
        for run in archive.runs().iter().filter(|run| run.span().end >= least) {
            let frames = run.frames()?;
            if archive.begin() == Some(run.span().begin) {
                frames.first().into_iter().for_each(|frame| search.look(Moment::begin_of(frame)));
            }
            frames.iter().for_each(|frame| search.look(Moment::end_of(frame)));
        }
        search.end()
    }
}

/// A look at all moments, the oldest first.
struct Search {
    at: At,
    least: Rsn,
    oldest: Option<Moment>,
    /// The last one before any that is too late.
    found: Option<Moment>,
    newest: Option<Moment>,
}

impl Search {
    fn look(&mut self, moment: Moment) {
        if moment.rsn < self.least {
            return;
        }
        if self.found == self.newest && self.at.has(moment) {
            self.found = Some(moment);
        }
        self.newest = Some(moment);
        self.oldest.get_or_insert(moment);
    }

    fn end(self) -> Result<Moment, RestoreError> {
        let Search { oldest: Some(oldest), newest: Some(newest), .. } = self else {
            return Err(RestoreError::Nothing);
        };
        let found = self.found.filter(|_| !self.at.is_behind(newest));
        found.ok_or(RestoreError::Outside { oldest, newest })
    }
}

/// What there was to know at a place of an archive, where a frame ends that is not within a trimmed
/// run.
pub(crate) fn state_at(archive: &Archive, at: Rsn) -> Result<State, RestoreError> {
    let runs = archive.runs();
    let Some(run) = runs.iter().rev().find(|run| run.span().begin <= at) else {
        return Ok(State::new());
    };
    let mut state = State::parse(&run.state()?).map_err(RestoreError::State)?;
    // Behind where the run begins, if its records do not lead there.
    let mut from = state.at();
    while from < at {
        let to = Rsn(at.get().min(from.get() + STRETCH_BYTES));
        fold(run, from, to, &mut state)?;
        from = to;
    }
    state.skip_to(at);
    Ok(state)
}

/// Takes the records of a run that stand from `from` up to `to`, in their order.
fn fold(run: &Arc<Run>, from: Rsn, to: Rsn, state: &mut State) -> Result<(), RestoreError> {
    let (mut bytes, mut records, mut scan) = (Vec::new(), Vec::new(), run.scan(PageNumber(1))?);
    while let Some(entry) = scan.current() {
        if from <= entry.rsn && entry.rsn < to {
            records.push((entry.rsn, bytes.len()));
            bytes.extend_from_slice(entry.bytes);
        }
        scan.advance()?;
    }
    records.sort_unstable();
    for (rsn, at) in records {
        let record = parse(rsn, &bytes[at..]).expect("a scan parses what it finds");
        // Checkpoints are left out of runs, and change nothing.
        state.skip_to(rsn);
        state.take(&record).map_err(RestoreError::Fold)?;
    }
    Ok(())
}
