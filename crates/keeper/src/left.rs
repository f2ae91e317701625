//! What a keeper that has ended leaves behind, for people.
//!
//! Promise: names each volume that is not given back, and each memory that is not under its name,
//! with what to do.
//! Never: changes anything.

use crate::memory::{left_aside, put_under_its_name};
use crate::report::{NOT_MADE, VolumeStatus};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, VolumeConfig};
use holdfast_memory::Medium;

/// Refuses volumes that are not given back, except those of which enough is known.
pub fn refuse_volumes(config: &Config, is_known: impl Fn(&str) -> bool) -> Outcome<()> {
    let of = |(name, volume): (&String, &VolumeConfig)| {
        VolumeStatus::unattached(name, volume, config.power_of(volume))
    };
    let is_left =
        |it: &VolumeStatus| !["detached", "failed", NOT_MADE].contains(&it.state.as_str());
    let unknown = config.volumes.iter().filter(|(name, _)| !is_known(name));
    let left: Vec<VolumeStatus> = unknown.map(of).filter(is_left).collect();
    if left.is_empty() {
        return Ok(());
    }
    let listed =
        |text: fn(&VolumeStatus) -> String| left.iter().map(text).collect::<Vec<_>>().join(", ");
    let why = listed(|it| format!("volume {} is {}", it.name, it.state));
    let commands = listed(|it| format!("`holdfast umount {}`", it.name));
    let remedy = format!("see the keeper's log for the reason, then {commands}");
    let what = "giving every volume back";
    Err(Problem::new(Exit::Failed, what, format!("the keeper has ended, and {why}"), remedy))
}

/// What keepers that have ended left beside its name, each.
pub fn aside(config: &Config) -> Vec<Problem> {
    let problem = |medium: Medium| {
        let (left, path) = (left_aside(&medium)?, medium.path()?.to_owned());
        let (left, path) = (left.display(), path.display());
        let why = format!("the keeper has ended, and left the memory of {path} at {left}");
        let remedy = put_under_its_name(path, left);
        Some(Problem::new(Exit::Failed, "leaving all memory under its name", why, remedy))
    };
    config.media().filter_map(problem).collect()
}
