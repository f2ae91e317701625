//! Files of the home that are open for writing because the log has something for them.
//!
//! Whoever has a file of the home by another name, from before the home was barred, can have it run
//! or take a lease on it, and then nobody can open it for writing. What was acknowledged would have
//! to wait for him, and all that is behind it. So a file is opened before the first change of what
//! it holds is acknowledged, and stays open until the home has the last: as long as it is open for
//! writing, nobody can do either.
//!
//! Promise: each counts for its user until it is closed; an open that would wait is refused.
//! Never: has more of them open than a part of what this process may; who needs one more waits
//! until one comes home.

use std::sync::Arc;

use holdfast_io::{Held, OpenFile};

use crate::error::Stop;
use crate::shares::Shares;
use holdfast_io::tree::asker;

/// Of the files that a process may have open, one in so many: others are kept for reading, or are
/// somebody's sockets.
const OPEN_PART: usize = 2;

/// As many of them nobody needs to be allowed: a process may have 1,024 files open.
const FILES_MIN: usize = 512;

/// More are not worth what the kernel remembers of each.
const FILES_MAX: usize = 16 << 10;

/// Who may have how many.
pub(crate) struct WritingFiles {
    shares: Arc<Shares>,
    files_max: usize,
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
    /// For a process that may have `open_max` files open.
    pub(crate) fn new(shares: Arc<Shares>, open_max: usize) -> WritingFiles {
        let files_max = (open_max / OPEN_PART).clamp(FILES_MIN, FILES_MAX);
        WritingFiles { shares, files_max }
    }

    pub(crate) fn open(&self, held: &dyn Held) -> Result<WritingFile, Stop> {
        let user = asker().user;
        if !self.shares.open_file(user, self.files_max) {
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
