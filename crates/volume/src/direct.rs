//! The direct way in: a volume whose log stands in this process.
//!
//! Promise: one call opens log and volume, one brings everything home and closes the log.
//! Never: does what a volume does wherever its log stands.

use std::sync::Arc;

use holdfast_io::{Clock, Files};
use holdfast_log::{Log, LogConfig, Recovery};
use holdfast_memory::Region;

use crate::clean::error::CleanError;
use crate::error::VolumeError;
use crate::volume::{Attached, Class, DirectoryVolume};

/// How a volume with its log in this process works.
#[derive(Clone, Copy, Debug)]
pub struct VolumeConfig {
    /// What an acknowledgement means.
    pub class: Class,
    /// The log.
    pub log: LogConfig,
}

/// A volume and its log. Somebody runs [`Log::run_drainer`], [`Log::run_preparer`] and
/// [`DirectoryVolume::run_cleaner`].
pub struct DirectVolume {
    /// The volume.
    pub volume: DirectoryVolume,
    /// Its log, for those who drain it and tell its state.
    pub log: Arc<Log>,
    /// What the log found when it was opened.
    pub recovery: Recovery,
    /// What the volume found.
    pub attached: Attached,
}

impl DirectVolume {
    /// Opens the log that [`Log::create`] made, with `region` as its ring, and the volume on it.
    ///
    /// # Errors
    /// See [`VolumeError`].
    pub fn open(
        home: Arc<dyn Files>,
        log: Arc<dyn Files>,
        region: Arc<Region>,
        clock: Arc<dyn Clock>,
        config: VolumeConfig,
    ) -> Result<DirectVolume, VolumeError> {
        let opened = Log::open(log.clone(), region, clock.clone(), config.log);
        let beside = Some(log);
        let (log, recovery) = opened.map_err(VolumeError::Log)?;
        let log = Arc::new(log);
        let (volume, attached) =
            DirectoryVolume::open_beside(home, log.clone(), clock, config.class, beside)?;
        Ok(DirectVolume { volume, log, recovery, attached })
    }

    /// Brings everything home, see [`DirectoryVolume::detach`], and closes the log.
    ///
    /// # Errors
    /// See [`CleanError`]; it may be tried again.
    pub fn detach(&self) -> Result<(), CleanError> {
        self.volume.detach()?;
        self.log.close().map_err(CleanError::Log)
    }
}
