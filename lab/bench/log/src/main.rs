//! `bench-log`: what this write-ahead log and others do, beside the device and the decoder.
//!
//! Promise: every log gets the same records with the same durability, in turns within one run, and
//! gives all of them back; writes `log.json`, `log.svg` and
//! `log-paper.md` into a folder. A log that acknowledged
//! more than the device made durable ends the run.
//! Never: leaves a process or a log behind.
//!
//! The kernel's count of flushes stands beside each figure of durable sets. To see the system calls
//! themselves: `strace -f -c -e trace=fsync,fdatasync,pwrite64,pwritev2,io_uring_enter bench-log
//! --out FOLDER --quick --only NAME`.

mod crashed;
mod effort;
mod goals;
mod memory;
mod ours;
mod panels;
mod paper;
mod peers;
mod reading;
mod record;
mod rolls;
mod rounds;
mod set;
mod synced;
mod tally;
mod unsynced;

use std::path::Path;
use std::process::ExitCode;

use holdfast_bench_common::Failure;
use holdfast_bench_common::flushes::{self, Device};
use holdfast_bench_common::output;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::task::Task;
use holdfast_figures::Figures;

use crate::effort::Effort;
use crate::peers::Kind;
use crate::record::Format;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    output::exit(
        "bench-log",
        match words[..] {
            ["--fill", name, format, records, bytes, folder] => {
                fill([name, format, records, bytes], Path::new(folder))
            }
            ["--open", folder] => crashed::report(Path::new(folder)),
            _ => Task::parse("bench-log", &words).and_then(|task| measure(&task)),
        },
    )
}

/// The process that is killed when it has filled a log.
fn fill([name, format, records, bytes]: [&str; 4], folder: &Path) -> Result<(), Failure> {
    let kind = known(name)?;
    let format = Format::named(format).ok_or("no such format")?;
    reading::fill(kind, format, records.parse()?, bytes.parse()?, folder)
}

fn measure(task: &Task) -> Result<(), Failure> {
    let kinds: Vec<&'static Kind> = match &task.only {
        Some(names) => names.split(',').map(known).collect::<Result<_, _>>()?,
        None => peers::all().collect(),
    };
    let effort = task.effort(Effort::whole(), Effort::quick());
    let whole = Place::whole("bench-log-data")?;
    let device = Device::below(whole.path())?;
    let disk = flushes::told(device.as_ref(), "SETS");
    output::progress(&format!("disk: {disk}"));
    let class = "as said beside each figure; Disk survives process, os and power, Memory nothing";
    let mut figures = Figures::here("log", &disk, class);
    figures.figures = rounds::measure(&effort, &kinds, &whole, device.as_ref())?;
    figures.write(&task.out, &panels::all(&figures, &kinds))?;
    std::fs::write(task.out.join("log-paper.md"), paper::tables(&figures))?;
    output::table(&figures);
    Ok(())
}

fn known(name: &str) -> Result<&'static Kind, Failure> {
    peers::all().find(|kind| kind.name == name).ok_or_else(|| {
        let names: Vec<_> = peers::all().map(|kind| kind.name).collect();
        format!("no such log: {name}; there are {}", names.join(", ")).into()
    })
}
