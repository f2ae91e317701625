//! What was kept of volumes, taken up.
//!
//! Promise: the keeper begins with the configuration as it was for what is kept, and with what the
//! file says for all else; nothing else takes what a kept volume is made of.
//! Never: decides what becomes of what was kept.

use super::configured::is_shared;
use super::{Entry, Keeper};
use crate::kept::remains::{self, Fate};
use crate::supervisor::front_end::known::KnownFront;
use holdfast_config::problem::Outcome;
use holdfast_config::{Config, DiskConfig, VolumeConfig};

impl Keeper {
    /// The configuration to begin with: what is kept is as it was kept. Ends what outlived an
    /// earlier keeper of it.
    pub fn begin_as_kept(&self, mut config: Config) -> Config {
        for name in self.remains.names() {
            let (was, now) = (self.remains.was(&name), config.volumes.get(&name).cloned());
            let fate = self.remains.fate(&name, now.as_ref());
            match fate {
                Some(Fate::TakenUp(volume)) => {
                    remains::end_who_outlived(&name, &volume);
                    if now.as_ref() != Some(&*volume) {
                        tell_changed(&format!("volume {name}"));
                    }
                    set_aside_others(&mut config, &name, &volume);
                    config.volumes.insert(name, *volume);
                }
                Some(Fate::Refused(problem)) if now.is_none() => tracing::error!("{problem}"),
                // Whoever attaches it is told.
                Some(Fate::Refused(_)) | None => {}
                Some(Fate::LetGo) => {
                    let volume = was.or(now);
                    volume.inspect(|volume| remains::end_who_outlived(&name, volume));
                }
            }
        }
        self.have_disks_as_kept(&mut config);
        config
    }

    fn have_disks_as_kept(&self, config: &mut Config) {
        for name in self.kept_disks.names() {
            let now = config.disks.get(&name);
            let Some(was) = self.kept_disks.kept_as(&name, now) else { continue };
            if now != Some(&was) {
                tell_changed(&format!("disk {name}"));
            }
            let is_other = |it: &DiskConfig| it.medium() != was.medium();
            config.disks.retain(|other, it| *other == name || is_other(it));
            config.disks.insert(name, was);
        }
    }

    /// As what a volume is taken up, if something is kept of it.
    pub(super) fn kept_as(&self, name: &str, config: &Config) -> Outcome<Option<VolumeConfig>> {
        match self.remains.fate(name, config.volumes.get(name)) {
            Some(Fate::TakenUp(volume)) => Ok(Some(*volume)),
            Some(Fate::Refused(problem)) => Err(problem),
            Some(Fate::LetGo) | None => Ok(None),
        }
    }

    /// Whether programs may be on something that the keeper has, or was given: it must not end by
    /// itself.
    pub fn has_users(&self) -> bool {
        let is_here = |entry: &Entry| match entry {
            Entry::Here(attached) => !attached.life.known().is_over(),
            Entry::Coming(_) => false,
        };
        let serves = |front: &Outcome<KnownFront>| front.as_ref().is_ok_and(|it| !it.is_over());
        !self.remains.names().is_empty()
            || !self.kept_disks.names().is_empty()
            || self.lock().values().any(is_here)
            || self.disks().known().values().any(serves)
    }
}

fn tell_changed(whose: &str) {
    tracing::warn!(
        "{whose} is taken up as it was kept: the configuration was changed meanwhile; see \
         `holdfast status`"
    );
}

/// What the configuration calls by another name by now is not served beside what it was.
fn set_aside_others(config: &mut Config, name: &str, volume: &VolumeConfig) {
    config.volumes.retain(|other, it| {
        let is_free = other == name || !is_shared(it, volume);
        if !is_free {
            tracing::error!(
                "volume {other} is not served: its home, log or memory is that of volume {name}, \
                 which is kept; see `holdfast status`"
            );
        }
        is_free
    });
}
