//! A guest with a database that goes on where it was stopped, beside the same guest booted.
//!
//! Promise: both begin with `holdfast vm boot` and the same arguments, and end with what a client
//! waits for: the first answer of a booted database, the first commit of one that was taken up.
//! Never: judges what the guest has in it; `make test-guests` does.

use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use holdfast_bench_common::colours::{OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::place::Place;
use holdfast_bench_common::ratios::divided;
use holdfast_bench_common::task::Task;
use holdfast_bench_common::{Failure, output};
use holdfast_figures::{Bar, Better, Figure, Panel, Scale};
use holdfast_guests::{Database, TakenUp, stop_and_take_up};

use crate::part::Measured;

/// The folder in which `release/holdfast` is built and `lab/guests/boot/setup` makes its images.
const TARGET: &str = "HOLDFAST_TARGET";

/// What is asked of taking a guest up, in parts of booting it.
const GOAL: f64 = 0.25;

const COLD: &str = "fastboot.cold_ms";
const RESTORE: &str = "fastboot.restore_ms";
const PAUSE: &str = "fastboot.pause_ms";

/// How long a guest commits before it is stopped.
const LOAD: Duration = Duration::from_secs(1);

/// Measures so many guests.
pub(crate) fn measure(task: &Task, _disk: &Place) -> Result<Measured, Failure> {
    let target = PathBuf::from(env::var_os(TARGET).ok_or("HOLDFAST_TARGET is not set")?);
    let (mut ledger, rounds) = (Ledger::default(), task.effort(5, 1));
    for round in 1..=rounds {
        output::progress(&format!("fastboot: round {round} of {rounds}"));
        let place = Place::in_memory("holdfast-bench-fastboot")?;
        boot_and_take_up(&target, place.path(), &mut ledger)?;
    }
    let mut figures = ledger.figures();
    if let Some(runs) = divided(ledger.runs(RESTORE), ledger.runs(COLD)) {
        let over = Figure::of("fastboot.restore_over_cold", "ratio", Better::Lower, runs);
        figures.push(over.against(GOAL, "the same guest booted"));
    }
    Ok(Measured { figures, panels: vec![panel()], ..Measured::default() })
}

/// Boots a guest, stops it under load, and takes it up.
fn boot_and_take_up(target: &Path, folder: &Path, ledger: &mut Ledger) -> Result<(), Failure> {
    let (program, images) = (target.join("release/holdfast"), target.join("guests"));
    let TakenUp { cold, stopped, taken_up } =
        stop_and_take_up(&program, &images, Database::Postgres, folder, LOAD)?;
    for (figure, took) in [(COLD, cold), (PAUSE, stopped), (RESTORE, taken_up)] {
        ledger.lower(figure.into(), "ms", took.as_secs_f64() * 1e3);
    }
    Ok(())
}

fn panel() -> Panel {
    let bar = |label: &str, id: &str, colour| Bar { label: label.into(), colour, id: id.into() };
    let bars = vec![
        bar("booted, to the first answer", COLD, OTHER),
        bar("stopped", PAUSE, OWN),
        bar("taken up, to the first commit", RESTORE, OWN),
    ];
    Panel { title: "a guest with PostgreSQL, emulated, ms".into(), scale: Scale::Linear, bars }
}
