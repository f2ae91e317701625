//! `bench-store`: what this transactional store and others do, beside the device.
//!
//! Promise: every store gets the same transactions with the same durability, in turns within one
//! run, and its sums agree after each; writes `store.json` and `store.svg` into a folder, and
//! `store-soak.json` and `store-soak.svg`, in which a store that is not measured this time stays as
//! it was. A store that acknowledged more than the device made durable ends the run.
//! Never: leaves a process or a store behind.

mod choice;
mod cleaning;
mod control;
mod drive;
mod effort;
mod flat;
mod gauge;
mod goals;
mod media;
mod panels;
mod peers;
mod postgres;
mod rates;
mod repair;
mod restart;
mod rounds;
mod scanning;
mod soak;
mod space;
mod subject;
mod tpcb;
mod updates;

use std::path::Path;
use std::process::ExitCode;

use holdfast_bench_common::Failure;
use holdfast_bench_common::flushes::{self, Device};
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::task::Task;
use holdfast_figures::Figures;

use crate::choice::{Choice, Part};
use crate::effort::Effort;
use crate::restart::Work;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    output::exit(
        "bench-store",
        match words[..] {
            ["--leave", name, mb, ms, folder] => leave(name, [mb, ms], folder),
            ["--restart", name, mb, ms, per_s, done, folder] => {
                again(name, [mb, ms], [per_s, done], folder)
            }
            ["--soak", name, time, every, folder] => soak_one(name, [time, every], folder),
            ["--long", ref rest @ ..] => run(rest, Effort::long),
            _ => run(&words, Effort::whole),
        },
    )
}

/// The process that is killed when it has done its work.
fn leave(name: &str, work: [&str; 2], folder: &str) -> Result<(), Failure> {
    restart::leave(peers::known(name)?, Work::parse(work)?, Path::new(folder))
}

/// The process after it.
fn again(name: &str, work: [&str; 2], before: [&str; 2], folder: &str) -> Result<(), Failure> {
    restart::restart(peers::known(name)?, Work::parse(work)?, before, Path::new(folder))
}

/// The process of a kind of store that is used for a long time.
fn soak_one(name: &str, times: [&str; 2], folder: &str) -> Result<(), Failure> {
    soak::soak(peers::known(name)?, times, Path::new(folder))
}

/// A run, which does so much if it is not a quick one.
fn run(words: &[&str], whole: fn() -> Effort) -> Result<(), Failure> {
    measure(&Task::parse("bench-store [--long]", words)?, whole())
}

fn measure(task: &Task, whole_effort: Effort) -> Result<(), Failure> {
    let choice = Choice::of(task.only.as_deref())?;
    let effort = task.effort(whole_effort, Effort::quick());
    let whole = Place::whole("bench-store-data")?;
    let device = Device::below(whole.path())?;
    let disk = flushes::told(device.as_ref(), "COMMITS");
    output::progress(&format!("disk: {disk}"));
    let class = "as said beside each figure; Disk survives process, os and power, Memory process";
    // A part stands beside the whole, and never in its place.
    let part = task.only.as_ref().map(|only| format!("-{}", only.replace(',', "-")));
    let name = format!("store{}", part.unwrap_or_default());
    let mut figures = Figures::here(&name, &disk, class);
    figures.figures = rounds::measure(&effort, &choice, &whole, device.as_ref())?;
    if !figures.figures.is_empty() {
        figures.write(&task.out, &panels::all(&figures))?;
        output::table(&figures);
    }
    let soaks = choice.kinds().iter().filter(|kind| choice.has(Part::Soak) && kind.has_entries);
    soaks.into_iter().try_for_each(|kind| {
        let soaked = soak::measure(kind, &effort, &whole)?;
        soak::summary::keep(&soaked, &task.out, &disk)
    })
}
