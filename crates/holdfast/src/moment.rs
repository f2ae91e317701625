//! Moments in the past of a store, as people write them.
//!
//! Promise: `parse(&time(utc_ns))` is that time, to the millisecond; always UTC.
//! Never: guesses: a number without a word before it is refused, since a store counts in two ways.

use holdfast_log::Lsn;
use holdfast_pages::{At, Rsn};

const MONTHS: [i64; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
const MS_A_DAY: i64 = 86_400_000;
const NS_A_MS: i64 = 1_000_000;

/// Years that a time in nanoseconds can be of.
const YEARS: std::ops::Range<i64> = 1970..2262;

/// The moment of a text such as `2026-11-22T12:00:00Z`, `rsn:4711` or `lsn:4711`. The error is a
/// sentence.
pub(crate) fn parse(text: &str) -> Result<At, String> {
    let place = |digits: &str| digits.parse().ok();
    let parsed = match text.split_once(':') {
        Some(("rsn", digits)) => place(digits).map(|rsn| At::Rsn(Rsn(rsn))),
        Some(("lsn", digits)) => place(digits).map(|lsn| At::Lsn(Lsn(lsn))),
        _ => utc_ms(text).map(|ms| At::Time(ms * NS_A_MS)),
    };
    parsed.ok_or_else(|| {
        format!("`{text}` is no moment such as 2026-11-22T12:00:00Z, rsn:4711 or lsn:4711")
    })
}

/// A time as text.
pub(crate) fn time(utc_ns: i64) -> String {
    let ms = utc_ns.div_euclid(NS_A_MS).max(0);
    let seconds = holdfast_figures::utc(ms.unsigned_abs() / 1000);
    format!("{}.{:03}Z", seconds.trim_end_matches('Z'), ms % 1000)
}

fn utc_ms(text: &str) -> Option<i64> {
    let (date, clock) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-')?;
    let (clock, ms) = clock.split_once('.').unwrap_or((clock, "000"));
    let [hours, minutes, seconds] = numbers(clock, ':')?;
    let ([ms], 3) = (numbers(ms, ' ')?, ms.len()) else { return None };
    let month = usize::try_from(month - 1).ok().filter(|month| *month < MONTHS.len())?;
    let is_there = YEARS.contains(&year)
        && (1..=days_in(year, month)).contains(&day)
        && hours < 24
        && minutes < 60
        && seconds < 60;
    let days = (YEARS.start..year).map(days_of).sum::<i64>()
        + (0..month).map(|month| days_in(year, month)).sum::<i64>()
        + (day - 1);
    let of_day = ((hours * 60 + minutes) * 60 + seconds) * 1000 + ms;
    is_there.then_some(days * MS_A_DAY + of_day)
}

/// Numbers with nothing but digits, and what is between them.
fn numbers<const N: usize>(text: &str, between: char) -> Option<[i64; N]> {
    let is_number = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    let parts: Vec<i64> =
        text.split(between).filter(is_number).map_while(|part| part.parse().ok()).collect();
    let whole = parts.len() == text.split(between).count();
    parts.try_into().ok().filter(|_| whole)
}

fn days_of(year: i64) -> i64 {
    (0..MONTHS.len()).map(|month| days_in(year, month)).sum()
}

/// Days in a month, which is counted from 0.
fn days_in(year: i64, month: usize) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    MONTHS[month] + i64::from(is_leap && month == 1)
}

#[cfg(test)]
mod tests;
