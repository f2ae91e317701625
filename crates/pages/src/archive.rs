//! Which runs are the archive.
//!
//! Promise: the runs of an archive follow one another without a gap and without an overlap; where
//! one is missing or says nothing, one that is lost stands for it; of two that have the same
//! records the wider one counts, if it is valid. An archive does not change: who has one keeps its
//! runs, whatever is added or merged meanwhile.
//! Never: hides a gap; removes a run whose records are nowhere else.

pub(crate) mod archiver;
pub(crate) mod bloom;
pub(crate) mod fresh;
pub(crate) mod merged;
pub(crate) mod merger;
pub(crate) mod page_records;
pub(crate) mod pruned_merge;
pub(crate) mod run;
pub(crate) mod run_block;
pub(crate) mod run_copy;
pub(crate) mod run_format;
pub(crate) mod run_reader;

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;

use crate::archive::run_format::RunSpan;
use crate::archive::run_reader::Run;
use crate::error::{OpenArchiveError, RunFault};
use crate::stream::rsn::Rsn;
use crate::stream::tag::Tag;

/// The level of what stands for a run that is lost: no run has it that is written.
const LEVEL_LOST: u16 = u16::MAX;

/// Runs that follow one another, the oldest first. A clone costs a reference count.
#[derive(Clone, Debug, Default)]
pub struct Archive(Arc<[Arc<Run>]>);

impl Archive {
    /// The archive in the directory that `files` has, as far as it goes: behind its last valid run
    /// there is nothing. What a crash left there of runs that were written or merged is removed.
    ///
    /// # Errors
    /// See [`OpenArchiveError`]; nothing is removed then but what is in no run.
    pub fn open(files: &dyn Files, tag: Tag) -> Result<Archive, OpenArchiveError> {
        remove_unfinished(files)?;
        let spans = spans(files)?;
        let archive = Archive::of(files, &spans, tag)?;
        for span in spans.iter().filter(|span| archive.supersedes(span)) {
            files.remove_file(&span.path())?;
        }
        Ok(archive)
    }

    /// The archive in the directory that `files` has, where nothing is changed and no run is lost.
    ///
    /// # Errors
    /// See [`OpenArchiveError`].
    pub fn look(files: &dyn Files, tag: Tag) -> Result<Archive, OpenArchiveError> {
        let archive = Archive::of(files, &spans(files)?, tag)?;
        let lost = archive.lost().next();
        let missing =
            |lost: RunSpan| OpenArchiveError::MissingRun { from: lost.begin, to: lost.end };
        lost.map_or(Ok(archive), |lost| Err(missing(lost)))
    }

    /// [`Archive::look`] as far as no run is lost, and the first stretch that is.
    ///
    /// # Errors
    /// See [`OpenArchiveError`].
    pub(crate) fn look_upto_gap(
        files: &dyn Files,
        tag: Tag,
    ) -> Result<(Archive, Option<RunSpan>), OpenArchiveError> {
        let Archive(runs) = Archive::of(files, &spans(files)?, tag)?;
        let there = runs.iter().take_while(|run| !run.is_lost()).cloned().collect();
        let gap = runs.iter().find(|run| run.is_lost()).map(|run| run.span());
        Ok((Archive(there), gap))
    }

    /// The archive that the runs with these spans make, as far as they are valid.
    fn of(files: &dyn Files, spans: &[RunSpan], tag: Tag) -> Result<Archive, OpenArchiveError> {
        let mut valid = Vec::new();
        for span in spans {
            match Run::open(files, *span, tag) {
                Ok(run) => valid.push(Arc::new(run)),
                Err(RunFault::OtherVersion { found, known }) => {
                    return Err(OpenArchiveError::OtherVersion { found, known });
                }
                // If it was needed there is a gap now.
                Err(RunFault::Damaged(_) | RunFault::Lost { .. } | RunFault::Io(_)) => {}
            }
        }
        Ok(tiled(valid, tag))
    }

    /// Whether the archive has all records of a run, and does without it.
    fn supersedes(&self, span: &RunSpan) -> bool {
        let covered = self.begin() <= Some(span.begin) && Some(span.end) <= self.end();
        let is_lost = |lost: RunSpan| lost.begin < span.end && span.begin < lost.end;
        let is_used = self.0.iter().any(|run| run.span() == *span);
        covered && !is_used && !self.lost().any(is_lost)
    }

    /// Stretches whose records are lost, the oldest first.
    pub fn lost(&self) -> impl Iterator<Item = RunSpan> {
        self.0.iter().filter(|run| run.is_lost()).map(|run| run.span())
    }

    /// The archive with what it lost before its first run, if it has not all that is needed from
    /// `from` on, and behind its last one up to `to`.
    #[must_use]
    pub(crate) fn complete(&self, from: Rsn, to: Rsn, tag: Tag) -> Archive {
        let (mut runs, end) = (self.0.to_vec(), self.end().unwrap_or(Rsn::FIRST));
        let begin = self.begin().filter(|begin| *begin > from);
        runs.splice(..0, begin.map(|begin| lost(Rsn::FIRST, begin, tag)));
        runs.extend((end < to).then(|| lost(end, to, tag)));
        Archive(runs.into())
    }

    /// Its runs, the oldest first.
    #[must_use]
    pub fn runs(&self) -> &[Arc<Run>] {
        &self.0
    }

    /// Where its first record stands; none if it is empty.
    #[must_use]
    pub fn begin(&self) -> Option<Rsn> {
        self.0.first().map(|run| run.span().begin)
    }

    /// Where the first record behind it stands; none if it is empty.
    #[must_use]
    pub fn end(&self) -> Option<Rsn> {
        self.0.last().map(|run| run.span().end)
    }

    /// The archive with this run as well: behind the others, or in the place of those that it was
    /// merged from.
    ///
    /// # Panics
    /// If there is a gap then, or an overlap.
    #[must_use]
    pub fn with(&self, run: Arc<Run>) -> Archive {
        let span = run.span();
        let from = self.0.partition_point(|other| other.span().end <= span.begin);
        let to = self.0.partition_point(|other| other.span().end <= span.end);
        let mut runs = self.0.to_vec();
        runs.splice(from..to, [run]);
        let tile = runs.windows(2).all(|two| two[0].span().end == two[1].span().begin);
        assert!(tile, "runs follow one another");
        Archive(runs.into())
    }
}

/// Removes what is left of runs that were not finished.
fn remove_unfinished(files: &dyn Files) -> io::Result<()> {
    let entries = files.read_dir(Path::new(""))?;
    let mut unfinished = entries.iter().filter(|entry| RunSpan::is_unfinished(&entry.name));
    unfinished.try_for_each(|entry| files.remove_file(Path::new(OsStr::from_bytes(&entry.name))))
}

/// The spans of all files that are named like runs.
fn spans(files: &dyn Files) -> io::Result<Vec<RunSpan>> {
    let entries = files.read_dir(Path::new(""))?;
    Ok(entries.iter().filter_map(|entry| RunSpan::of_name(&entry.name)).collect())
}

/// The archive that these runs make.
fn tiled(mut valid: Vec<Arc<Run>>, tag: Tag) -> Archive {
    valid.sort_by_key(|run| (run.span().begin, Reverse(run.span().end)));
    let mut runs = Vec::<Arc<Run>>::new();
    for run in valid {
        let span = run.span();
        let end = runs.last().map_or(span.begin, |last| last.span().end);
        // One that has records of the run before, and others, is no run of this archive.
        if span.begin < end {
            continue;
        }
        if span.begin > end {
            runs.push(lost(end, span.begin, tag));
        }
        runs.push(run);
    }
    Archive(runs.into())
}

/// What stands for the runs with these records.
fn lost(begin: Rsn, end: Rsn, tag: Tag) -> Arc<Run> {
    Arc::new(Run::lost(RunSpan { level: LEVEL_LOST, begin, end }, tag))
}

impl From<io::Error> for OpenArchiveError {
    fn from(error: io::Error) -> OpenArchiveError {
        OpenArchiveError::Io(error)
    }
}

#[cfg(test)]
mod tests;
