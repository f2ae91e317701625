//! A trace of page accesses, as text.
//!
//! Promise: a line is `r PAGE` or `w PAGE`, empty, or a comment behind `#`; whatever else is
//! refused with its line. Pages may have any numbers below 2^64.
//! Never: has more than four bytes in memory for an access.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::io::{self, BufRead, Read};

use crate::request::Request;

/// Pages that a trace may have: the lowest bit of an access says whether it writes.
const PAGES_MAX: usize = 1 << 31;

/// Bytes of a line, at most: what is longer is no trace.
const LINE_BYTES_MAX: usize = 4096;

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
    /// It could not be read.
    Io(io::Error),
    /// It is longer than lines of a trace are, or is not text.
    NotText,
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
    pub fn read(mut lines: impl BufRead) -> Result<Trace, TraceError> {
        let mut trace = Trace { accesses: Vec::new(), pages: 0 };
        let (mut numbers, mut bytes) = (HashMap::new(), Vec::new());
        for line in 1.. {
            let is_read = trace.read_line(&mut lines, &mut bytes, &mut numbers);
            if !is_read.map_err(|fault| TraceError { line, fault })? {
                break;
            }
        }
        Ok(trace)
    }

    /// Adds the access of the next line, if it has one. Returns false behind the last line.
    fn read_line(
        &mut self,
        lines: &mut impl BufRead,
        bytes: &mut Vec<u8>,
        numbers: &mut HashMap<u64, u32>,
    ) -> Result<bool, TraceFault> {
        let text = match next_line(lines, bytes)? {
            Some(text) => text,
            None if self.pages < 2 => return Err(TraceFault::Empty),
            None => return Ok(false),
        };
        match access(text)? {
            Some((page, is_write)) => self.note(numbers, page, is_write).map(|()| true),
            None => Ok(true),
        }
    }

    /// Adds an access.
    fn note(
        &mut self,
        numbers: &mut HashMap<u64, u32>,
        page: u64,
        is_write: bool,
    ) -> Result<(), TraceFault> {
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

/// Reads a line into the bytes; `None` behind the last one.
fn next_line<'a>(
    lines: &mut impl BufRead,
    bytes: &'a mut Vec<u8>,
) -> Result<Option<&'a str>, TraceFault> {
    bytes.clear();
    lines.take(LINE_BYTES_MAX as u64).read_until(b'\n', bytes).map_err(TraceFault::Io)?;
    match bytes.last() {
        None => Ok(None),
        Some(last) if *last != b'\n' && bytes.len() == LINE_BYTES_MAX => Err(TraceFault::NotText),
        Some(_) => str::from_utf8(bytes).map(Some).map_err(|_| TraceFault::NotText),
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
            TraceFault::NotText => write!(out, "it is not text of up to {LINE_BYTES_MAX} bytes"),
            TraceFault::Kind(line) => write!(out, "`{line}` begins neither with `r` nor with `w`"),
            TraceFault::Page(line) => write!(out, "`{line}` lacks the number of one page"),
            TraceFault::TooManyPages => write!(out, "more than {PAGES_MAX} pages are named"),
            TraceFault::Empty => write!(out, "the trace ends and has not named two pages"),
        }
    }
}

#[cfg(test)]
mod tests;
