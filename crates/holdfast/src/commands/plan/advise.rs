//! `holdfast plan advise`.
//!
//! Promise: the size to reserve, what it comes to, what no durable memory would come to, and every
//! size that was tried.
//! Never: reserves anything.

use super::printed::{bytes, long_text, refused, request_text, system_json, system_text, write};
use super::system;
use crate::cli::plan::System;
use crate::output::{Output, Progress};
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_plan::{Advice, Best, Configuration, Effort, Machine, NoAdvice, Tried, drawn};
use serde_json::{Value, json};
use std::fmt::Write;
use std::path::Path;

/// Finds how much to reserve.
pub(super) fn advise(
    system: System,
    recovery_limit_s: f64,
    out: Option<&Path>,
    output: Output,
) -> Outcome<()> {
    if system.settings.durable.is_some() {
        return Err(refused("--durable is what is asked for", "leave it out, or use `plan curve`"));
    }
    let configuration = Configuration { durable_pages: 0, ..system::configuration(system)? };
    let machine = configuration.machine;
    let mut progress = Progress::new();
    let advised =
        holdfast_plan::advise(&configuration, recovery_limit_s * machine.clock_hz, |done, all| {
            progress.say(&format!("sizes tried: {done} of about {all}"));
        });
    drop(progress);
    let advice = advised.map_err(|NoAdvice { shortest_cycles }| {
        let why = format!("no size keeps recoveries within {recovery_limit_s} s");
        let shortest_s = (machine.seconds(shortest_cycles) * 1e6).ceil() / 1e6;
        refused(why, format!("say at least {shortest_s} for --recovery-limit"))
    })?;
    if let Some(out) = out {
        let title = format!("Request time if a recovery may take {recovery_limit_s} s");
        write("plan-advice", drawn::advice(&title, &advice), out)?;
    }
    output.result(&json(&configuration, &advice), &text(&configuration, &advice));
    Ok(())
}

fn text(configuration: &Configuration, advice: &Advice) -> String {
    let Advice { durable_pages, best, tried } = advice;
    let machine = &configuration.machine;
    let size = rounded(bytes(configuration, *durable_pages));
    let percent = *durable_pages as f64 / configuration.memory_pages as f64 * 100.0;
    let mut text = system_text(configuration, Effort::FAST);
    let verdict = match durable_pages {
        0 => "reserve nothing: durable memory would only take room from pages\n".to_owned(),
        pages => format!("reserve {pages} pages, {size}, {percent:.0} % of memory\n"),
    };
    text.push_str(&verdict);
    let _infallible = writeln!(
        text,
        "with a checkpoint every {:.0} requests a request takes {}, a recovery {}\n{}",
        best.interval,
        request_text(machine, best.request_cycles),
        long_text(machine, best.recovery_cycles),
        without(machine, tried),
    );
    text + &table(tried)
}

/// What no durable memory comes to.
fn without(machine: &Machine, tried: &[Tried]) -> String {
    match tried.first().and_then(|tried| tried.best) {
        None => "without durable memory no interval keeps the limit".to_owned(),
        Some(best) => {
            format!("without durable memory: {}", request_text(machine, best.request_cycles))
        }
    }
}

fn table(tried: &[Tried]) -> String {
    let mut text = format!("{:>14} {:>14} {:>14}\n", "durable pages", "request time", "checkpoint");
    for Tried { durable_pages, best } in tried {
        let line = match best {
            None => format!("{durable_pages:>14} {:>14} {:>14}", "-", "-"),
            Some(Best { interval, request_cycles, .. }) => {
                format!("{durable_pages:>14} {request_cycles:>14.0} {interval:>14.0}")
            }
        };
        text.push_str(&line);
        text.push('\n');
    }
    text
}

fn json(configuration: &Configuration, advice: &Advice) -> Value {
    let best = |best: &Best| {
        json!({
            "interval_requests": best.interval,
            "request_cycles": best.request_cycles,
            "recovery_cycles": best.recovery_cycles,
        })
    };
    let tried = advice.tried.iter().map(|tried| {
        json!({ "durable_pages": tried.durable_pages, "best": tried.best.as_ref().map(best) })
    });
    json!({
        "system": system_json(configuration),
        "durable_pages": advice.durable_pages,
        "durable_bytes": bytes(configuration, advice.durable_pages),
        "best": best(&advice.best),
        "tried": tried.collect::<Vec<_>>(),
    })
}
