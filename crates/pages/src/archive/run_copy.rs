//! A run, copied into another directory, whole or up to a place.
//!
//! Promise: everything that is read is checked, so no damage is copied.
//! Never: changes the run.

use std::sync::Arc;

use holdfast_io::Files;

use crate::archive::run::RunWriter;
use crate::archive::run_reader::Run;
use crate::error::RestoreError;
use crate::stream::frame_index::FramePlace;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// Writes the records of a run that stand before `upto`, where a frame ends, into a run in another
/// directory that begins with this state. Everything that is read is checked.
pub(crate) fn copy_run(
    run: &Arc<Run>,
    upto: Rsn,
    state: &[u8],
    to: &Arc<dyn Files>,
    tag: Tag,
) -> Result<(), RestoreError> {
    let mut span = run.span();
    span.end = span.end.min(upto);
    let mut copy = RunWriter::begin(Arc::clone(to), tag, span)?;
    if run.is_trimmed() {
        copy.trim();
    }
    let mut scan = run.scan(PageNumber(1))?;
    while let Some(entry) = scan.current() {
        if entry.rsn < span.end {
            copy.push(entry.page, entry.rsn, entry.bytes)?;
        }
        scan.advance()?;
    }
    let frames = run.frames()?.into_iter().filter(|frame| frame.first < span.end);
    Ok(copy.finish(state, &frames.collect::<Vec<FramePlace>>())?)
}
