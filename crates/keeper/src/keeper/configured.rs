//! What the keeper has, beside what the configuration says by now.
//!
//! Promise: a volume that the configuration has no more, or at other places, or under another
//! name, is told as what it is, with commands that end that in the order in which they are named;
//! one that was given back, and that the configuration does not have like this, is forgotten.
//! Never: gives a volume back because the configuration does not have it.

use super::{Entry, Keeper};
use crate::orders;
use crate::report::{CAME_LATER, START_AGAIN};
use crate::supervisor::attached::Attached;
use crate::supervisor::life::known::State;
use crate::supervisor::server;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, VolumeConfig, Way};
use holdfast_memory::Medium;

impl Keeper {
    /// Refuses what is attached under another name.
    pub(super) fn refuse_other_name(&self, what: &str, name: &str, config: &Config) -> Outcome<()> {
        let Some(volume) = config.volumes.get(name) else { return Ok(()) };
        let Some(other) = self.other_name(name, volume) else { return Ok(()) };
        let (why, remedy) = self.other_name_text(name, &other, volume);
        Err(Problem::new(Exit::InUse, what, why, remedy))
    }

    /// The name under which somebody has had attached what the configuration now calls `name`.
    pub(super) fn other_name(&self, name: &str, volume: &VolumeConfig) -> Option<String> {
        let is_it = |(other, entry): (&String, &Entry)| match entry {
            Entry::Here(attached) if other != name => {
                let is_over = attached.life.known().is_over();
                (!is_over && is_shared(&attached.volume, volume)).then(|| other.clone())
            }
            _ => None,
        };
        self.lock().iter().find_map(is_it).or_else(|| {
            let is_kept = |other: &String| {
                let was = self.remains.was(other).filter(|_| other != name);
                was.is_some_and(|was| is_shared(&was, volume))
            };
            self.remains.names().into_iter().find(is_kept)
        })
    }

    /// What is wrong with a volume that is attached under another name, and what to do.
    fn other_name_text(&self, name: &str, other: &str, volume: &VolumeConfig) -> (String, String) {
        let why = format!("its home, log or memory is attached as volume {other}");
        match self.lacks_log(name, volume) {
            Some(_) => (why, START_AGAIN.to_owned()),
            None => (why, format!("`holdfast umount {other}`, then `holdfast mount {name}`")),
        }
    }

    /// Why a volume that is not attached cannot be as it is configured, and what to do.
    pub(super) fn other_than_here(&self, name: &str, volume: &VolumeConfig) -> Option<String> {
        if let Some(other) = self.other_name(name, volume) {
            let (why, remedy) = self.other_name_text(name, &other, volume);
            return Some(format!("{why}: {remedy}"));
        }
        self.lacks_log(name, volume).map(|Problem { why, remedy, .. }| format!("{why}: {remedy}"))
    }

    /// That somebody else has the volume's log than whoever has it as it is configured by now: the
    /// server does not, and should, or does, as it did when the keeper started, and should not.
    fn lacks_log(&self, name: &str, volume: &VolumeConfig) -> Option<Problem> {
        let begun = self.begun.get()?;
        let had = begun.volumes.get(name).filter(|had| had.way == Way::Queue);
        if volume.way == Way::Queue && had.is_some_and(|had| had.served() == volume.served()) {
            return None;
        }
        let is_it =
            |(_, had): &(&String, &VolumeConfig)| had.way == Way::Queue && is_shared(had, volume);
        let whose = match (volume.way, begun.volumes.iter().find(is_it)) {
            (_, Some((other, _))) => format!("the server has its log as that of volume {other}"),
            (Way::Queue, None) => "the server does not have its log".to_owned(),
            (Way::Direct, None) => return None,
        };
        let by = match volume.way {
            Way::Queue => "by way of the queue",
            Way::Direct => "by the direct way",
        };
        let what = format!("attaching volume {name} {by}");
        Some(Problem::new(Exit::Usage, what, format!("{whose}: {CAME_LATER}"), START_AGAIN))
    }

    /// Who has the volume's log, if not its front end.
    pub(super) fn server_of(
        &self,
        name: &str,
        volume: &VolumeConfig,
    ) -> Outcome<Option<orders::Server>> {
        if let Some(problem) = self.lacks_log(name, volume) {
            return Err(problem);
        }
        match (volume.way, self.server.get().and_then(Option::as_ref)) {
            (Way::Direct, _) => Ok(None),
            (Way::Queue, Some(Ok(server))) => server.for_volume(name).map(Some),
            (Way::Queue, Some(Err(problem))) => Err(problem.clone()),
            (Way::Queue, None) => Err(server::not_served()),
        }
    }

    /// How the configuration differs from what the server started with, and what to do.
    pub(super) fn changed_settings(&self, config: &Config) -> Option<String> {
        let begun = self.begun.get()?;
        let sections =
            [("[server]", begun.server != config.server), ("[power]", begun.power != config.power)];
        let (section, _) = sections.into_iter().find(|(_, is_other)| *is_other)?;
        Some(format!(
            "the configuration has other settings in {section} by now, and the keeper goes on as \
             it started: put back what it had, or {START_AGAIN}"
        ))
    }

    /// How the configuration differs from what is attached, for people, and what to do about it.
    pub(super) fn changed(
        &self,
        attached: &Attached,
        config: &Config,
        name: &str,
    ) -> Option<String> {
        let Some(volume) = config.volumes.get(name) else {
            return Some(format!("the configuration no longer has it: `holdfast umount {name}`"));
        };
        if *volume == attached.volume {
            return None;
        }
        if !attached.is_as_in(config, name) {
            let others = other_places(&attached.volume, volume).join(" and ");
            return Some(format!(
                "the configuration has another {others} for it by now: put back what it had, or \
                 `holdfast umount {name}`"
            ));
        }
        let again = match self.lacks_log(name, volume) {
            Some(_) => START_AGAIN.to_owned(),
            None => format!("`holdfast umount {name}`, then `holdfast mount {name}`"),
        };
        Some(format!(
            "the configuration has other settings for it by now, and it goes on as it was \
             mounted: put back what it had, or {again}"
        ))
    }

    /// Forgets what was given back and is not what the configuration has under this name.
    pub(super) fn forget_given_back(&self, config: &Config) {
        let is_over = |name: &String, attached: &Attached| {
            let is_given_back = attached.life.known().state == State::Detached;
            is_given_back && !attached.is_as_in(config, name)
        };
        self.lock().retain(|name, entry| match entry {
            Entry::Here(attached) => !is_over(name, attached),
            Entry::Coming(_) => true,
        });
    }

    /// Forgets what is over, and is not what the configuration has under this name; says so.
    pub(super) fn forget(&self, name: &str) -> Option<String> {
        let config = self.config().ok()?;
        let mut volumes = self.lock();
        let Some(Entry::Here(attached)) = volumes.get(name).cloned() else { return None };
        let known = attached.life.known();
        let state = known.state;
        if attached.is_as_in(&config, name) || !known.is_over() {
            return None;
        }
        volumes.remove(name);
        let log = attached.volume.log.display();
        Some(match state {
            State::Detached => {
                let complete = known.complete_text(&attached.volume.home);
                format!("{name} was given back already: {complete}")
            }
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
}

fn is_same(one: &VolumeConfig, other: &VolumeConfig) -> bool {
    other_places(one, other).is_empty()
}

/// Which places of a volume differ, by their keys.
fn other_places(one: &VolumeConfig, other: &VolumeConfig) -> Vec<&'static str> {
    let places = [
        ("home", one.home != other.home),
        ("log", one.log != other.log),
        ("mount", one.mount != other.mount),
        ("memory", one.medium() != other.medium()),
    ];
    places.into_iter().filter_map(|(key, differs)| differs.then_some(key)).collect()
}

/// Whether two volumes could not be attached at the same time.
pub(super) fn is_shared(one: &VolumeConfig, other: &VolumeConfig) -> bool {
    let medium = one.medium();
    let is_of_both = medium != Medium::Private && medium == other.medium();
    is_of_both || one.home == other.home || one.log == other.log
}
