//! The directory of a log that a process of the keeper's serves.
//!
//! Promise: while a process serves a log, the log's files are where its directory's name says, or
//! status says since when they are not, and what to do. Files that somebody removed are made again
//! from the log's memory, which has all that its reader lacks, and another process is started on
//! them.
//! Never: ends a process where nothing would be better afterwards; makes a second log beside one
//! that was only moved.

use crate::supervisor::pace::{OFTEN, Pace};
use holdfast_attach::whereabouts::{Lost, Watched, Whereabouts};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::shortage::AGAIN as AGAIN_SOON;
use std::os::fd::OwnedFd;
use std::time::Instant;

/// What was seen of the directory of one log.
#[derive(Debug, Default)]
pub(crate) struct LogPlace {
    watched: Watched,
    pace: Pace,
    /// What is not as it should be, and what to do, for people.
    trouble: Option<String>,
}

/// What has to be done about it.
#[derive(Debug)]
pub(crate) enum Step {
    /// Nothing, or nothing that can be done now.
    GoOn,
    /// Another process is to serve the log: it writes again what is missing, or has the directory
    /// made again when nobody has it any more.
    Renew,
    /// Another process is to serve the log that was made again, in this directory.
    Replace(OwnedFd),
}

impl LogPlace {
    /// What is not as it should be, if anything is.
    pub(crate) fn trouble(&self) -> Option<&str> {
        self.trouble.as_deref()
    }

    /// Looks at the directory while a process serves it. `may_end` says that a process after it
    /// would find the memory.
    pub(crate) fn look(&mut self, lost: &Lost<'_>, held: &OwnedFd, may_end: bool) -> Step {
        let found = self.watched.look(held, lost.log);
        let (trouble, step) = match self.answer(&found, lost, held, may_end) {
            Ok(answer) => answer,
            Err(problem) => (Some(format!("{}; {problem}", why(&found, lost))), Step::GoOn),
        };
        if trouble != self.trouble {
            let whose = lost.whose();
            match &trouble {
                Some(trouble) => tracing::error!("{whose}: {trouble}"),
                None => tracing::info!("{whose}: its log is where it was"),
            }
        }
        self.trouble = trouble;
        step
    }

    fn answer(
        &mut self,
        found: &Whereabouts,
        lost: &Lost<'_>,
        held: &OwnedFd,
        may_end: bool,
    ) -> Outcome<(Option<String>, Step)> {
        let told = |remedy: &str| Some(format!("{}; {remedy}", why(found, lost)));
        let now = Instant::now();
        Ok(match found {
            Whereabouts::InPlace => (None, Step::GoOn),
            Whereabouts::Moved(_) => (told(MOVE_BACK), Step::GoOn),
            Whereabouts::Barred(_) => {
                (told("move it away: then it is mended by itself"), Step::GoOn)
            }
            _ if lost.medium.path().is_none() => (told(ENDS_WITH_PROCESS), Step::GoOn),
            _ if !may_end => (told("it is made again once its memory has its name"), Step::GoOn),
            Whereabouts::Lacking(_) => (told(AGAIN), Step::Renew),
            // Its memory gets its name back when nobody serves it any more.
            Whereabouts::Removed if lost.is_in_place(held) || !lost.has_memory() => {
                (told(AGAIN), Step::Renew)
            }
            Whereabouts::Removed if !self.pace.is_due(now) => (self.trouble.clone(), Step::GoOn),
            Whereabouts::Removed => {
                self.pace.attempt(now, OFTEN);
                let made = lost.make_again(Some(held))?;
                (told(AGAIN), made.map_or(Step::Renew, Step::Replace))
            }
        })
    }

    /// Before a process looks for the log, and when nobody has it: makes it again if nothing is
    /// left where it was, in the directory that is returned, if it is another one.
    pub(crate) fn restore(&mut self, lost: &Lost<'_>, held: &OwnedFd) -> Outcome<Option<OwnedFd>> {
        let is_removed = self.watched.look(held, lost.log) == Whereabouts::Removed;
        let made = match is_removed && lost.medium.path().is_some() {
            true => lost.make_again(Some(held)).map_err(until_it_is_made)?,
            false => None,
        };
        let noted = lost.note_home(made.as_ref().unwrap_or(held));
        noted.unwrap_or_else(|problem| tracing::error!("{problem}"));
        self.watched.forget();
        self.pace = Pace::default();
        Ok(made)
    }
}

/// Why a process did not come to serve: what it says, unless the files of its log were removed
/// before it looked for them. That is no loss, and they are made again for the next one.
pub(crate) fn reason(lost: &Lost<'_>, held: &OwnedFd, said: Problem) -> Problem {
    let is_removed = || Watched::default().look(held, lost.log) == Whereabouts::Removed;
    if !said.exit.stays() || lost.medium.path().is_none() || !is_removed() {
        return said;
    }
    let why = why(&Whereabouts::Removed, lost);
    let remedy = format!("{AGAIN_SOON}, and nothing is lost: its memory has all of it");
    Problem { passes: true, ..Problem::new(Exit::Failed, said.what, why, remedy) }
}

/// What keeps a log from being made again is tried again, as long as it lasts.
fn until_it_is_made(problem: Problem) -> Problem {
    let remedy = format!("{AGAIN_SOON}; {}", problem.remedy);
    Problem { passes: true, remedy, ..problem }
}

/// What becomes of it by itself.
const AGAIN: &str = "it is written again from memory, which has all of it";

/// What a place that was moved needs.
pub(crate) const MOVE_BACK: &str = "move it back: the next process looks there";

/// For memory that nobody else finds.
const ENDS_WITH_PROCESS: &str = "its memory ends with the process that serves it, and with that \
    what has not come home: unmount it, which brings everything home, then make its log anew";

/// What was found, for people.
fn why(found: &Whereabouts, lost: &Lost<'_>) -> String {
    let log = lost.log.display();
    match found {
        Whereabouts::InPlace => String::new(),
        Whereabouts::Moved(to) => {
            format!("the directory of its log is not at {log} any more, but at {to}")
        }
        Whereabouts::Barred(name) => format!("{name} in {log} is no file, and was one of its log"),
        Whereabouts::Lacking(files) => {
            format!("{files} files of its log were removed from {log}, or replaced there")
        }
        Whereabouts::Removed => format!("the files of its log were removed from {log}"),
    }
}
