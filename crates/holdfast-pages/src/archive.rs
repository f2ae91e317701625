//! Which runs are the archive.
//!
//! Promise: the runs of an archive follow one another without a gap and without an overlap; of two
//! that have the same records the wider one counts, if it is valid. An archive does not change: who
//! has one keeps its runs, whatever is added or merged meanwhile.
//! Never: opens with a gap; removes a run whose records are nowhere else.

use std::cmp::Reverse;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::Files;

use crate::error::{OpenArchiveError, RunFault};
use crate::rsn::Rsn;
use crate::run_format::RunSpan;
use crate::run_reader::Run;
use crate::tag::Tag;

/// Runs that follow one another, the oldest first. A clone costs a reference count.
#[derive(Clone, Debug, Default)]
pub struct Archive(Arc<[Arc<Run>]>);

impl Archive {
    /// The archive in the directory that `files` has. What a crash left there of runs that were
    /// written or merged is removed.
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

    /// The archive in the directory that `files` has, where nothing is changed.
    ///
    /// # Errors
    /// See [`OpenArchiveError`].
    pub fn look(files: &dyn Files, tag: Tag) -> Result<Archive, OpenArchiveError> {
        Archive::of(files, &spans(files)?, tag)
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
                Err(RunFault::Damaged(_) | RunFault::Io(_)) => {}
            }
        }
        tiled(valid)
    }

    /// Whether the archive has all records of a run, and does without it.
    fn supersedes(&self, span: &RunSpan) -> bool {
        let covered = self.begin() <= Some(span.begin) && Some(span.end) <= self.end();
        covered && self.0.iter().all(|run| run.span() != *span)
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
fn tiled(mut valid: Vec<Arc<Run>>) -> Result<Archive, OpenArchiveError> {
    valid.sort_by_key(|run| (run.span().begin, Reverse(run.span().end)));
    let mut runs = Vec::<Arc<Run>>::new();
    for run in valid {
        let span = run.span();
        let end = runs.last().map_or(span.begin, |last| last.span().end);
        if span.begin == end {
            runs.push(run);
        } else if span.end > end {
            let to = if span.begin > end { span.begin } else { span.end };
            return Err(OpenArchiveError::MissingRun { from: end, to });
        }
    }
    Ok(Archive(runs.into()))
}

impl From<io::Error> for OpenArchiveError {
    fn from(error: io::Error) -> OpenArchiveError {
        OpenArchiveError::Io(error)
    }
}

#[cfg(test)]
mod tests;
