//! Where a store lies, and what tells it the time.
//!
//! Promise: a store touches the machine through this alone, so a test can put another in its place.
//! Never: opens a store.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use holdfast_io::real::{DirectoryLock, MadeDirectories, RealClock, RealEntropy, RealFiles};
use holdfast_io::{Clock, Entropy, Files};

use crate::face::directories::{ARCHIVE, Directories, LOG};
use crate::face::header::{Header, Names, NoHeader};

/// Why a directory cannot be had.
pub(crate) enum PlaceError {
    InUse,
    /// It holds something else.
    Taken,
    Io(io::Error),
}

/// The directories of one store, and a clock.
#[derive(Clone)]
pub struct Place {
    pub(crate) store: Arc<dyn Files>,
    pub(crate) log: Arc<dyn Files>,
    pub(crate) archive: Arc<dyn Files>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    /// Those of its directories that were not there. They go before the lock does.
    made: Arc<MadeDirectories>,
    lock: Option<Arc<DirectoryLock>>,
}

impl Place {
    /// These directories, which are there, with a clock and a source of identities: for programs
    /// that test themselves against a machine that fails. Nobody locks them.
    pub fn modelled(
        directories: Directories,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Place {
        let Directories { store, log, archive } = directories;
        Place { store, log, archive, clock, entropy, made: Arc::default(), lock: None }
    }

    /// The directory of the log.
    #[must_use]
    pub fn log(&self) -> &dyn Files {
        &*self.log
    }

    /// A directory of this machine, which is made unless it is there, locked against everybody
    /// else. It has nothing else in it than what has one of these names. What is made of it goes
    /// again, unless it is [`Place::keep`]t.
    pub(crate) fn directory(path: &Path, names: &Names) -> Result<Place, PlaceError> {
        let made = MadeDirectories::default();
        made.make(path).map_err(PlaceError::Io)?;
        Place::locked(path, &[names], made)
    }

    /// [`Place::directory`], which is there, with one of several names.
    pub(crate) fn existing(path: &Path, names: &[&Names]) -> Result<Place, PlaceError> {
        Place::locked(path, names, MadeDirectories::default())
    }

    fn locked(path: &Path, names: &[&Names], made: MadeDirectories) -> Result<Place, PlaceError> {
        let lock = DirectoryLock::take(path).map_err(PlaceError::Io)?;
        let Some(lock) = lock else {
            // Somebody else goes on with it.
            made.keep();
            return Err(PlaceError::InUse);
        };
        let store = open_directory(path).map_err(PlaceError::Io)?;
        let is_taken =
            |names: &&Names| matches!(Header::read(&*store, names), Err(NoHeader::Taken));
        if names.iter().all(is_taken) {
            return Err(PlaceError::Taken);
        }
        let below = |name: &str| {
            let path = path.join(name);
            made.make(&path).and_then(|()| open_directory(&path)).map_err(PlaceError::Io)
        };
        let directories = Directories { store, log: below(LOG)?, archive: below(ARCHIVE)? };
        let (clock, entropy) = (Arc::new(RealClock), Arc::new(RealEntropy));
        let (made, lock) = (Arc::new(made), Some(Arc::new(lock)));
        Ok(Place { made, lock, ..Place::modelled(directories, clock, entropy) })
    }

    /// What is to lie here does.
    pub(crate) fn keep(&self) {
        self.made.keep();
    }

    /// The directories that pages know.
    pub(crate) fn of_pages(&self) -> holdfast_pages::Directories {
        let (store, archive) = (Arc::clone(&self.store), Arc::clone(&self.archive));
        holdfast_pages::Directories { store, archive }
    }
}

fn open_directory(path: &Path) -> io::Result<Arc<dyn Files>> {
    Ok(Arc::new(RealFiles::open(path)?))
}

impl fmt::Debug for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Place").field("lock", &self.lock).finish_non_exhaustive()
    }
}
