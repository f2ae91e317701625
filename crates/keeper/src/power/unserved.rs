//! Memory that nobody serves: of volumes that could not be attached, or not yet, and of those that
//! no section of the configuration has any more.
//!
//! Promise: it is named for as long as it has what was acknowledged because of the power, and
//! nothing else has. The memory itself says that, whatever the configuration and the log say by
//! now; memory that cannot be read has it, unless the log says that it has everything.
//! Never: changes anything, or waits for long for a disk.

use crate::sectionless::sectionless;
use holdfast_attach::bond::RegionNote;
use holdfast_attach::observe::observe;
use holdfast_config::{Config, VolumeConfig};
use holdfast_machine::bounded;
use holdfast_memory::Medium;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Where a volume's log and its memory are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    /// The directory of its log.
    pub(super) log: PathBuf,
    medium: Medium,
}

impl Place {
    pub(super) fn of(volume: &VolumeConfig) -> Place {
        Place { log: volume.log.clone(), medium: volume.medium() }
    }
}

/// All places that were known since the keeper began.
#[derive(Debug)]
pub(super) struct Unserved {
    /// Of volumes.
    places: Mutex<Vec<Place>>,
    /// Of everything.
    media: Vec<Medium>,
}

impl Unserved {
    pub(super) fn of(config: &Config) -> Unserved {
        let places = config.volumes.values().map(Place::of).collect();
        Unserved { places: Mutex::new(places), media: config.media().collect() }
    }

    /// One more place is known.
    pub(super) fn has(&self, place: &Place) {
        let mut places = self.lock();
        if !places.contains(place) {
            places.push(place.clone());
        }
    }

    /// What of it may be in memory alone, for people. Others tell of what is live.
    pub(super) fn alone(&self, live: &[Place]) -> Vec<String> {
        let places = self.lock().clone();
        let known = places.iter().map(|it| &it.medium).chain(&self.media).cloned();
        let sectionless = sectionless(known).into_iter().filter(|it| it.is_alone);
        let sectionless = sectionless.map(|it| it.path.display().to_string());
        let unserved = places.iter().filter(|it| !live.contains(it) && is_alone(it));
        let unserved = unserved.map(|it| format!("{}, which nobody serves", it.log.display()));
        unserved.chain(sectionless).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Place>> {
        self.places.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether memory may have what was acknowledged because of the power, and nothing else has: where
/// it is configured to be, or where the log says that it is.
fn is_alone(place: &Place) -> bool {
    has_alone(&place.log, &place.medium)
        || elsewhere(place).is_some_and(|it| has_alone(&place.log, &it))
}

fn has_alone(log: &Path, medium: &Medium) -> bool {
    match observe(medium) {
        Ok(seen) => seen.is_alone(),
        Err(_) => is_there(medium) && is_of_memory(log).unwrap_or(true),
    }
}

/// Where the log's memory is, if that is not where it is configured to be.
fn elsewhere(place: &Place) -> Option<Medium> {
    let medium = bounded::read(&place.log, RegionNote::medium_of).unwrap_or(None);
    medium.filter(|it| *it != place.medium)
}

/// Whether what was acknowledged last may be in memory alone.
pub(super) fn is_acknowledged_in_memory(place: &Place) -> bool {
    is_alone(place)
        || is_of_memory(&place.log).unwrap_or_else(|| match observe(&place.medium) {
            Ok(seen) => seen.dirty_bytes() > 0,
            Err(_) => is_there(&place.medium),
        })
}

/// What the log says, if it does. One that does not answer has not said that it has everything.
fn is_of_memory(log: &Path) -> Option<bool> {
    bounded::read(log, RegionNote::is_of_memory).unwrap_or(Some(true))
}

fn is_there(medium: &Medium) -> bool {
    medium.path().is_some_and(Path::exists)
}
