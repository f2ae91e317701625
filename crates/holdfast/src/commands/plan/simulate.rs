//! `holdfast plan simulate`.
//!
//! Promise: one interval, and the time after a crash.
//! Never: compares.

use super::printed::{long_text, refused, request_text, steady_json, system_json, system_text};
use super::system;
use crate::cli::plan::System;
use crate::output::{Output, Progress};
use holdfast_config::problem::Outcome;
use holdfast_plan::{Configuration, Effort, Filled, Machine, Steady, WarmUp, steady, warm_up};
use serde_json::{Value, json};

/// What was simulated.
struct Shown {
    configuration: Configuration,
    interval: Option<u64>,
    steady: Steady,
    warm_up: WarmUp,
}

/// Simulates one interval.
pub(super) fn simulate(system: System, interval: Option<u64>, output: Output) -> Outcome<()> {
    let configuration = system::configuration(system)?;
    let checked = interval.map_or(Ok(()), |interval| configuration.check_interval(interval));
    checked.map_err(|fault| refused(fault, "say less for --interval, or leave it out for none"))?;
    let shown = run(configuration, interval);
    output.result(&json(&shown), &text(&shown));
    Ok(())
}

fn run(configuration: Configuration, interval: Option<u64>) -> Shown {
    let mut progress = Progress::new();
    progress.say("simulating the steady state");
    let without_checkpoints = steady(&configuration, None, Effort::FULL);
    let steady = match interval {
        None => without_checkpoints,
        Some(_) => steady(&configuration, interval, Effort::FULL),
    };
    progress.say("simulating the time after a crash");
    let warm_up = warm_up(&configuration, &without_checkpoints, Effort::FULL);
    Shown { configuration, interval, steady, warm_up }
}

fn text(Shown { configuration, interval, steady, warm_up }: &Shown) -> String {
    let machine = &configuration.machine;
    let checkpoints = match interval {
        None => "none".to_owned(),
        Some(interval) => {
            let cycles = *interval as f64 * steady.request_cycles();
            format!("every {interval} requests, {} of I/O", long_text(machine, cycles))
        }
    };
    format!(
        "{}checkpoints   {checkpoints}\nrequest time  {}: {:.0} paging, {:.0} checkpoints\n\
         recovery      {} at the worst moment, {:.0} on average\n{}",
        system_text(configuration, Effort::FULL),
        request_text(machine, steady.request_cycles()),
        steady.paging_cycles,
        steady.checkpoint_cycles,
        long_text(machine, steady.recovery_cycles),
        steady.recovery_mean_cycles / 1e6,
        after_crash(machine, warm_up),
    )
}

fn after_crash(machine: &Machine, warm_up: &WarmUp) -> String {
    let moment = |of: Option<Filled>| {
        of.map_or("not while it was simulated".to_owned(), |Filled { requests, cycles, part }| {
            let (percent, long) = (part * 100.0, long_text(machine, cycles));
            format!("after {requests:.0} requests, {long} of I/O; memory is full to {percent:.0} %")
        })
    };
    format!(
        "after a crash\n  as before    {}\n  memory full  {}\n",
        moment(warm_up.as_steady),
        moment(warm_up.full)
    )
}

fn json(Shown { configuration, interval, steady, warm_up }: &Shown) -> Value {
    let moment = |of: Option<Filled>| {
        of.map(|Filled { requests, cycles, part }| {
            json!({ "requests": requests, "paging_cycles": cycles, "full_part": part })
        })
    };
    json!({
        "system": system_json(configuration),
        "steady": steady_json(*interval, steady),
        "after_crash": {
            "as_steady": moment(warm_up.as_steady),
            "full": moment(warm_up.full),
        },
    })
}
