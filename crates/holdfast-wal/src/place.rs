//! Where a log lies, and what tells it the time.
//!
//! Promise: a log touches the machine through this alone, so a test can put another in its place.
//! Never: opens a log.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::real::{DirectoryLock, RealClock, RealEntropy, RealFiles, make_directory};
use holdfast_io::{Clock, Entropy, Files};

/// Why a directory cannot be had.
pub(crate) enum PlaceError {
    InUse,
    Io(io::Error),
}

/// A directory for one log, and a clock.
#[derive(Clone)]
pub struct Place {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) lock: Option<Arc<DirectoryLock>>,
}

impl Place {
    /// The root of `files`, with a clock and a source of identities: for programs that test
    /// themselves against a machine that fails. Nobody locks it.
    pub fn modelled(
        files: Arc<dyn Files>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Place {
        Place { files, clock, entropy, lock: None }
    }

    /// A directory of this machine, locked against everybody else.
    pub(crate) fn directory(path: &Path) -> Result<Place, PlaceError> {
        let lock = DirectoryLock::take(path).map_err(PlaceError::Io)?.ok_or(PlaceError::InUse)?;
        let files = Arc::new(RealFiles::open(path).map_err(PlaceError::Io)?);
        let lock = Some(Arc::new(lock));
        Ok(Place { files, clock: Arc::new(RealClock), entropy: Arc::new(RealEntropy), lock })
    }

    /// A directory that may be somebody else's: to look at.
    pub(crate) fn unlocked(path: &Path) -> Result<Place, PlaceError> {
        let files = Arc::new(RealFiles::open(path).map_err(PlaceError::Io)?);
        Ok(Place::modelled(files, Arc::new(RealClock), Arc::new(RealEntropy)))
    }

    /// [`Place::directory`], which is made unless it is there; then its name is durable, too.
    pub(crate) fn new_directory(path: &Path) -> Result<Place, PlaceError> {
        make_directory(path).map_err(PlaceError::Io)?;
        Place::directory(path)
    }
}

impl fmt::Debug for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Place").field("lock", &self.lock).finish_non_exhaustive()
    }
}
