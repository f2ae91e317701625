//! The power, for the keeper: it is followed from the beginning, and drilled when somebody asks.
//!
//! Promise: what the keeper began with is what it follows; a source that cannot be followed keeps
//! no volume from being served.
//! Never: asks the source.

use super::{Entry, Keeper};
use crate::power::Power;
use crate::supervisor::progress::Progress;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::{Config, VolumeConfig};

impl Keeper {
    /// Follows the power, if the configuration names a source.
    ///
    /// # Errors
    /// It cannot be followed; volumes wait for their disks then.
    pub fn start_power(&self, config: &Config) -> Outcome<()> {
        let Some(power) = &config.power else { return Ok(()) };
        let _is_first = self.power.set(Power::start(power, config)?);
        Ok(())
    }

    /// The power is about to fail, says a signal.
    pub fn notice_power(&self) {
        match self.power.get() {
            Some(power) => power.notice(),
            None => tracing::info!("a signal says that the power fails; none is followed"),
        }
    }

    /// Shows whether what may be in memory gets to the disks in the time that there is.
    pub(super) fn drill(&self, say: Progress<'_>) -> Outcome<String> {
        let power = self.power.get().ok_or_else(|| {
            let remedy = "name a source under [power], then start the keeper again: docs/power.md";
            Problem::new(Exit::Usage, "drilling", "no power source is configured", remedy)
        })?;
        power.drill(&self.leased(), say)
    }

    /// The volumes whose memory may acknowledge because of the power.
    fn leased(&self) -> Vec<(String, VolumeConfig)> {
        let entries = self.lock().clone();
        let here = entries.into_iter().filter_map(|(name, it)| Some((name, Entry::here(it)?)));
        let leased = here.filter(|(_, it)| it.power.is_some() && it.may_be_leased());
        leased.map(|(name, it)| (name, it.volume.clone())).collect()
    }
}
