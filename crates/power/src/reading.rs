//! What a source says, in the words that NUT has for it.
//!
//! Promise: two variables are understood, `ups.status` and `battery.runtime`, and anything that
//! contradicts itself, says nothing of what powers the machine, or is no number where one belongs,
//! is no reading. A status with a word that is not known tells of no mains: drivers have their own,
//! and some say that they hear nothing from the UPS any more. Other variables are left out.
//! Never: guesses.

use crate::state::{Line, Reading};

/// Longer than any of these texts.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 10;

const STATUS: &str = "ups.status";
const RUNTIME: &str = "battery.runtime";

/// With what `upsc` begins when it has nothing to tell, or nothing new.
const FAILURE: &str = "Error:";

/// A UPS that would not keep the machine up.
const FAULTS: [&str; 5] = ["OFF", "BYPASS", "OVER", "RB", "ALARM"];

/// What says nothing against one.
const HARMLESS: [&str; 11] =
    ["OL", "CHRG", "DISCHRG", "HB", "TRIM", "BOOST", "ECO", "LB", "FSD", "CAL", "TEST"];

/// The reading in lines of `name: value`, as `upsc` prints them.
///
/// # Errors
/// Why there is none, for people.
pub fn parse(text: &str) -> Result<Reading, String> {
    if let Some(failure) = text.lines().find(|line| line.starts_with(FAILURE)) {
        return Err(format!("it says {failure:?}"));
    }
    let variables = text.lines().filter_map(|line| line.split_once(':'));
    let value = |name: &str| {
        let mut of_name = variables.clone().filter(|(it, _)| it.trim() == name);
        let value = of_name.next().map(|(_, value)| value.trim().to_owned());
        match of_name.next() {
            Some(_) => Err(format!("it says {name} twice")),
            None => Ok(value),
        }
    };
    let (status, runtime) = (value(STATUS)?, value(RUNTIME)?);
    of(&status.ok_or_else(|| format!("it does not say {STATUS}"))?, runtime.as_deref())
}

/// The reading of the two values.
///
/// # Errors
/// Why there is none, for people.
pub(crate) fn of(status: &str, runtime: Option<&str>) -> Result<Reading, String> {
    let is = |word: &str| status.split_whitespace().any(|it| it == word);
    let line = match (is("OL"), is("OB")) {
        (true, false) => Line::Mains,
        (false, true) => Line::Battery,
        (true, true) => return Err(format!("{STATUS} is both on line and on battery: {status:?}")),
        (false, false) => return Err(format!("{STATUS} says neither OL nor OB: {status:?}")),
    };
    let is_known = |it: &&str| HARMLESS.contains(it) || FAULTS.contains(it);
    if line == Line::Mains
        && let Some(word) = status.split_whitespace().find(|it| !is_known(it))
    {
        return Err(format!("{STATUS} says {word}, which is not known: {status:?}"));
    }
    let is_faulty = FAULTS.into_iter().any(is);
    // The mains are there, and the battery is used all the same.
    let is_faulty = is_faulty || line == Line::Mains && is("DISCHRG");
    Ok(Reading {
        line,
        is_low: is("LB") || is("FSD"),
        is_testing: is("CAL") || is("TEST"),
        is_faulty,
        hold_up_ms: runtime.map(milliseconds).transpose()?,
    })
}

/// Seconds, which may have a fraction.
fn milliseconds(seconds: &str) -> Result<u64, String> {
    let understood = seconds.parse::<f64>().ok().filter(|it| (0.0..1e9).contains(it));
    let understood = understood.map(|it| (it * 1000.0) as u64);
    understood.ok_or_else(|| format!("{RUNTIME} is no number of seconds: {seconds:?}"))
}

#[cfg(test)]
mod tests;
