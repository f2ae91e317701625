//! `bench-memory`: what is done with durable memory, beside what does it without: disks, network
//! block devices, caches, the planner's model, and guests that go on instead of booting.
//!
//! Promise: ours and its peers are measured in turns within the same run; writes `memory.json` and
//! `memory.svg` into a folder.
//! Never: leaves a process, a loop device or a folder behind.

mod fastboot;
mod nbd;
mod part;
mod pcache;
mod plan;
#[allow(unsafe_code)]
mod raw;
mod table;
mod vdisk;

use std::path::Path;
use std::process::ExitCode;

use holdfast_bench_common::flushes::Device;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_figures::Figures;

use crate::part::Measured;

/// What an acknowledgement means where nothing else is said.
const CLASS: &str = "Memory: a write is there when it returns, and survives what the memory does; \
                     the planner acknowledges nothing";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    output::exit(
        "bench-memory",
        match words[..] {
            [pcache::WARM, home, memory] => pcache::warm(Path::new(home), Path::new(memory)),
            _ => Task::parse("bench-memory", &words).and_then(|task| measure(&task)),
        },
    )
}

fn measure(task: &Task) -> Result<(), Failure> {
    let parts = part::chosen(task.only.as_deref())?;
    let disk = Place::whole("bench-memory-data")?;
    let mut all = Measured::default();
    for part in parts {
        output::progress(&format!("{}: begins", part.name));
        all.add((part.measure)(task, &disk)?);
    }
    let device = Device::below(disk.path())?.map_or_else(|| "unknown".into(), |it| it.name());
    let told = [vec![device], all.notes].concat().join("; ");
    // A part stands beside the whole, and never in its place.
    let part = task.only.as_ref().map(|only| format!("-{}", only.replace(',', "-")));
    let mut figures = Figures::here(&format!("memory{}", part.unwrap_or_default()), &told, CLASS);
    figures.figures = all.figures;
    figures.figures.sort_by_key(|figure| figure.goal.is_none());
    figures.write_with_charts(&task.out, &all.panels, &all.charts)?;
    output::table(&figures);
    Ok(())
}
