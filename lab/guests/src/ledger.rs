//! What was acknowledged, compared with what is there.
//!
//! Promise: a row that was acknowledged and is gone is counted, and so is each row that is missing
//! below another one of its writer's, and each that is not what was written. A writer of which
//! nothing was said is an error of the caller's.
//! Never: complains of a row that is there without an acknowledgement; its commit had not returned.

use crate::sentence::{Found, Sentence, Writer};
use std::collections::BTreeMap;
use std::fmt;

/// The highest number acknowledged to each writer. Writers commit their rows in order, so every
/// lower one was acknowledged too.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ledger {
    highest: BTreeMap<Writer, u64>,
}

/// What a boot has shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Rows acknowledged so far.
    pub(crate) acknowledged: u64,
    /// Of those, the ones above the highest that is there.
    pub(crate) lost: u64,
    /// Rows missing below the highest.
    pub(crate) holes: u64,
    /// Rows that are not what was written.
    pub(crate) wrong: u64,
}

impl Ledger {
    /// Notes an acknowledgement.
    pub(crate) fn note(&mut self, writer: Writer, number: u64) {
        let highest = self.highest.entry(writer).or_default();
        *highest = number.max(*highest);
    }

    /// Notes what a guest says, if it is an acknowledgement.
    pub(crate) fn hear(&mut self, sentence: &Sentence) {
        if let Sentence::Done(writer, number) = *sentence {
            self.note(writer, number);
        }
    }

    /// Rows acknowledged to a writer.
    pub(crate) fn of(&self, writer: Writer) -> u64 {
        self.highest.get(&writer).copied().unwrap_or(0)
    }

    /// Rows acknowledged.
    pub(crate) fn rows(&self) -> u64 {
        self.highest.values().sum()
    }

    /// Compares with what a boot found, one entry a writer.
    pub(crate) fn judge(&self, found: &[Found]) -> Verdict {
        let mut verdict = Verdict { acknowledged: self.rows(), ..Verdict::default() };
        for it in found {
            verdict.lost += self.of(it.writer).saturating_sub(it.highest);
            verdict.holes += it.highest.saturating_sub(it.rows);
            verdict.wrong += it.wrong;
        }
        verdict
    }

    /// Goes on from what was found: it counts as acknowledged from now on.
    pub(crate) fn adopt(&mut self, found: &[Found]) {
        found.iter().for_each(|it| self.note(it.writer, it.highest));
    }
}

impl Verdict {
    /// True if nothing is missing or wrong.
    pub(crate) fn is_clean(&self) -> bool {
        (self.lost, self.holes, self.wrong) == (0, 0, 0)
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Verdict { acknowledged, lost, holes, wrong } = self;
        write!(out, "{acknowledged} acknowledged, {lost} lost, {holes} holes, {wrong} wrong")
    }
}

#[cfg(test)]
mod tests;
