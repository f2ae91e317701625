//! Files of the home that are open for writing because the log has something for them.
//!
//! Whoever has a file of the home by another name, from before the home was barred, can have it run
//! or take a lease on it, and then nobody can open it for writing. What was acknowledged would have
//! to wait for him, and all that is behind it. So a file is opened before the first change of what
//! it holds is acknowledged, and stays open until the home has the last: as long as it is open for
//! writing, nobody can do either.
//!
//! Promise: each counts for its user until it is closed; an open that would wait is refused.
//! Never: has more than [`FILES_MAX`] open; who needs one more waits until one comes home.

use std::sync::Arc;

use holdfast_io::{Held, OpenFile};

use crate::error::Stop;
use crate::shares::Shares;
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

    pub(crate) fn open(&self, held: &dyn Held) -> Result<WritingFile, Stop> {
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
