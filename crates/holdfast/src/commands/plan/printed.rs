//! What the planner's commands print alike, and write.
//!
//! Promise: the same facts for people and for programs.
//! Never: simulates anything.

use crate::output::Progress;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_config::sizes::rounded;
use holdfast_figures::Figures;
use holdfast_plan::drawn::Drawing;
use holdfast_plan::{Configuration, Effort, Load, Machine, Steady};
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::Path;

/// A problem with what was asked for.
pub(super) fn refused(why: impl Display, remedy: impl Into<String>) -> Problem {
    Problem::new(Exit::Usage, "planning", why, remedy)
}

/// Writes figures and charts into a folder.
pub(super) fn write(name: &str, drawing: Drawing, out: &Path) -> Outcome<()> {
    let mut figures = Figures::here(name, "none", "none: a model acknowledges nothing");
    figures.figures = drawing.figures;
    figures.write_with_charts(out, &[], &drawing.charts).map_err(|error| {
        let remedy = "choose another folder with --out, or make room";
        Problem::new(Exit::Failed, "writing the figures", error, remedy)
    })
}

/// Says how far something with parts is.
pub(super) fn say(progress: &mut Progress, what: &str, done: usize, all: usize) {
    progress.say(&format!("{what}: {} of {all}", (done + 1).min(all)));
}

/// What is simulated, for people.
pub(super) fn system_text(configuration: &Configuration, effort: Effort) -> String {
    let size = |pages| format!("{pages} pages, {}", rounded(bytes(configuration, pages)));
    let durable = match configuration.durable_pages {
        0 => String::new(),
        pages => format!("durable       {}\n", size(pages)),
    };
    let Machine { clock_hz, disk_bytes_per_s, durable_bytes_per_s, .. } = configuration.machine;
    format!(
        "database      {}{}\nmemory        {}\n{durable}\
         machine       disk {} MB/s, durable memory {} MB/s, {} MHz\n",
        size(configuration.load.database_pages()),
        requests_text(&configuration.load, effort),
        size(configuration.memory_pages),
        disk_bytes_per_s / 1e6,
        durable_bytes_per_s / 1e6,
        clock_hz / 1e6,
    )
}

/// Which requests are simulated, and by how many pages, if not by all.
pub(super) fn requests_text(load: &Load, effort: Effort) -> String {
    let mix = match load {
        Load::Trace(trace) => return format!("\nrequests      {} of a trace", trace.accesses()),
        Load::Mix(mix) => mix,
    };
    let simulated = match mix.database_pages > effort.pages_max {
        true => format!(", simulated by {} pages", effort.pages_max),
        false => String::new(),
    };
    let [hot_requests, hot_pages, writes] =
        [mix.hot_requests, mix.hot_pages, mix.writes].map(|part| part * 100.0);
    format!(
        "{simulated}\nrequests      {hot_requests:.1} % for {hot_pages:.1} % of the pages, \
         {writes:.1} % write"
    )
}

/// Bytes of so many pages.
pub(super) fn bytes(configuration: &Configuration, pages: u64) -> u64 {
    pages.saturating_mul(configuration.machine.page_bytes)
}

/// What is simulated, for programs.
pub(super) fn system_json(configuration: &Configuration) -> Value {
    let machine = configuration.machine;
    let requests = match &configuration.load {
        Load::Trace(trace) => json!({ "trace_accesses": trace.accesses() }),
        Load::Mix(mix) => json!({
            "hot_pages": mix.hot_pages,
            "hot_requests": mix.hot_requests,
            "writes": mix.writes,
        }),
    };
    json!({
        "database_pages": configuration.load.database_pages(),
        "requests": requests,
        "memory_pages": configuration.memory_pages,
        "durable_pages": configuration.durable_pages,
        "page_bytes": machine.page_bytes,
        "disk_bytes_per_s": machine.disk_bytes_per_s,
        "durable_bytes_per_s": machine.durable_bytes_per_s,
        "clock_hz": machine.clock_hz,
        "seed": configuration.seed,
    })
}

/// Cycles a request, for people.
pub(super) fn request_text(machine: &Machine, cycles: f64) -> String {
    format!("{cycles:.0} cycles ({:.1} us)", machine.seconds(cycles) * 1e6)
}

/// Cycles of something long, for people.
pub(super) fn long_text(machine: &Machine, cycles: f64) -> String {
    format!("{:.0} megacycles ({:.2} s)", cycles / 1e6, machine.seconds(cycles))
}

/// A steady state, for programs.
pub(super) fn steady_json(interval: Option<u64>, steady: &Steady) -> Value {
    json!({
        "interval_requests": interval,
        "request_cycles": steady.request_cycles(),
        "paging_cycles": steady.paging_cycles,
        "checkpoint_cycles": steady.checkpoint_cycles,
        "recovery_cycles": steady.recovery_cycles,
        "recovery_mean_cycles": steady.recovery_mean_cycles,
    })
}
