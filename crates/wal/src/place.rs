//! Where a log lies, and what tells it the time.
//!
//! Promise: a log touches the machine through this alone, so a test can put another in its place;
//! what fails on the machine names the file by its whole path.
//! Never: opens a log.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::real::{DirectoryLock, MadeDirectories, RealClock, RealEntropy, RealFiles};
use holdfast_io::{Clock, Entropy, Files, Named, named};

/// Why a directory cannot be had.
pub(crate) enum PlaceError {
    InUse,
    /// It is not there.
    Missing(io::Error),
    Io(io::Error),
}

/// A directory for one log, and a clock.
#[derive(Clone)]
pub struct Place {
    pub(crate) files: Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// The directory, if it was not there: it goes again before the lock does, if it is empty.
    _made: Arc<MadeDirectories>,
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
        Place { files, clock, entropy, _made: Arc::default(), lock: None }
    }

    /// A directory of this machine, locked against everybody else.
    pub(crate) fn directory(path: &Path) -> Result<Place, PlaceError> {
        let lock = DirectoryLock::take(path);
        let lock = named_at("locking", path, lock)?.ok_or(PlaceError::InUse)?;
        Ok(Place { lock: Some(Arc::new(lock)), ..Place::unlocked(path)? })
    }

    /// A directory that may be somebody else's: to look at.
    pub(crate) fn unlocked(path: &Path) -> Result<Place, PlaceError> {
        let files: Arc<dyn Files> = Arc::new(named_at("opening", path, RealFiles::open(path))?);
        let files = Arc::new(Named::below(files, path));
        Ok(Place::modelled(files, Arc::new(RealClock), Arc::new(RealEntropy)))
    }

    /// [`Place::directory`], which is made unless it is there; then its name is durable, too. If
    /// nothing comes to lie in it, it goes again.
    pub(crate) fn new_directory(path: &Path) -> Result<Place, PlaceError> {
        let made = MadeDirectories::default();
        // Where the one above is missing, no log is missed.
        let done = made.make(path).map_err(|error| named("making", path, error));
        done.map_err(PlaceError::Io)?;
        let place = Place::directory(path).map_err(|error| match error {
            // Somebody else goes on with it.
            PlaceError::InUse => {
                made.keep();
                PlaceError::InUse
            }
            // Somebody has removed it since.
            PlaceError::Missing(error) | PlaceError::Io(error) => PlaceError::Io(error),
        })?;
        Ok(Place { _made: Arc::new(made), ..place })
    }
}

fn named_at<T>(doing: &'static str, path: &Path, done: io::Result<T>) -> Result<T, PlaceError> {
    done.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => PlaceError::Missing(named(doing, path, error)),
        _ => PlaceError::Io(named(doing, path, error)),
    })
}

impl fmt::Debug for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Place").field("lock", &self.lock).finish_non_exhaustive()
    }
}
