//! Sizes as people write them.
//!
//! Promise: `parse(&text(bytes)) == Ok(bytes)` for every number of bytes; only powers of 1024.
//! Never: guesses: `256M`, `1.5GiB` and `10MB` are refused, because one reader in two reads them
//! differently.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

const UNITS: [(&str, u32); 4] = [("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Bytes of a size such as `256MiB`, `64KiB` or `512B`. The error is a sentence.
pub fn parse(text: &str) -> Result<u64, String> {
    let refused = || format!("`{text}` is not a size such as \"256MiB\", \"64KiB\" or \"512B\"");
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    let (_, shift) = UNITS.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(refused)?;
    let number: u64 = number.parse().map_err(|_| refused())?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("`{text}` is more than 2^64 bytes"))
}

/// The shortest exact way to write a number of bytes: the largest unit that divides it.
pub fn text(bytes: u64) -> String {
    let fits = |shift: &u32| bytes > 0 && bytes.trailing_zeros() >= *shift;
    let (unit, shift) = UNITS.iter().find(|(_, shift)| fits(shift)).unwrap_or(&UNITS[3]);
    format!("{}{unit}", bytes >> shift)
}

/// A rounded size for people, such as `12.3 MiB`.
pub fn rounded(bytes: u64) -> String {
    let (unit, shift) = UNITS.iter().find(|(_, s)| bytes >= 1 << s).unwrap_or(&UNITS[3]);
    match shift {
        0 => format!("{bytes} B"),
        _ => format!("{:.1} {unit}", bytes as f64 / (1u64 << shift) as f64),
    }
}

/// A number of bytes that is written and read as [`text`] and [`parse`] do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&text(self.0))
    }
}

impl<'de> Deserialize<'de> for Size {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Size, D::Error> {
        let text = String::deserialize(from)?;
        parse(&text).map(Size).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Size {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

#[cfg(test)]
mod tests;
