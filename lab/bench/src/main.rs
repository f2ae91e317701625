//! `bench-server`: how long a request through the queue takes, beside what else could carry it.
//!
//! Promise: every way is measured between two processes, in turns within the same run, and so is
//! every number of looks before sleep; writes `server.json` and `server.svg` into a folder.
//! Never: leaves a process behind.

mod payload;
#[allow(unsafe_code)]
mod raw;
mod rounds;
mod spins;
mod ways;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_bench_common::output;
use holdfast_figures::Figures;

/// What the command line asks for.
enum Task {
    /// Answers on standard input and output, pinned to a core, until it is killed.
    Echo { way: String, core: usize },
    /// Answers at the queue behind standard input, wherever it runs, until it is killed.
    Answer { spins: u32 },
    /// Keeps a core busy until it is killed.
    Busy { core: usize },
    /// Measures everything.
    Measure { out: PathBuf, quick: bool },
    /// Measures how long to look before sleeping, and prints it.
    Spins { quick: bool },
}

fn main() -> ExitCode {
    let done = parse(std::env::args().skip(1).collect()).and_then(|task| match task {
        Task::Echo { way, core } => echo(&way, core),
        Task::Answer { spins } => ways::answer_all(spins),
        Task::Busy { core } => ways::pin(core).map_err(Into::into).map(|()| ways::keep_busy()),
        Task::Spins { quick } => look(quick),
        Task::Measure { out, quick } => measure(&out, quick),
    });
    output::exit("bench-server", done)
}

fn parse(words: Vec<String>) -> Result<Task, Box<dyn Error>> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["--echo", way, core] => Ok(Task::Echo { way: way.into(), core: core.parse()? }),
        ["--answer", spins] => Ok(Task::Answer { spins: spins.parse()? }),
        ["--busy", core] => Ok(Task::Busy { core: core.parse()? }),
        ["--spins"] => Ok(Task::Spins { quick: false }),
        ["--spins", "--quick"] => Ok(Task::Spins { quick: true }),
        ["--out", out] => Ok(Task::Measure { out: out.into(), quick: false }),
        ["--out", out, "--quick"] => Ok(Task::Measure { out: out.into(), quick: true }),
        _ => Err("usage: bench-server (--out FOLDER | --spins) [--quick]".into()),
    }
}

fn echo(way: &str, core: usize) -> Result<(), Box<dyn Error>> {
    ways::pin(core)?;
    match way {
        payload::NAME => payload::echo(),
        name => ways::named(name).ok_or("no such way")?.echo(),
    }
}

fn measure(out: &Path, quick: bool) -> Result<(), Box<dyn Error>> {
    let effort = rounds::Effort::new(quick);
    let mut figures = none();
    figures.figures.extend(rounds::measure(&effort)?);
    figures.figures.extend(payload::measure(&effort)?);
    figures.figures.extend(spins::measure(&effort)?);
    let mut panels = rounds::panels();
    panels.extend(spins::panels());
    figures.write(out, &panels)?;
    output::table(&figures);
    Ok(())
}

/// How long to look alone.
fn look(quick: bool) -> Result<(), Box<dyn Error>> {
    let mut figures = none();
    figures.figures.extend(spins::measure(&rounds::Effort::new(quick))?);
    output::table(&figures);
    Ok(())
}

fn none() -> Figures {
    Figures::here("server", "none", "none: a request is answered, not kept")
}
