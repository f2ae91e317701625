//! A trace of page accesses, as text.
//!
//! Promise: a line is `r PAGE` or `w PAGE`, empty, or a comment behind `#`; whatever else is
//! refused with its line. Pages may have any numbers below 2^64.
//! Never: has more than four bytes in memory for an access.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::io::{self, BufRead};

use crate::requests::Request;

/// Pages that a trace may have: the lowest bit of an access says whether it writes.
const PAGES_MAX: usize = 1 << 31;

/// Accesses to pages, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Twice the page, plus one for a write. Pages are numbered as they come.
    accesses: Vec<u32>,
    pages: u32,
}

/// A trace that cannot be used: correct the line, and read it again.
#[derive(Debug)]
pub struct TraceError {
    /// The line, from 1; that behind the last one, if the end is what is wrong.
    pub line: u64,
    /// What is wrong with it.
    pub fault: TraceFault,
}

/// What is wrong with a line of a trace.
#[derive(Debug)]
#[non_exhaustive]
pub enum TraceFault {
    /// It could not be read, or is not text.
    Io(io::Error),
    /// It does not begin with `r` or `w`.
    Kind(String),
    /// There is no number of a page behind that, or something behind the number.
    Page(String),
    /// It names more pages than a trace may have.
    TooManyPages,
    /// The trace ends without two accesses to different pages.
    Empty,
}

impl Trace {
    /// Reads a trace.
    ///
    /// # Errors
    /// At the first line that is none.
    pub fn read(lines: impl BufRead) -> Result<Trace, TraceError> {
        let mut trace = Trace { accesses: Vec::new(), pages: 0 };
        let mut numbers = HashMap::new();
        let mut line = 0;
        for text in lines.lines() {
            line += 1;
            let access = text.map_err(TraceFault::Io).and_then(|text| access(&text));
            let noted = access.and_then(|access| trace.note(&mut numbers, access));
            noted.map_err(|fault| TraceError { line, fault })?;
        }
        match trace.pages {
            0 | 1 => Err(TraceError { line: line + 1, fault: TraceFault::Empty }),
            _ => Ok(trace),
        }
    }

    /// Adds the access of a line, if it has one.
    fn note(
        &mut self,
        numbers: &mut HashMap<u64, u32>,
        access: Option<(u64, bool)>,
    ) -> Result<(), TraceFault> {
        let Some((page, is_write)) = access else { return Ok(()) };
        if numbers.len() == PAGES_MAX {
            return Err(TraceFault::TooManyPages);
        }
        let page = match numbers.entry(page) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                self.pages += 1;
                *new.insert(self.pages - 1)
            }
        };
        self.accesses.push(page << 1 | u32::from(is_write));
        Ok(())
    }

    /// How many accesses there are.
    #[must_use]
    pub fn accesses(&self) -> usize {
        self.accesses.len()
    }

    /// How many pages are accessed.
    #[must_use]
    pub fn pages(&self) -> u32 {
        self.pages
    }

    /// The access at a place.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn request(&self, at: usize) -> Request {
        let access = self.accesses[at];
        Request { page: access >> 1, is_write: access & 1 == 1 }
    }

    /// All pages, the most accessed first.
    pub(crate) fn hottest_first(&self) -> Vec<u32> {
        let mut counts = vec![0_u64; self.pages as usize];
        self.accesses.iter().for_each(|access| counts[(access >> 1) as usize] += 1);
        let mut pages: Vec<u32> = (0..self.pages).collect();
        pages.sort_by_key(|page| u64::MAX - counts[*page as usize]);
        pages
    }
}

/// The page of a line, and whether it is written; `None` of a line without an access.
fn access(line: &str) -> Result<Option<(u64, bool)>, TraceFault> {
    let line = line.split('#').next().unwrap_or_default().trim();
    let Some((kind, page)) = line.split_once(char::is_whitespace) else {
        return match line {
            "" => Ok(None),
            "r" | "w" => Err(TraceFault::Page(line.into())),
            _ => Err(TraceFault::Kind(line.into())),
        };
    };
    let is_write = match kind {
        "r" => false,
        "w" => true,
        _ => return Err(TraceFault::Kind(line.into())),
    };
    let page = page.trim().parse().map_err(|_| TraceFault::Page(line.into()))?;
    Ok(Some((page, is_write)))
}

impl fmt::Display for TraceError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "line {}: {}", self.line, self.fault)
    }
}

impl std::error::Error for TraceError {}

impl fmt::Display for TraceFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TraceFault::Io(error) => write!(out, "it cannot be read: {error}"),
            TraceFault::Kind(line) => write!(out, "`{line}` begins neither with `r` nor with `w`"),
            TraceFault::Page(line) => write!(out, "`{line}` lacks the number of one page"),
            TraceFault::TooManyPages => write!(out, "more than {PAGES_MAX} pages are named"),
            TraceFault::Empty => write!(out, "the trace ends and has not named two pages"),
        }
    }
}

#[cfg(test)]
mod tests;
