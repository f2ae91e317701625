//! The memory that a process of the keeper's serves, held open by the keeper as well.
//!
//! Promise: memory whose name is gone, or leads to something else, while a process serves it is
//! told of, with what to do; it outlives that process, and gets a free name back before another
//! process looks for it.
//! Never: maps memory or looks into it.

use crate::exit::Exit;
use crate::observe::is_mapped_by;
use crate::problem::{Outcome, Problem};
use holdfast_io::private;
use holdfast_memory::{Medium, Region};
use rustix::fs::{FlockOperation, flock};
use std::fs::{File, metadata};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The memory of one volume, log or disk.
#[derive(Debug)]
pub(super) struct ServedMemory {
    medium: Medium,
    /// Nothing before a process serves it.
    file: Option<File>,
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
        ServedMemory { medium, file: None }
    }

    /// Holds what this process has just begun to serve.
    pub(super) fn hold(&mut self, pid: u32) {
        let path = self.medium.path();
        // Looked at after the opening: a name that led elsewhere then is not the process's now.
        self.file = path.and_then(|path| private::open(path, false).ok());
        if !is_mapped_by(&self.medium, pid) {
            self.file = None;
        }
    }

    /// Nobody is to go on with it.
    pub(super) fn let_go(&mut self) {
        self.file = None;
    }

    /// That a process serves it and no other would find it, for people, if that is so.
    pub(super) fn astray(&self) -> Option<String> {
        let (path, file) = self.held()?;
        let why = match leads(path, file) {
            Leads::Here => return None,
            Leads::Nowhere => "the name of its memory is gone",
            Leads::Elsewhere => "the name of its memory leads to another file",
        };
        let is_served = flock(file, FlockOperation::NonBlockingLockExclusive).is_err();
        if !is_served {
            let _ours = flock(file, FlockOperation::Unlock);
        }
        is_served.then(|| format!("{why} ({}), although it is served", path.display()))
    }

    /// Gives the memory of a process that has ended its name back, if that leads nowhere.
    pub(super) fn put_back(&mut self, whose: &str) -> Outcome<()> {
        let Some((path, file)) = self.held() else { return Ok(()) };
        let what = format!("giving the memory of {whose} its name {} back", path.display());
        let failed = |why: &dyn std::fmt::Display, remedy: &str| {
            Err(Problem::new(Exit::Failed, &*what, why, remedy))
        };
        match leads(path, file) {
            Leads::Here => return Ok(()),
            Leads::Elsewhere => {
                let remedy = "nothing is lost while the keeper runs, which holds the memory: move \
                              the file there away, and it is tried again";
                return failed(&"another file has it", remedy);
            }
            Leads::Nowhere => {}
        }
        if let Err(error) = Region::put_back(&self.medium, file) {
            let remedy = "nothing is lost while the keeper runs, which holds the memory: make room \
                          there, and it is tried again";
            return failed(&error, remedy);
        }
        tracing::warn!("{what}: the name was gone, and nothing is lost");
        self.file = None;
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
