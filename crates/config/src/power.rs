//! `[power]`: what keeps the machine up after the mains have failed.
//!
//! Promise: as for volumes: what is returned was checked without looking at the machine; exactly
//! one source is named.
//! Never: asks the source.

use crate::values::check_path;
use holdfast_power::source::Kind;
use holdfast_power::state::Terms;
use serde::Deserialize;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How often the source is asked: a UPS is asked by its own driver less often than that. More often
/// than the least is no use, and less often than the most is none.
const ASKED_EVERY_MS_DEFAULT: u64 = 1000;
const ASKED_EVERY_MS: RangeInclusive<u64> = 10..=60_000;

/// For how many times of asking an answer counts.
const FRESH: u64 = 5;

/// Less is no time to drain in, whatever there is to drain.
const DRAIN_MS_MIN: u64 = 20;

const RESERVE_MS_DEFAULT: u64 = 60_000;
const SETTLE_MS_DEFAULT: u64 = 60_000;
const DRILL_DAYS_DEFAULT: u64 = 90;
const DAY_MS: u64 = 86_400_000;

/// More than that of any of these is a mistake: years.
const MS_MAX: u64 = 10 * 365 * DAY_MS;

/// Where drills are noted unless the configuration says otherwise.
const DRILLS_DEFAULT: &str = "/var/lib/holdfast/drills.jsonl";

/// `[power]`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PowerConfig {
    /// A UPS that NUT knows.
    #[serde(default)]
    pub nut: Option<NutConfig>,
    /// A program and its arguments that prints what `upsc` would.
    #[serde(default)]
    pub command: Option<Vec<String>>,
    /// A file in which somebody writes that, again and again.
    #[serde(default)]
    pub file: Option<PathBuf>,
    /// The hold-up that is believed at most, in milliseconds; that of a source that tells none.
    #[serde(default)]
    pub hold_up_ms: Option<u64>,
    /// What of it is kept for noticing, and for everything else that goes down, in milliseconds.
    #[serde(default = "reserve_default")]
    pub reserve_ms: u64,
    /// How long all has to be well before memory acknowledges, in milliseconds.
    #[serde(default = "settle_default")]
    pub settle_ms: u64,
    /// How often the source is asked, in milliseconds.
    #[serde(default = "asked_every_default")]
    pub asked_every_ms: u64,
    /// How long a drill proves anything, in days.
    #[serde(default = "drill_days_default")]
    pub drill_days: u64,
    /// Where drills are noted.
    #[serde(default = "drills_default")]
    pub drills: PathBuf,
}

/// `nut = { ... }`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NutConfig {
    /// Where `upsd` listens: an address and a port.
    pub address: SocketAddr,
    /// What it calls the UPS.
    pub ups: String,
}

fn reserve_default() -> u64 {
    RESERVE_MS_DEFAULT
}

fn settle_default() -> u64 {
    SETTLE_MS_DEFAULT
}

fn asked_every_default() -> u64 {
    ASKED_EVERY_MS_DEFAULT
}

fn drill_days_default() -> u64 {
    DRILL_DAYS_DEFAULT
}

fn drills_default() -> PathBuf {
    DRILLS_DEFAULT.into()
}

impl PowerConfig {
    pub(crate) fn check(&self) -> Result<(), String> {
        let named = usize::from(self.nut.is_some())
            + usize::from(self.command.is_some())
            + usize::from(self.file.is_some());
        if named != 1 {
            return Err(format!("it names {named} sources: set one of nut, command and file"));
        }
        if let Some(NutConfig { ups, .. }) = &self.nut {
            check_ups(ups)?;
        }
        if let Some(words) = &self.command {
            let program = words.first().ok_or("command is empty: name a program")?;
            check_path("command", Path::new(program))?;
        }
        self.file.iter().try_for_each(|path| check_path("file", path))?;
        check_path("drills", &self.drills)?;
        if !ASKED_EVERY_MS.contains(&self.asked_every_ms) {
            let (least, most) = (ASKED_EVERY_MS.start(), ASKED_EVERY_MS.end());
            let found = self.asked_every_ms;
            return Err(format!("asked_every_ms = {found} is not between {least} and {most}"));
        }
        if self.drill_days == 0 {
            return Err("drill_days = 0 would have no drill prove anything".into());
        }
        self.check_times()
    }

    fn check_times(&self) -> Result<(), String> {
        if self.hold_up_ms.is_some_and(|it| it <= self.reserve_ms) {
            let (hold_up_ms, reserve_ms) = (self.hold_up_ms.unwrap_or(0), self.reserve_ms);
            return Err(format!(
                "hold_up_ms = {hold_up_ms} leaves nothing beside reserve_ms = {reserve_ms}"
            ));
        }
        let fresh_ms = self.fresh_ms();
        if self.reserve_ms < fresh_ms {
            let reserve_ms = self.reserve_ms;
            return Err(format!(
                "reserve_ms = {reserve_ms} is less than the {fresh_ms} ms after which a source \
                 that tells nothing any more is noticed: {FRESH} times asked_every_ms"
            ));
        }
        let times = [
            ("hold_up_ms", self.hold_up_ms.unwrap_or(0)),
            ("reserve_ms", self.reserve_ms),
            ("settle_ms", self.settle_ms),
            ("drill_days", self.drill_days.saturating_mul(DAY_MS)),
        ];
        let too_long = times.into_iter().find(|(_, ms)| *ms > MS_MAX);
        too_long.map_or(Ok(()), |(key, _)| Err(format!("{key} is more than ten years")))
    }

    /// Who is asked.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match (&self.nut, &self.command, &self.file) {
            (Some(NutConfig { address, ups }), ..) => {
                Kind::Nut { address: *address, ups: ups.clone() }
            }
            (_, Some(words), _) => Kind::Command(words.clone()),
            (_, _, Some(path)) => Kind::File(path.clone()),
            (None, None, None) => unreachable!("one source is named"),
        }
    }

    /// What has to hold before memory may acknowledge.
    #[must_use]
    pub fn terms(&self) -> Terms {
        Terms {
            hold_up_ms: self.hold_up_ms,
            reserve_ms: self.reserve_ms,
            drain_ms_min: DRAIN_MS_MIN,
            fresh_ms: self.fresh_ms(),
            settle_ms: self.settle_ms,
            drill_ms: self.drill_days * DAY_MS,
        }
    }

    fn fresh_ms(&self) -> u64 {
        self.asked_every_ms * FRESH
    }

    /// How long an answer may take: there is time left in which it counts.
    #[must_use]
    pub fn patience(&self) -> Duration {
        Duration::from_millis(self.asked_every_ms * (FRESH - 1))
    }

    /// How often the source is asked.
    #[must_use]
    pub fn asked_every(&self) -> Duration {
        Duration::from_millis(self.asked_every_ms)
    }

    /// Who is asked, for people.
    #[must_use]
    pub fn source_text(&self) -> String {
        match self.kind() {
            Kind::Nut { address, ups } => format!("UPS {ups} of upsd at {address}"),
            Kind::Command(words) => format!("command {}", words.join(" ")),
            Kind::File(path) => format!("file {}", path.display()),
        }
    }
}

/// It stands in a line of NUT's protocol.
fn check_ups(ups: &str) -> Result<(), String> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
    match !ups.is_empty() && ups.chars().all(is_plain) {
        true => Ok(()),
        false => Err(format!("nut.ups = {ups:?} is no name of a UPS")),
    }
}

#[cfg(test)]
mod tests;
