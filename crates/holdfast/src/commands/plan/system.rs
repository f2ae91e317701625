//! What `holdfast plan` is to simulate, out of a name, a file and flags.
//!
//! Promise: what is returned can be simulated; every refusal names the flag, the key or the line
//! that is wrong.
//! Never: guesses the size of a database or of memory.

use super::printed::refused;
use crate::cli::plan::{CleanPagesName, ColdPagesName, PlanFile, Settings, System};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::Size;
use holdfast_plan::paper::Named;
use holdfast_plan::{
    CleanPages, ColdPages, Configuration, ConfigurationFault, Load, Machine, Mix, Trace, TraceFault,
};
use std::fs::{self, File};
use std::io::{self, BufReader, ErrorKind};
use std::path::Path;
use std::sync::Arc;

/// What to say that nobody has said.
const NAME_IT: &str =
    "say --database (or --trace) and --memory, by flags or in a --file, or name a configuration";

/// The settings of a file.
fn read_file(path: &Path) -> Outcome<Settings> {
    let what = || format!("reading {}", path.display());
    let text = fs::read_to_string(path).map_err(|error| unreadable(what(), &error, "--file"))?;
    let file = PlanFile::parse(&text).map_err(|why| {
        let what = format!("understanding {}", path.display());
        let remedy = "correct the file; `holdfast plan curve --help` has its keys as flags";
        Problem::new(Exit::Usage, what, why, remedy)
    })?;
    Ok(file.plan)
}

/// What comes of a file that cannot be read. One that is not there, or is no text, is another than
/// was meant.
fn unreadable(what: String, error: &io::Error, flag: &str) -> Problem {
    let exit = match error.kind() {
        ErrorKind::NotFound | ErrorKind::InvalidData => Exit::Usage,
        _ => Exit::Failed,
    };
    Problem::new(exit, what, error, format!("see to the file, or name another with {flag}"))
}

/// What is to be simulated.
pub(super) fn configuration(system: System) -> Outcome<Configuration> {
    let mut settings = system.settings;
    if let Some(path) = &system.file {
        settings = settings.over(read_file(path)?);
    }
    if settings.trace.is_some() && settings.has_mix() {
        let remedy = "leave out the trace, or database, hot-pages, hot-requests and writes";
        return Err(refused("a trace has its own pages and its own mix of requests", remedy));
    }
    let configuration = settings.configuration(system.named.map(Named::configuration))?;
    configuration.check().map_err(|fault| refused(fault, remedy(&fault)))?;
    Ok(configuration)
}

fn remedy(fault: &ConfigurationFault) -> &'static str {
    match fault {
        ConfigurationFault::NoConventionalMemory => "say less for --durable, or more for --memory",
        ConfigurationFault::TooFewPages(_) => "say more for --database, or less for --page",
        ConfigurationFault::TooManyPages(_) => {
            "say less for --database and --memory, or more for --page"
        }
        ConfigurationFault::Part(..) => "correct --hot-pages, --hot-requests or --writes",
        ConfigurationFault::SlowDurable => "say more for --durable-mb-per-s",
        _ => "correct --clock-mhz, --page, --disk-mb-per-s or --durable-mb-per-s",
    }
}

impl Settings {
    /// Whether any of it is about requests that are drawn.
    fn has_mix(&self) -> bool {
        let parts = [self.hot_pages, self.hot_requests, self.writes];
        self.database.is_some() || parts.iter().any(Option::is_some)
    }

    /// These, and from others what they do not say. A trace hides the other's mix, and a database
    /// the other's trace.
    fn over(self, other: Settings) -> Settings {
        let other = match (self.trace.is_some(), self.database.is_some()) {
            (true, _) => {
                let (hot_pages, hot_requests, writes) = (None, None, None);
                Settings { database: None, hot_pages, hot_requests, writes, ..other }
            }
            (false, true) => Settings { trace: None, ..other },
            (false, false) => other,
        };
        Settings {
            database: self.database.or(other.database),
            memory: self.memory.or(other.memory),
            durable: self.durable.or(other.durable),
            page: self.page.or(other.page),
            trace: self.trace.or(other.trace),
            hot_pages: self.hot_pages.or(other.hot_pages),
            hot_requests: self.hot_requests.or(other.hot_requests),
            writes: self.writes.or(other.writes),
            cold_pages: self.cold_pages.or(other.cold_pages),
            clean_pages: self.clean_pages.or(other.clean_pages),
            disk_mb_per_s: self.disk_mb_per_s.or(other.disk_mb_per_s),
            durable_mb_per_s: self.durable_mb_per_s.or(other.durable_mb_per_s),
            clock_mhz: self.clock_mhz.or(other.clock_mhz),
            seed: self.seed.or(other.seed),
        }
    }

    /// What they come to, over what there was.
    fn configuration(&self, base: Option<Configuration>) -> Outcome<Configuration> {
        let machine = self.machine();
        let pages = |size: Option<Size>| size.map(|Size(bytes)| bytes / machine.page_bytes.max(1));
        let memory_pages = pages(self.memory).or(base.as_ref().map(|it| it.memory_pages));
        let memory_pages =
            memory_pages.ok_or_else(|| refused("nobody said how much memory there is", NAME_IT))?;
        let durable_pages = pages(self.durable).or(base.as_ref().map(|it| it.durable_pages));
        Ok(Configuration {
            machine,
            memory_pages,
            durable_pages: durable_pages.unwrap_or(0),
            load: self.load(pages(self.database), base)?,
            cold_pages: match self.cold_pages {
                None | Some(ColdPagesName::ToDisk) => ColdPages::ToDisk,
                Some(ColdPagesName::ToDurable) => ColdPages::ToDurable,
            },
            clean_pages: match self.clean_pages {
                None | Some(CleanPagesName::Written) => CleanPages::Written,
                Some(CleanPagesName::Dropped) => CleanPages::Dropped,
            },
            seed: self.seed.unwrap_or(1),
        })
    }

    fn machine(&self) -> Machine {
        let paper = Machine::PAPER;
        let millions = |of: Option<f64>, otherwise| of.map_or(otherwise, |of| of * 1e6);
        Machine {
            clock_hz: millions(self.clock_mhz, paper.clock_hz),
            page_bytes: self.page.map_or(paper.page_bytes, |Size(bytes)| bytes),
            disk_bytes_per_s: millions(self.disk_mb_per_s, paper.disk_bytes_per_s),
            durable_bytes_per_s: millions(self.durable_mb_per_s, paper.durable_bytes_per_s),
        }
    }

    fn load(&self, database_pages: Option<u64>, base: Option<Configuration>) -> Outcome<Load> {
        if let Some(path) = &self.trace {
            return read_trace(path).map(|trace| Load::Trace(Arc::new(trace)));
        }
        let pages = database_pages.or(base.map(|it| it.load.database_pages()));
        let pages =
            pages.ok_or_else(|| refused("nobody said how large the database is", NAME_IT))?;
        let paper = Mix::paper(pages);
        Ok(Load::Mix(Mix {
            database_pages: pages,
            hot_pages: self.hot_pages.unwrap_or(paper.hot_pages),
            hot_requests: self.hot_requests.unwrap_or(paper.hot_requests),
            writes: self.writes.unwrap_or(paper.writes),
        }))
    }
}

fn read_trace(path: &Path) -> Outcome<Trace> {
    let what = || format!("reading the trace {}", path.display());
    let file = File::open(path).map_err(|error| unreadable(what(), &error, "--trace"))?;
    Trace::read(BufReader::new(file)).map_err(|error| {
        let remedy = match &error.fault {
            TraceFault::Io(fault) => return unreadable(what(), fault, "--trace"),
            TraceFault::TooManyPages => "cut the trace off before that line",
            TraceFault::Empty => "write more accesses to it, as `r PAGE` or `w PAGE`",
            _ => "write an access as `r PAGE` or `w PAGE`, and the rest behind a `#`",
        };
        Problem::new(Exit::Usage, what(), error, remedy)
    })
}

#[cfg(test)]
mod tests;
