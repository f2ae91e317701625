//! Makes one wide run of many narrow ones, so that a page's records are in few places.
//!
//! Promise: the wide run has every record of those that it replaces, was read back before they go,
//! and takes their place at once; who reads them meanwhile keeps them.
//! Never: waits for anybody; removes a run whose records are nowhere else.

use std::path::Path;
use std::sync::{Arc, Mutex};

use holdfast_io::Files;

use crate::error::{MergeError, RunFault, RunPart};
use crate::merged::Merged;
use crate::places::FramePlace;
use crate::rsn::{PageNumber, Rsn};
use crate::run::RunWriter;
use crate::run_format::RunSpan;
use crate::run_reader::{Run, RunScan};
use crate::tag::Tag;
use crate::view::Views;

/// How many runs of a level become one of the next. More would leave more places to look at, fewer
/// would write every record more often.
const RUNS: usize = 16;
/// A step reads about so much, so that whoever makes it has time for other things soon.
const STEP_BYTES: usize = 1 << 20;

/// Who merges the runs of one store. All calls may come from any thread.
pub(crate) struct Merger {
    /// The directory of the archive.
    files: Arc<dyn Files>,
    tag: Tag,
    views: Arc<Views>,
    merging: Mutex<Option<Merging>>,
}

/// A merge that has begun.
struct Merging {
    inputs: Vec<Arc<Run>>,
    span: RunSpan,
    stage: Stage,
}

enum Stage {
    Writing(Box<RunWriter<Arc<dyn Files>>>, Merged),
    /// What was written, and is read back, beside what it was written from.
    Reading(Arc<Run>, RunScan, Merged),
}

impl Merger {
    /// Who merges the runs in the directory that `files` has.
    pub(crate) fn new(files: Arc<dyn Files>, tag: Tag, views: Arc<Views>) -> Merger {
        Merger { files, tag, views, merging: Mutex::default() }
    }

    /// Goes on with a merge, or begins one if there are enough runs. True if there was something to
    /// do.
    ///
    /// # Errors
    /// See [`MergeError`]; the next step begins the merge anew.
    pub(crate) fn step(&self) -> Result<bool, MergeError> {
        let mut merging = self.merging.lock().expect("nobody panics who merges");
        let going = match merging.take() {
            None => self.begin()?,
            going => going,
        };
        let Some(going) = going else { return Ok(false) };
        *merging = self.go_on(going)?;
        Ok(true)
    }

    fn begin(&self) -> Result<Option<Merging>, MergeError> {
        let archive = self.views.archive();
        let level_of = |run: &Arc<Run>| run.span().level;
        let alike = archive.runs().windows(RUNS);
        let alike = alike.filter(|runs| runs.iter().all(|run| level_of(run) == level_of(&runs[0])));
        let Some(inputs) = alike.min_by_key(|runs| level_of(&runs[0])) else { return Ok(None) };
        let (first, last) = (inputs[0].span(), inputs[RUNS - 1].span());
        let span = RunSpan { level: first.level + 1, begin: first.begin, end: last.end };
        let writer = RunWriter::begin(Arc::clone(&self.files), self.tag, span);
        let writer = Box::new(writer.map_err(MergeError::Write)?);
        let stage = Stage::Writing(writer, all_of(inputs)?);
        Ok(Some(Merging { inputs: inputs.to_vec(), span, stage }))
    }

    /// What is left of the merge; none if it is done.
    fn go_on(&self, merging: Merging) -> Result<Option<Merging>, MergeError> {
        let Merging { inputs, span, stage } = merging;
        let stage = match stage {
            Stage::Writing(writer, records) => self.write(writer, records, &inputs, span)?,
            Stage::Reading(run, scan, records) => match self.read_back(run, scan, records)? {
                Some(stage) => stage,
                None => {
                    self.remove(&inputs)?;
                    return Ok(None);
                }
            },
        };
        Ok(Some(Merging { inputs, span, stage }))
    }

    fn write(
        &self,
        mut writer: Box<RunWriter<Arc<dyn Files>>>,
        mut records: Merged,
        inputs: &[Arc<Run>],
        span: RunSpan,
    ) -> Result<Stage, MergeError> {
        let mut bytes = 0;
        while let Some(entry) = records.current() {
            writer.push(entry.page, entry.rsn, entry.bytes).map_err(MergeError::Write)?;
            bytes += entry.bytes.len();
            records.advance()?;
            if bytes >= STEP_BYTES {
                return Ok(Stage::Writing(writer, records));
            }
        }
        let frames = inputs.iter().map(|run| run.frames()).collect::<Result<Vec<_>, _>>()?;
        let frames: Vec<FramePlace> = frames.into_iter().flatten().collect();
        writer.finish(&inputs[0].state()?, &frames).map_err(MergeError::Write)?;
        let run = Run::open(&*self.files, span, self.tag).map_err(MergeError::Reread)?;
        let (run, records) = (Arc::new(run), all_of(inputs)?);
        let scan = run.scan(PageNumber(1)).map_err(|fault| self.discard(span, fault))?;
        Ok(Stage::Reading(run, scan, records))
    }

    /// Compares what was written with what it was written from, and shows it once that is the same.
    fn read_back(
        &self,
        run: Arc<Run>,
        mut scan: RunScan,
        mut records: Merged,
    ) -> Result<Option<Stage>, MergeError> {
        let (span, mut bytes) = (run.span(), 0);
        while let Some(wanted) = records.current() {
            if scan.current() != Some(wanted) {
                return Err(self.discard(span, RunFault::Damaged(RunPart::Entry)));
            }
            bytes += wanted.bytes.len();
            records.advance()?;
            scan.advance().map_err(|fault| self.discard(span, fault))?;
            if bytes >= STEP_BYTES {
                return Ok(Some(Stage::Reading(run, scan, records)));
            }
        }
        if scan.current().is_some() {
            return Err(self.discard(span, RunFault::Damaged(RunPart::Entry)));
        }
        run.state().map_err(|fault| self.discard(span, fault))?;
        run.frames().map_err(|fault| self.discard(span, fault))?;
        self.views.show(run);
        Ok(None)
    }

    /// Takes the name from a run that is not what was written: the next opening would take it for
    /// those that it was to replace.
    fn discard(&self, span: RunSpan, fault: RunFault) -> MergeError {
        let removed = self.files.remove_file(&span.path());
        match removed.and_then(|()| self.files.sync_dir(Path::new(""))) {
            Ok(()) => MergeError::Reread(fault),
            Err(error) => MergeError::Write(error),
        }
    }

    /// Removes runs that nobody sees any more. What is left of them after a crash goes when the
    /// archive is opened.
    fn remove(&self, inputs: &[Arc<Run>]) -> Result<(), MergeError> {
        let removed = inputs.iter().try_for_each(|run| self.files.remove_file(&run.span().path()));
        removed.map_err(MergeError::Write)
    }
}

/// All records of these runs.
fn all_of(runs: &[Arc<Run>]) -> Result<Merged, RunFault> {
    Merged::new(runs, PageNumber(1), Rsn::FIRST)
}

impl std::fmt::Debug for Merger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Merger").field("views", &self.views).finish_non_exhaustive()
    }
}
