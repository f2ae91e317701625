//! What a source says, in the words that NUT has for it.
//!
//! Promise: two variables are understood, `ups.status` and `battery.runtime`, and anything that
//! contradicts itself, says nothing of what powers the machine, or is no number where one belongs,
//! is no reading. Words that are not known are left out: drivers have their own.
//! Never: guesses.

use crate::state::{Line, Reading};

/// Longer than any of these texts.
pub(crate) const TEXT_BYTES_MAX: usize = 64 << 10;

const STATUS: &str = "ups.status";
const RUNTIME: &str = "battery.runtime";

/// The reading in lines of `name: value`, as `upsc` prints them.
///
/// # Errors
/// Why there is none, for people.
pub fn parse(text: &str) -> Result<Reading, String> {
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
    let is_faulty = ["OFF", "BYPASS", "OVER", "RB", "ALARM"].into_iter().any(is);
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
