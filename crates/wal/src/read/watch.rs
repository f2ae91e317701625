//! Reading a log that another process may have open.
//!
//! Promise: the records that were durable when it began, newest first, and then each that becomes
//! durable, in order, as soon as the log's files say so. Nothing is changed, nobody is waited for.
//! Never: shows a record before its owner may call it durable.

use std::fmt;
use std::io;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use holdfast_log::Lsn;

use crate::error::{OpenError, ReplayError};
use crate::format::{Format, Raw};
use crate::open;
use crate::open::label::Label;
use crate::open::record_type::RecordType;
use crate::options::Options;
use crate::place::Place;
use crate::read::back::ReplayBack;
use crate::read::replay::{Entry, Reader, Replay};
use crate::record::Record;
use crate::shared::Shared;

/// How long it sleeps before it looks at the files again.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A reader of a log that it has not opened.
///
/// The log's files say that a set is durable when something lies behind it: the next set that is
/// written, the mark of a log that is closed, or the one that the threads of
/// [`crate::Background::DrainAndPrepare`] write when nothing is appended. Until then it is not
/// shown, even if whoever appended it has been told already.
pub struct Watch<R, F> {
    watch: holdfast_log::Watch,
    shared: Arc<Shared>,
    reader: Reader,
    from: Lsn,
    types: PhantomData<fn() -> (R, F)>,
}

impl<R: Record, F: Format<R>> Watch<R, F> {
    /// Begins to watch the log in `directory`, at its end. Of the options only the keys count.
    ///
    /// # Errors
    /// See [`OpenError`]; never [`OpenError::InUse`].
    pub fn open(directory: impl AsRef<Path>, options: &Options) -> Result<Self, OpenError> {
        Self::open_at(&Place::unlocked(directory.as_ref())?, options)
    }

    /// [`Watch::open`], anywhere.
    ///
    /// # Errors
    /// See [`Watch::open`].
    pub fn open_at(place: &Place, options: &Options) -> Result<Self, OpenError> {
        Self::begin(place, options, Label::of::<R, F>)
    }

    /// The records that were durable when this began, the newest first. None of them is given by
    /// [`Watch::next`].
    #[must_use]
    pub fn iter_back(&self) -> ReplayBack<R, F> {
        ReplayBack::new(&self.shared, self.from)
    }

    /// The records that are known to be durable, from the oldest on that is still needed.
    #[must_use]
    pub fn iter(&self) -> Replay<R, F> {
        self.iter_from(self.watch.log().first())
    }

    /// [`Watch::iter`], from this position on.
    #[must_use]
    pub fn iter_from(&self, lsn: Lsn) -> Replay<R, F> {
        Replay::new(&self.shared, lsn)
    }

    /// [`Watch::iter_back`], from the set on that ends at this position.
    #[must_use]
    pub fn iter_back_from(&self, end: Lsn) -> ReplayBack<R, F> {
        ReplayBack::new(&self.shared, end)
    }

    /// The next record; `None` if none is durable within `timeout`.
    ///
    /// # Errors
    /// See [`ReplayError`]. [`ReplayError::Truncated`] also if it is too slow for a log that uses
    /// its files again. If the end of the log is cut off it may be [`ReplayError::Damaged`], never
    /// [`ReplayError::Cut`]: what has been given before was durable then.
    pub fn next(&mut self, timeout: Duration) -> Result<Option<Entry<R>>, ReplayError> {
        let timeout_ns = u64::try_from(timeout.as_nanos()).unwrap_or(u64::MAX);
        let end_ns = self.shared.clock.monotonic_ns().saturating_add(timeout_ns);
        loop {
            if self.reader.next(Lsn(u64::MAX)).or_else(|e| self.again(e))? {
                return self.reader.with(F::decode).map(Some);
            }
            if self.look()? {
                continue;
            }
            let left_ns = end_ns.saturating_sub(self.shared.clock.monotonic_ns());
            if left_ns == 0 {
                return Ok(None);
            }
            std::thread::sleep(LOOK_EVERY.min(Duration::from_nanos(left_ns)));
        }
    }

    fn begin(
        place: &Place,
        options: &Options,
        label: impl FnOnce([u8; 16], &Options) -> Label,
    ) -> Result<Self, OpenError> {
        let (watch, shared) = open::watch(place, options, label)?;
        Ok(Self::over(watch, shared))
    }

    fn over(watch: holdfast_log::Watch, shared: Shared) -> Self {
        let (shared, from) = (Arc::new(shared), watch.log().marks().durable);
        // Nobody appends to what belongs to somebody else.
        shared.closed.store(true, Ordering::Relaxed);
        let reader = Reader::new(&shared, from);
        Watch { watch, shared, reader, from, types: PhantomData }
    }

    /// What is found where a file was used again looks like damage until the log is looked at.
    fn again(&mut self, error: ReplayError) -> Result<bool, ReplayError> {
        match error {
            ReplayError::Damaged { .. } => {
                self.look()?;
                self.reader.next(Lsn(u64::MAX))
            }
            error => Err(error),
        }
    }

    fn look(&mut self) -> Result<bool, ReplayError> {
        self.watch.look().map_err(|error| match error {
            holdfast_log::OpenError::Io(error) => ReplayError::Io(error),
            error => ReplayError::Io(io::Error::other(error)),
        })
    }
}

impl Watch<Vec<u8>, Raw> {
    /// [`Watch::open`], of a log as the bytes of its records, whatever they are. A log that says
    /// nothing of its records is not this crate's: each of its sets is read as one.
    ///
    /// # Errors
    /// See [`Watch::open`].
    pub fn open_any(
        directory: impl AsRef<Path>,
        options: &Options,
    ) -> Result<(Self, Option<RecordType>), OpenError> {
        let place = Place::unlocked(directory.as_ref())?;
        let (watch, shared, records) = open::watch_any(&place, options)?;
        Ok((Self::over(watch, shared), records))
    }

    /// [`Watch::open_any`], of a log that nobody has open: all of it is read first, and all that is
    /// whole is there to be read, though its files may prove less of it durable. Nobody opens it
    /// meanwhile.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_at_rest(
        directory: impl AsRef<Path>,
        options: &Options,
    ) -> Result<(Self, Option<RecordType>), OpenError> {
        let place = Place::directory(directory.as_ref())?;
        let (mut watch, shared, records) = open::watch_any(&place, options)?;
        watch.rest()?;
        Ok((Self::over(watch, shared), records))
    }
}

impl<R, F> fmt::Debug for Watch<R, F> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Watch").field("cursor", &self.reader.cursor).finish_non_exhaustive()
    }
}
