//! `bench-files`: what programs do with files, on volumes of both classes, on the file system below
//! them, and on FUSE file systems that do nothing else.
//!
//! Promise: every place gets the same work, in turns within one run, on the same disk; a figure
//! over ext4 is that of the class that does worse; writes `files.json` and `files.svg` into a
//! folder.
//! Never: leaves a process, a mount or a file behind.

mod database;
mod goals;
mod places;
mod work;

use std::process::ExitCode;

use holdfast_bench_common::Failure;
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::task::Task;
use holdfast_figures::Figures;

use crate::database::Databases;
use crate::places::Places;
use crate::work::Effort;

/// Where the program that is measured is.
const HOLDFAST: &str = "HOLDFAST";
/// The part of a run that needs PostgreSQL.
const DATABASE: &str = "pg";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    output::exit("bench-files", Task::parse("bench-files", &words).and_then(|task| measure(&task)))
}

fn measure(task: &Task) -> Result<(), Failure> {
    let holdfast = std::env::var(HOLDFAST).map_err(|_| "HOLDFAST names no program")?;
    let place = Place::whole("bench-files-place")?;
    let mut places = Places::mount(&place, holdfast.as_ref())?;
    let mut ledger = Ledger::default();
    let asked =
        |part: &str| task.only.as_deref().is_none_or(|only| only.split(',').any(|it| it == part));
    if asked("files") {
        let effort = task.effort(Effort::WHOLE, Effort::QUICK);
        for round in 0..task.effort(5, 1) {
            output::progress(&format!("files, round {}", round + 1));
            work::round(&mut places, round, &effort, &mut ledger)?;
        }
    }
    if asked(DATABASE) {
        let effort = task.effort(database::Effort::WHOLE, database::Effort::QUICK);
        let mut databases = Databases::make(&places, &effort)?;
        for round in 0..task.effort(5, 1) {
            output::progress(&format!("databases, round {}", round + 1));
            databases.round(&places, round, &effort, &mut ledger)?;
        }
    }
    places.unmount()?;
    let mut figures = Figures::here("files", &goals::disk(), goals::CLASS);
    figures.figures.extend(goals::over_ext4(&ledger));
    figures.figures.extend(ledger.figures());
    figures.write(&task.out, &goals::panels())?;
    output::table(&figures);
    Ok(())
}
