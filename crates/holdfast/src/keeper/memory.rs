//! The memory that a process of the keeper's serves, held open by the keeper as well.
//!
//! Promise: memory whose name is gone, or leads to something else, while a process serves it is
//! told of, with what to do; it outlives that process, and gets a free name back before another
//! process looks for it. From before a process looks for it on there is no moment at which the
//! keeper does not hold it.
//! Never: maps memory or looks into it.

use crate::exit::Exit;
use crate::observe::{is_locked, is_mapped_by};
use crate::problem::{Outcome, Problem};
use holdfast_io::private;
use holdfast_memory::{Medium, Region};
use std::fs::{File, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The memory of one volume, log, disk or of one service's tables.
#[derive(Debug)]
pub(super) struct ServedMemory {
    medium: Medium,
    /// What the name led to when a process was last about to look for it, or served it.
    file: Option<File>,
    /// A process has served it. It is let go of for something newer alone then: what nobody serves
    /// now may be all that there is.
    was_served: bool,
}

/// Where a name leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leads {
    Here,
    Nowhere,
    Elsewhere,
}

impl ServedMemory {
    pub(super) fn new(medium: Medium) -> ServedMemory {
        ServedMemory { medium, file: None, was_served: false }
    }

    /// Holds what this process has just begun to serve: what was there before, or what it made.
    pub(super) fn hold(&mut self, pid: u32) {
        let found = self.open();
        // Looked at after the opening: a name that led elsewhere then is not the process's now.
        if let Some(found) = found.filter(|_| is_mapped_by(&self.medium, pid)) {
            self.file = Some(found);
            self.was_served = true;
        }
        self.was_served |= self.file.as_ref().is_some_and(is_locked);
    }

    fn open(&self) -> Option<File> {
        self.medium.path().and_then(|path| private::open(path, false).ok())
    }

    /// Nobody is to go on with it.
    pub(super) fn let_go(&mut self) {
        self.file = None;
        self.was_served = false;
    }

    /// That a process serves it and no other would find it, for people, if that is so.
    pub(super) fn astray(&self) -> Option<String> {
        let (path, file) = self.held()?;
        let why = match leads(path, file) {
            Leads::Here => return None,
            Leads::Nowhere => "the name of its memory is gone",
            Leads::Elsewhere => "the name of its memory leads to another file",
        };
        is_locked(file).then(|| format!("{why} ({}), although it is served", path.display()))
    }

    /// Before a process looks for it: gives memory that is held its name back, if that leads
    /// nowhere, and holds what there is.
    pub(super) fn put_back(&mut self, whose: &str) -> Outcome<()> {
        if !self.was_served {
            self.file = self.open();
        }
        let Some((path, file)) = self.held() else { return Ok(()) };
        let what = format!("giving the memory of {whose} its name {} back", path.display());
        let failed = |why: &dyn std::fmt::Display, remedy: &str| {
            Problem::new(Exit::Failed, &*what, why, remedy)
        };
        match leads(path, file) {
            Leads::Here => return Ok(()),
            Leads::Elsewhere => {
                let remedy = "nothing is lost while the keeper runs, which holds the memory: move \
                              the file there away, and it is tried again";
                return Err(failed(&"another file has it", remedy));
            }
            Leads::Nowhere => {}
        }
        let made = Region::put_back(&self.medium, file).map_err(|error| {
            let remedy = "nothing is lost while the keeper runs, which holds the memory: make room \
                          there, and it is tried again";
            failed(&error, remedy)
        })?;
        tracing::warn!("{what}: the name was gone, and nothing is lost");
        self.file = Some(made);
        Ok(())
    }

    fn held(&self) -> Option<(&Path, &File)> {
        self.medium.path().zip(self.file.as_ref())
    }
}

fn leads(path: &Path, file: &File) -> Leads {
    let place = |of: std::fs::Metadata| (of.dev(), of.ino());
    match (metadata(path).map(place), file.metadata().map(place)) {
        (Ok(there), Ok(ours)) if there == ours => Leads::Here,
        (Ok(_), _) => Leads::Elsewhere,
        (Err(_), _) => Leads::Nowhere,
    }
}

/// Refuses to end a process whose successor would not find the memory.
pub(super) fn refuse_upgrade(whose: &str, astray: &str) -> Problem {
    let what = format!("upgrading {whose}");
    let remedy = "it goes on, and nothing is lost: `holdfast status` says what brings everything \
                  to the disk";
    Problem::new(Exit::Failed, what, astray, remedy)
}
