//! Makes one wide run of many narrow ones, so that a page's records are in few places.
//!
//! Promise: the wide run has every record of those that it replaces, was read back before they go,
//! and takes their place at once; who reads them meanwhile keeps them. One that is lost or damaged
//! stays as it is, and all others are merged without it.
//! Never: waits for anybody; removes a run whose records are nowhere else.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};

use holdfast_io::{Clock, Files};

use crate::archive::Archive;
use crate::archive::pruned_merge::PrunedMerge;
use crate::archive::run::{RunFrames, RunWriter};
use crate::archive::run_block::Compression;
use crate::archive::run_format::RunSpan;
use crate::archive::run_reader::{Run, RunScan};
use crate::error::{MergeError, RunFault, RunPart};
use crate::repair::view::Views;
use crate::stream::frame_index::FramePlace;
use crate::stream::rsn::{PageNumber, Rsn};
use crate::stream::tag::Tag;

/// How many runs of a level become one of the next. More would leave more places to look at, fewer
/// would write every record more often.
const RUNS: usize = 16;
/// A step reads about so much, so that whoever makes it has time for other things soon.
const STEP_BYTES: usize = 1 << 20;
const NS_PER_MS: u64 = 1_000_000;

/// How much of the past is kept. Whatever is, every page can be rebuilt as it is now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keep {
    /// All of it: the store can be made again as it was at any moment.
    #[default]
    All,
    /// So many milliseconds at least, as far as runs were merged since.
    WindowMs(u64),
    /// So many bytes of the archive at least, the newest.
    Bytes(u64),
    /// What a repair of a page needs, and no more.
    Repair,
}

impl Keep {
    /// From where on the past is kept, now. Nothing that is not clean is left out.
    fn from(self, archive: &Archive, cleaned: Rsn, utc_ns: i64) -> Rsn {
        match self {
            Keep::All => Rsn::FIRST,
            Keep::Repair => cleaned,
            Keep::WindowMs(ms) => {
                let since = utc_ns.saturating_sub_unsigned(ms.saturating_mul(NS_PER_MS));
                let run = archive.runs().iter().find(|run| run.last_utc_ns() >= since);
                run.map_or(cleaned, |run| cleaned.min(run.span().begin))
            }
            Keep::Bytes(most) => {
                let mut bytes = 0;
                let within = archive.runs().iter().rev().take_while(|run| {
                    let is_within = bytes < most;
                    bytes += run.bytes();
                    is_within
                });
                within.last().map_or(cleaned, |run| cleaned.min(run.span().begin))
            }
        }
    }
}

/// Who merges the runs of one store. All calls may come from any thread.
pub(crate) struct Merger {
    /// The directory of the archive.
    files: Arc<dyn Files>,
    tag: Tag,
    views: Arc<Views>,
    clock: Arc<dyn Clock>,
    keep: Keep,
    compression: Compression,
    merging: Mutex<Option<Merging>>,
    /// Runs that did not say what is in them.
    damaged: Mutex<BTreeSet<(Rsn, Rsn)>>,
}

/// A merge that has begun.
struct Merging {
    inputs: Vec<Arc<Run>>,
    span: RunSpan,
    /// Records before this are left out if an image before it replaces them.
    trim_below: Rsn,
    stage: Stage,
}

enum Stage {
    Writing(Box<RunWriter<Arc<dyn Files>>>, PrunedMerge),
    /// What was written, and is read back, beside what it was written from.
    Reading(Arc<Run>, RunScan, PrunedMerge),
}

impl Merger {
    /// Who merges the runs in the directory that `files` has.
    pub(crate) fn new(
        files: Arc<dyn Files>,
        tag: Tag,
        views: Arc<Views>,
        clock: Arc<dyn Clock>,
        (keep, compression): (Keep, Compression),
    ) -> Merger {
        Merger {
            files,
            tag,
            views,
            clock,
            keep,
            compression,
            merging: Mutex::default(),
            damaged: Mutex::default(),
        }
    }

    /// The runs that there are.
    pub(crate) fn archive(&self) -> Archive {
        self.views.archive()
    }

    /// Goes on with a merge, or begins one if there are enough runs. True if there was something to
    /// do. The page file has every record before `cleaned`.
    ///
    /// # Errors
    /// See [`MergeError`]; the next step begins the merge anew, without runs that are damaged.
    pub(crate) fn step(&self, cleaned: Rsn) -> Result<bool, MergeError> {
        let mut merging = self.merging.lock().expect("nobody panics who merges");
        let (going, inputs) = match merging.take() {
            Some(going) => {
                let inputs = going.inputs.clone();
                (self.go_on(going), inputs)
            }
            None => {
                let archive = self.views.archive();
                let inputs = self.inputs(&archive, cleaned);
                if inputs.is_empty() {
                    return Ok(false);
                }
                let begun = self.begin(&archive, &inputs, cleaned);
                (begun.and_then(|begun| self.go_on(begun)), inputs)
            }
        };
        *merging = going.inspect_err(|error| self.note_damaged(error, &inputs))?;
        Ok(true)
    }

    /// Makes one run of all that is not kept and stands behind what is damaged, if there is more
    /// than one of it, or it has something that can be left out. True if there was something to do.
    ///
    /// # Errors
    /// See [`MergeError`]; all records are where they were.
    pub(crate) fn trim(&self, cleaned: Rsn) -> Result<bool, MergeError> {
        let mut merging = self.merging.lock().expect("nobody panics who merges");
        let archive = self.views.archive();
        let inputs = self.unkept(&archive, cleaned);
        if inputs.is_empty() || (inputs.len() == 1 && inputs[0].is_trimmed()) {
            return Ok(false);
        }
        // One that is under way has some of these runs, and begins anew if it still can.
        *merging = None;
        let mut going = Some(self.begin(&archive, inputs, cleaned)?);
        while let Some(now) = going {
            going = self.go_on(now)?;
        }
        Ok(true)
    }

    /// The runs of what is not kept that stand behind what is damaged, without the archive's last.
    fn unkept<'a>(&self, archive: &'a Archive, cleaned: Rsn) -> &'a [Arc<Run>] {
        let from = self.keep.from(archive, cleaned, self.clock.utc_ns());
        let Some((_, before)) = archive.runs().split_last() else { return &[] };
        let count = before.partition_point(|run| run.span().end <= from);
        let damaged = before[..count].iter().rposition(|run| self.is_damaged(run));
        &before[damaged.map_or(0, |at| at + 1)..count]
    }

    /// The same, if there is so much of it that what was left of the oldest when something was left
    /// out is less than what has come since. So what is not kept is never more than about as much
    /// again as what is needed of it, and each record is written twice for that, whatever comes.
    fn excess<'a>(&self, archive: &'a Archive, cleaned: Rsn) -> Option<&'a [Arc<Run>]> {
        if self.keep == Keep::All {
            return None;
        }
        let unkept = self.unkept(archive, cleaned);
        let (oldest, rest) = unkept.split_first()?;
        let needed_bytes = if oldest.is_trimmed() { oldest.bytes() } else { 0 };
        let more_bytes: u64 = rest.iter().map(|run| run.bytes()).sum();
        // Not for less than what becomes one run all the same.
        let is_worth_it = rest.len() >= RUNS || rest.iter().any(|run| run.span().level > 0);
        (is_worth_it && more_bytes > needed_bytes).then_some(unkept)
    }

    /// Remembers which of these is at fault.
    fn note_damaged(&self, error: &MergeError, inputs: &[Arc<Run>]) {
        if matches!(error, MergeError::Archive(_)) {
            let damaged = inputs.iter().filter(|run| run.check().is_err());
            self.damaged().extend(damaged.map(|run| (run.span().begin, run.span().end)));
        }
    }

    fn damaged(&self) -> MutexGuard<'_, BTreeSet<(Rsn, Rsn)>> {
        self.damaged.lock().expect("nothing panics with numbers")
    }

    /// The runs that are to become one, if there are enough.
    fn inputs(&self, archive: &Archive, cleaned: Rsn) -> Vec<Arc<Run>> {
        let alike = || inputs(archive.runs(), cleaned, |run| self.is_damaged(run));
        self.excess(archive, cleaned).or_else(alike).unwrap_or_default().to_vec()
    }

    /// Whether records of the run are known to be lost.
    fn is_damaged(&self, run: &Run) -> bool {
        let span = run.span();
        run.is_lost() || self.damaged().contains(&(span.begin, span.end))
    }

    /// Begins to make one run of these, which follow one another.
    fn begin(
        &self,
        archive: &Archive,
        inputs: &[Arc<Run>],
        cleaned: Rsn,
    ) -> Result<Merging, MergeError> {
        let (first, last) = (inputs[0].span(), inputs[inputs.len() - 1].span());
        let widest = inputs.iter().map(|run| run.span().level).max().unwrap_or(0);
        // Others of that level may become one with it later.
        let are_alike = inputs.iter().all(|run| run.span().level == widest);
        let span =
            RunSpan { level: widest + u16::from(are_alike), begin: first.begin, end: last.end };
        let writer = RunWriter::begin(Arc::clone(&self.files), self.tag, span);
        let mut writer = Box::new(writer.map_err(MergeError::Write)?);
        writer.compress(self.compression);
        let trim_below = self.keep.from(archive, cleaned, self.clock.utc_ns());
        let stage = Stage::Writing(writer, PrunedMerge::new(inputs, trim_below)?);
        Ok(Merging { inputs: inputs.to_vec(), span, trim_below, stage })
    }

    /// What is left of the merge; none if it is done.
    fn go_on(&self, mut merging: Merging) -> Result<Option<Merging>, MergeError> {
        merging.stage = match merging.stage {
            Stage::Writing(mut writer, mut records) => {
                if write(&mut writer, &mut records)? {
                    Stage::Writing(writer, records)
                } else {
                    self.finish(*writer, records.has_left_out(), &merging.inputs, merging.span)?;
                    let records = PrunedMerge::new(&merging.inputs, merging.trim_below)?;
                    self.reread(merging.span, records)?
                }
            }
            Stage::Reading(run, mut scan, mut records) => {
                let span = merging.span;
                let left = compare(&mut scan, &mut records, &run);
                if left.map_err(|fault| self.discard(span, fault))? {
                    Stage::Reading(run, scan, records)
                } else {
                    self.views.show(run);
                    self.remove(&merging.inputs)?;
                    return Ok(None);
                }
            }
        };
        Ok(Some(merging))
    }

    fn finish(
        &self,
        mut writer: RunWriter<Arc<dyn Files>>,
        has_left_out: bool,
        inputs: &[Arc<Run>],
        span: RunSpan,
    ) -> Result<(), MergeError> {
        let is_trimmed = has_left_out || inputs.iter().any(|run| run.is_trimmed());
        let mut frames = RunFrames::default();
        if is_trimmed {
            writer.trim();
            let (first, last) = (inputs[0].as_frame()?, inputs[inputs.len() - 1].as_frame()?);
            frames.push(FramePlace { first: first.first, lsn: first.lsn, ..last });
        } else {
            inputs.iter().try_for_each(|run| run.each_frame(|frame| frames.push(frame)))?;
        }
        assert!(inputs[inputs.len() - 1].span().end == span.end, "inputs are whole");
        writer.finish_in(&inputs[0].state()?, &frames).map_err(MergeError::Write)
    }

    /// Begins to read back what was written.
    fn reread(&self, span: RunSpan, records: PrunedMerge) -> Result<Stage, MergeError> {
        let run = Run::open(&*self.files, span, self.tag).map(Arc::new);
        let opened = run.and_then(|run| Ok((run.scan(PageNumber(1))?, run)));
        let (scan, run) = opened.map_err(|fault| self.discard(span, fault))?;
        Ok(Stage::Reading(run, scan, records))
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

/// The runs that are to become one: the oldest of the lowest level that has enough of them which
/// are not damaged. The last run is none of them, so that the state at the archive's end is found
/// from one that is whole; and wide ones only if they are clean, so that cleaning has no wider ones
/// to walk through.
fn inputs(
    runs: &[Arc<Run>],
    cleaned: Rsn,
    is_damaged: impl Fn(&Arc<Run>) -> bool,
) -> Option<&[Arc<Run>]> {
    let level_of = |run: &Arc<Run>| run.span().level;
    let (_, before) = runs.split_last()?;
    let alike = before.windows(RUNS).filter(|runs| {
        let level = level_of(&runs[0]);
        let is_clean = runs[RUNS - 1].span().end <= cleaned;
        let fits = |run: &Arc<Run>| level_of(run) == level && !is_damaged(run);
        runs.iter().all(fits) && (level == 0 || is_clean)
    });
    alike.min_by_key(|runs| level_of(&runs[0]))
}

/// Writes a stretch of records; false if these were all.
fn write(
    writer: &mut RunWriter<Arc<dyn Files>>,
    records: &mut PrunedMerge,
) -> Result<bool, MergeError> {
    let mut bytes = 0;
    while bytes < STEP_BYTES {
        let Some(entry) = records.current() else { return Ok(false) };
        writer.push(entry.page, entry.rsn, entry.bytes).map_err(MergeError::Write)?;
        bytes += entry.bytes.len();
        records.advance()?;
    }
    Ok(true)
}

/// Compares a stretch of what was written with what it was written from; false if that was all.
fn compare(scan: &mut RunScan, records: &mut PrunedMerge, run: &Run) -> Result<bool, RunFault> {
    let mut bytes = 0;
    while bytes < STEP_BYTES {
        let wanted = records.current();
        if scan.current() != wanted {
            return Err(RunFault::Damaged(RunPart::Entry));
        }
        let Some(wanted) = wanted else {
            run.state()?;
            run.each_frame(|_| ())?;
            return Ok(false);
        };
        bytes += wanted.bytes.len();
        records.advance()?;
        scan.advance()?;
    }
    Ok(true)
}

impl std::fmt::Debug for Merger {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Merger").field("views", &self.views).finish_non_exhaustive()
    }
}
