//! What the keeper has, beside what the configuration says by now.
//!
//! Promise: a volume that the configuration has no more, or at other places, or under another
//! name, is told as what it is, with commands that end that in the order in which they are named;
//! one that was given back, and that the configuration does not have like this, is forgotten.
//! Never: gives a volume back because the configuration does not have it.

use super::{Attached, Entry, Keeper, State};
use crate::config::{Config, VolumeConfig};
use crate::exit::Exit;
use crate::problem::{Outcome, Problem};
use holdfast_memory::Medium;

impl Keeper {
    /// Refuses what is attached under another name.
    pub(super) fn refuse_other_name(&self, what: &str, name: &str, config: &Config) -> Outcome<()> {
        let volume = config.volumes.get(name);
        let Some(other) = volume.and_then(|volume| self.other_name(name, volume)) else {
            return Ok(());
        };
        let (why, remedy) = other_name_text(name, &other);
        Err(Problem::new(Exit::InUse, what, why, remedy))
    }

    /// The name under which somebody has had attached what the configuration now calls `name`.
    pub(super) fn other_name(&self, name: &str, volume: &VolumeConfig) -> Option<String> {
        let is_it = |(other, entry): (&String, &Entry)| match entry {
            Entry::Here(attached) if other != name => {
                let is_over = attached.supervised.snapshot().is_over();
                (!is_over && is_shared(&attached.volume, volume)).then(|| other.clone())
            }
            _ => None,
        };
        self.lock().iter().find_map(is_it)
    }

    /// Forgets what was given back and is not what the configuration has under this name.
    pub(super) fn forget_given_back(&self, config: &Config) {
        self.lock().retain(|name, entry| match entry {
            Entry::Here(attached) => {
                let is_given_back = attached.supervised.snapshot().state == State::Detached;
                !is_given_back || attached.is_as_in(config, name)
            }
            Entry::Coming(_) => true,
        });
    }

    /// Forgets what is over, and is not what the configuration has under this name; says so.
    pub(super) fn forget(&self, name: &str) -> Option<String> {
        let config = self.config().ok()?;
        let mut volumes = self.lock();
        let Some(Entry::Here(attached)) = volumes.get(name).cloned() else { return None };
        let state = attached.supervised.snapshot().state;
        if attached.is_as_in(&config, name) || !state.is_over() {
            return None;
        }
        volumes.remove(name);
        let (home, log) = (attached.volume.home.display(), attached.volume.log.display());
        Some(match state {
            State::Detached => format!("{name} was given back already: {home} is complete"),
            _ => format!(
                "{name} is forgotten, as the configuration does not have it like this any more; \
                 its log {log} and its memory stay as they are: a volume in the configuration \
                 with this home and this log takes them up"
            ),
        })
    }
}

impl Attached {
    /// Whether the configuration has it under this name at the same places.
    pub(super) fn is_as_in(&self, config: &Config, name: &str) -> bool {
        config.volumes.get(name).is_some_and(|volume| is_same(&self.volume, volume))
    }

    /// How the configuration differs, for people, and what to do about it.
    pub(super) fn changed(&self, config: &Config, name: &str) -> Option<String> {
        if self.is_as_in(config, name) {
            return None;
        }
        let Some(volume) = config.volumes.get(name) else {
            return Some(format!("the configuration no longer has it: `holdfast umount {name}`"));
        };
        let (home, log) = (volume.home.display(), volume.log.display());
        Some(format!(
            "the configuration has other places for it by now, home {home} and log {log}: put \
             back what it had, or `holdfast umount {name}`"
        ))
    }
}

/// What is wrong with a volume that is attached under another name, and what to do.
pub(super) fn other_name_text(name: &str, other: &str) -> (String, String) {
    let why = format!("its home, log or memory is attached as volume {other}");
    (why, format!("`holdfast umount {other}`, then `holdfast mount {name}`"))
}

fn is_same(one: &VolumeConfig, other: &VolumeConfig) -> bool {
    let places = |it: &VolumeConfig| (it.home.clone(), it.log.clone(), it.mount.clone());
    places(one) == places(other) && one.medium() == other.medium()
}

/// Whether two volumes could not be attached at the same time.
fn is_shared(one: &VolumeConfig, other: &VolumeConfig) -> bool {
    let medium = one.medium();
    let is_of_both = medium != Medium::Private && medium == other.medium();
    is_of_both || one.home == other.home || one.log == other.log
}
