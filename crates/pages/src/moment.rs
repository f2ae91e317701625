//! Moments in the past of a store, and what there was to know then.
//!
//! Promise: a moment is the end of a frame, so no group of records is cut; the state there is what
//! a fold of all records before it gives.
//! Never: reads a page; writes.

use std::sync::Arc;

use holdfast_log::Lsn;

use crate::archive::Archive;
use crate::error::RestoreError;
use crate::fold::State;
use crate::places::FramePlace;
use crate::record::parse;
use crate::rsn::{PageNumber, Rsn};
use crate::run_reader::Run;

/// Records are put back into their order in stretches of this length, so that memory for that is
/// bounded, however wide a run is.
const STRETCH_BYTES: u64 = 64 << 20;

/// Which moment is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The end of all records that there are.
    End,
    /// The last one that has no record at this place or behind it.
    Rsn(Rsn),
    /// The last one whose frames lie before this position of the log. The log of a store that was
    /// restored begins anew: what is behind that has a place or a time, but no such position.
    Lsn(Lsn),
    /// The last one before a frame that was made later than this, in nanoseconds since 1970, UTC.
    /// Frames are known to the millisecond.
    Time(i64),
}

/// The end of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Where the first record behind it stands.
    pub rsn: Rsn,
    /// Where the next frame lies at the earliest.
    pub lsn: Lsn,
    /// When the frame was made, in nanoseconds since 1970, UTC.
    pub utc_ns: i64,
}

impl Moment {
    fn begin_of(frame: &FramePlace) -> Moment {
        Moment { rsn: frame.first, lsn: frame.lsn, utc_ns: frame.utc_ns }
    }

    fn end_of(frame: &FramePlace) -> Moment {
        Moment { rsn: frame.end, lsn: frame.lsn_end, utc_ns: frame.utc_ns }
    }
}

impl At {
    /// Whether this is behind all that there is, which ends so.
    fn is_behind(self, end: Moment) -> bool {
        match self {
            At::End => false,
            At::Rsn(rsn) => rsn > end.rsn,
            At::Lsn(lsn) => lsn > end.lsn,
            At::Time(utc_ns) => utc_ns > end.utc_ns,
        }
    }

    /// Whether a moment is not behind this.
    fn has(self, moment: Moment) -> bool {
        match self {
            At::End => true,
            At::Rsn(rsn) => moment.rsn <= rsn,
            At::Lsn(lsn) => moment.lsn <= lsn,
            At::Time(utc_ns) => moment.utc_ns <= utc_ns,
        }
    }

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
