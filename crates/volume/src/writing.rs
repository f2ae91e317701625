//! Files of the home that are open for writing because the log has something for them.
//!
//! Whoever has a file of the home by another name, from before the home was barred, can have it run
//! or take a lease on it, and then nobody can open it for writing. What was acknowledged would have
//! to wait for him, and all that is behind it. So a file is opened before the first change of what
//! it holds is acknowledged, and stays open until the home has the last: as long as it is open for
//! writing, nobody can do either.
//!
//! Promise: nothing that a file holds is acknowledged before the file is open for writing, if the
//! home has it; an open that would wait is refused.
//! Never: has more than [`FILES_MAX`] open; who needs one more waits until one comes home.

use std::sync::Arc;

use holdfast_io::{Held, InodeNumbers, Kind, OpenFile};

use crate::error::Stop;
use crate::names::Names;
use crate::node::Body;
use crate::shares::Shares;
use crate::volume::DirectoryVolume;
use holdfast_io::tree::NodeId;
use holdfast_io::tree::asker;

/// With the files that are kept for reading, below the 1,024 that a process may have open.
const FILES_MAX: usize = 512;

/// Who may have how many.
pub(crate) struct WritingFiles {
    shares: Arc<Shares>,
}

/// One of them, and whose it is.
pub(crate) struct WritingFile {
    file: Arc<dyn OpenFile>,
    user: Option<u32>,
    shares: Arc<Shares>,
}

impl WritingFile {
    pub(crate) fn file(&self) -> &Arc<dyn OpenFile> {
        &self.file
    }
}

impl Drop for WritingFile {
    fn drop(&mut self) {
        self.shares.close_file(self.user);
    }
}

impl WritingFiles {
    pub(crate) fn new(shares: Arc<Shares>) -> WritingFiles {
        WritingFiles { shares }
    }

    fn open(&self, held: &dyn Held) -> Result<WritingFile, Stop> {
        let user = asker().user;
        if !self.shares.open_file(user, FILES_MAX) {
            return Err(Stop::NoFiles);
        }
        let opened = held.open(true);
        if opened.is_err() {
            self.shares.close_file(user);
        }
        let file = opened.map_err(|error| Stop::Refused(error.into()))?;
        Ok(WritingFile { file, user, shares: self.shares.clone() })
    }
}

impl DirectoryVolume {
    /// Opens what the home has of a file for writing, before a change of what it holds is logged.
    /// Where a file gets another number when it is first changed, this would be that change.
    pub(crate) fn open_for_writing(
        &self,
        names: &Names,
        node: NodeId,
        body: &mut Body,
    ) -> Result<(), Stop> {
        let renumbers = || self.home.inode_numbers() == InodeNumbers::KeptUntilChanged;
        if body.writing.is_some() || body.attributes.kind != Kind::File || renumbers() {
            return Ok(());
        }
        let held = names.hold(&*self.home, node).map_err(|error| Stop::Refused(error.into()))?;
        if let Some(held) = held {
            body.writing = Some(self.writing.open(&*held)?);
        }
        Ok(())
    }

    /// The same for all files that the log has something for, as an earlier process had them. One
    /// that somebody hinders now the cleaner has to wait for.
    pub(crate) fn open_again_for_writing(&self) {
        let names = self.names();
        for node in names.nodes() {
            let mut body = node.body_mut();
            if !body.is_applied(self.log.marks().released) {
                let _ = self.open_for_writing(&names, node.id, &mut body);
            }
        }
    }
}
