//! What a restart knows.
//!
//! Promise: the state where the log ends, and every record that the archive has not, from a base
//! and the log alone; nothing is written, so a restart that is cut short is as if it had not been.
//! Never: applies a record to a page, or undoes anything.
//!
//! Records are taken one by one up to where the first difference begins that lies behind the
//! archive, between differences, and behind the last one. Without any difference the result is the
//! same, later.

use holdfast_log::{CommitLog, Frame};

use crate::archive::fresh::Fresh;
use crate::error::AnalysisError;
use crate::restart::analysis_state::State;
use crate::restart::checkpoint::{Difference, SURVEY};
use crate::stream::frame::Framed;
use crate::stream::frame_index::FramePlace;
use crate::stream::record::What;
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

/// What a restart knows.
#[derive(Debug)]
pub struct Analysis {
    /// What all records come to. Its last mark is where a difference ends that is in the log, or
    /// the base; what is between, if anything, is taken one by one the next time.
    pub state: State,
    /// What the records come to that the archive has; none if the base was further on.
    pub archived: Option<State>,
    /// The records that the archive has not.
    pub fresh: Fresh,
    /// Every frame in the log.
    pub frames: Vec<FramePlace>,
    /// How many bytes of records were read.
    pub read_bytes: u64,
    /// How many records were taken one by one.
    pub records_folded: u64,
}

/// Reads the log of a store whose newest base says `base`, and whose archive has every record
/// before `archived`.
///
/// # Errors
/// See [`AnalysisError`].
pub fn analyse(
    log: &dyn CommitLog,
    tag: Tag,
    base: State,
    archived: Rsn,
) -> Result<Analysis, AnalysisError> {
    let needed = archived.min(base.at());
    let least = archived.max(base.at());
    let mut analysis = Analysis::from(base, needed);
    let (marks, mut taken) = (log.marks(), Ok(()));
    log.read(marks.released, marks.tail, &mut |frame| {
        taken = analysis.take(frame, tag, archived);
        taken.is_ok()
    })
    .map_err(AnalysisError::Log)?;
    taken?;
    let end = analysis.fresh.end();
    if let Some(last) = analysis.frames.last().filter(|last| last.end < least) {
        return Err(AnalysisError::Older { end: last.end, need: least });
    }
    if end < least {
        return Err(AnalysisError::Gap { have: end, need: least });
    }
    analysis.fold_past(archived, end)?;
    analysis.fresh.forget_below(archived);
    Ok(analysis)
}

impl Analysis {
    fn from(base: State, needed: Rsn) -> Analysis {
        let (fresh, frames) = (Fresh::new(needed), Vec::new());
        Analysis { state: base, archived: None, fresh, frames, read_bytes: 0, records_folded: 0 }
    }

    fn take(&mut self, frame: &Frame<'_>, tag: Tag, archived: Rsn) -> Result<(), AnalysisError> {
        let lsn = frame.header.lsn;
        let of_frame = |fault| AnalysisError::Frame { lsn, fault };
        let framed = Framed::parse(frame.payload, tag).map_err(of_frame)?;
        if let Some(before) = self.frames.last() {
            framed.follows(before.end).map_err(of_frame)?;
        }
        let (first, end) = (framed.first(), framed.end());
        let (lsn_end, utc_ns) = (frame.end(), frame.header.utc_ns);
        let place = FramePlace { first, end, lsn, lsn_end, utc_ns };
        self.frames.push(place);
        if end <= self.fresh.end() {
            return Ok(());
        }
        if first != self.fresh.end() {
            return Err(AnalysisError::Gap { have: first, need: self.fresh.end() });
        }
        self.look(&framed, archived)?;
        self.fresh.push(framed.bytes(), &[place]);
        self.read_bytes += framed.bytes().len() as u64;
        Ok(())
    }

    /// Parses every record of a frame, and applies the differences behind the archive's end.
    fn look(&mut self, framed: &Framed<'_>, archived: Rsn) -> Result<(), AnalysisError> {
        let mut rsn = framed.first();
        for record in framed.records() {
            let record = record.map_err(|fault| AnalysisError::Record { rsn, fault })?;
            if let What::Checkpoint(bytes) = record.what
                && bytes.first() != Some(&SURVEY)
            {
                let of_checkpoint = |fault| AnalysisError::Checkpoint { rsn, fault };
                let difference = Difference::parse(bytes).map_err(of_checkpoint)?;
                let from = difference.from();
                let is_ahead = self.state.at().max(archived) <= from;
                if is_ahead && from <= self.fresh.end() && difference.at() <= rsn {
                    self.fold_past(archived, from)?;
                    self.state.mark();
                    self.state.apply(&difference).map_err(of_checkpoint)?;
                }
            }
            rsn = record.end;
        }
        Ok(())
    }

    /// Takes the records up to `upto`, at or behind the archive's end, and keeps the state there.
    fn fold_past(&mut self, archived: Rsn, upto: Rsn) -> Result<(), AnalysisError> {
        if self.archived.is_none() && self.state.at() <= archived {
            self.fold(archived)?;
            self.archived = Some(self.state.clone());
        }
        self.fold(upto)
    }

    /// Takes the records up to here one by one, unless the state is further on.
    fn fold(&mut self, upto: Rsn) -> Result<(), AnalysisError> {
        for record in self.fresh.records(self.state.at(), upto) {
            let of_record = |fault| AnalysisError::Fold { rsn: record.rsn, fault };
            self.state.take(&record).map_err(of_record)?;
            self.records_folded += 1;
        }
        Ok(())
    }
}
