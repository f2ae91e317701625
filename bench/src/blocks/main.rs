//! `bench-blocks`: how long a disk in durable memory takes beside a bare copy of the same bytes.
//!
//! Promise: disk and copy lie in the same kind of memory, as much of it, and are measured in turns
//! within the same run; writes `blocks.json` and `blocks.svg` into a folder.
//! Never: measures a protocol: the disk is called in the same process.

#[allow(unsafe_code)]
mod raw;
mod rounds;

use std::process::ExitCode;

use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_figures::Figures;

fn main() -> ExitCode {
    output::exit("bench-blocks", run())
}

fn run() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let task = Task::parse("bench-blocks", &words)?;
    let class = "what the memory survives: a write is there when it returns";
    let mut figures = Figures::here("blocks", "none", class);
    figures.figures.extend(rounds::measure(&task)?);
    figures.write(&task.out, &rounds::panels())?;
    output::table(&figures);
    Ok(())
}
