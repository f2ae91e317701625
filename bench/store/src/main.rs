//! `bench-store`: what this transactional store and others do, beside the device.
//!
//! Promise: every store gets the same transactions with the same durability, in turns within one
//! run, and its sums agree after each; writes `store.json` and `store.svg` into a folder. A store
//! that acknowledged more than the device made durable ends the run.
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
mod subject;
mod tpcb;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use holdfast_bench_common::Failure;
use holdfast_bench_common::flushes::Device;
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;
use holdfast_figures::Figures;

use crate::choice::Choice;
use crate::effort::Effort;
use crate::restart::Work;

const USAGE: &str = "usage: bench-store --out FOLDER [--quick] [--only NAME,NAME...]";

/// What the command line asks for.
#[derive(Default)]
struct Task {
    out: PathBuf,
    quick: bool,
    only: Option<String>,
}

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
            _ => parse(&words).and_then(|task| measure(&task)),
        },
    )
}

fn parse(mut words: &[&str]) -> Result<Task, Failure> {
    let mut task = Task::default();
    while !words.is_empty() {
        words = match words {
            ["--out", out, rest @ ..] => {
                task.out = out.into();
                rest
            }
            ["--only", names, rest @ ..] => {
                task.only = Some((*names).into());
                rest
            }
            ["--quick", rest @ ..] => {
                task.quick = true;
                rest
            }
            _ => return Err(USAGE.into()),
        };
    }
    if task.out.as_os_str().is_empty() { Err(USAGE.into()) } else { Ok(task) }
}

/// The process that is killed when it has done its work.
fn leave(name: &str, work: [&str; 2], folder: &str) -> Result<(), Failure> {
    restart::leave(peers::known(name)?, Work::parse(work)?, Path::new(folder))
}

/// The process after it.
fn again(name: &str, work: [&str; 2], before: [&str; 2], folder: &str) -> Result<(), Failure> {
    restart::restart(peers::known(name)?, Work::parse(work)?, before, Path::new(folder))
}

fn measure(task: &Task) -> Result<(), Failure> {
    let choice = Choice::of(task.only.as_deref())?;
    let effort = Effort::new(task.quick);
    let whole = Place::whole("bench-store-data")?;
    let device = Device::below(whole.path())?;
    let disk = match &device {
        Some(device) => format!("{}, flushes counted", device.name()),
        None => {
            "one whose flushes cannot be counted: THAT COMMITS ARE DURABLE IS NOT CHECKED".into()
        }
    };
    output::progress(&format!("disk: {disk}"));
    let class = "as said beside each figure; Disk survives process, os and power, Memory process";
    let mut figures = Figures::here("store", &disk, class);
    figures.figures = rounds::measure(&effort, &choice, &whole, device.as_ref())?;
    figures.write(&task.out, &panels::all(&figures))?;
    output::table(&figures);
    Ok(())
}
