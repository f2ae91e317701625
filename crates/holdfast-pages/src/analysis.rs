//! What a restart knows.
//!
//! Promise: the state where the log ends, and every record that the archive has not, from a base
//! and the log alone; nothing is written, so a restart that is cut short is as if it had not been.
//! Never: applies a record to a page, or undoes anything.
//!
//! Records are taken one by one only from where the last difference ends that can be reached from
//! the base. Without any difference the result is the same, later.

use holdfast_log::{CommitLog, Frame};

use crate::checkpoint::Difference;
use crate::error::AnalysisError;
use crate::fold::State;
use crate::frame::Framed;
use crate::fresh::Fresh;
use crate::places::FramePlace;
use crate::record::What;
use crate::rsn::Rsn;
use crate::tag::Tag;

/// What a restart knows.
#[derive(Debug)]
pub struct Analysis {
    /// What all records come to. Its last mark is where a difference ends that is in the log, or
    /// the base.
    pub state: State,
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
    let (fresh, frames) = (Fresh::new(needed), Vec::new());
    let mut analysis = Analysis { state: base, fresh, frames, read_bytes: 0, records_folded: 0 };
    let (marks, mut taken) = (log.marks(), Ok(()));
    log.read(marks.released, marks.tail, &mut |frame| {
        taken = analysis.take(frame, tag);
        taken.is_ok()
    })
    .map_err(AnalysisError::Log)?;
    taken?;
    let end = analysis.fresh.end();
    if end < least {
        return Err(AnalysisError::Gap { have: end, need: least });
    }
    analysis.fold()?;
    analysis.fresh.forget_below(archived);
    Ok(analysis)
}

impl Analysis {
    fn take(&mut self, frame: &Frame<'_>, tag: Tag) -> Result<(), AnalysisError> {
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
        self.look(&framed)?;
        self.fresh.push(framed.bytes(), &[place]);
        self.read_bytes += framed.bytes().len() as u64;
        Ok(())
    }

    /// Parses every record of a frame, and applies the differences that go on from here.
    fn look(&mut self, framed: &Framed<'_>) -> Result<(), AnalysisError> {
        let mut rsn = framed.first();
        for record in framed.records() {
            let record = record.map_err(|fault| AnalysisError::Record { rsn, fault })?;
            if let What::Checkpoint(bytes) = record.what {
                let of_checkpoint = |fault| AnalysisError::Checkpoint { rsn, fault };
                let difference = Difference::parse(bytes).map_err(of_checkpoint)?;
                if self.state.at() == difference.from() && difference.at() <= rsn {
                    self.state.apply(&difference).map_err(of_checkpoint)?;
                }
            }
            rsn = record.end;
        }
        Ok(())
    }

    fn fold(&mut self) -> Result<(), AnalysisError> {
        for record in self.fresh.records(self.state.at(), self.fresh.end()) {
            let of_record = |fault| AnalysisError::Fold { rsn: record.rsn, fault };
            self.state.take(&record).map_err(of_record)?;
            self.records_folded += 1;
        }
        Ok(())
    }
}
