//! Requests that are simulated in a second of one core.
//!
//! Promise: every configuration of the paper in turns, with checkpoints, from memories that are in
//! use.
//! Never: counts time in which the core worked for others.

use std::hint::black_box;

use holdfast_bench_common::clock::Clock;
use holdfast_bench_common::colours::OWN;
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::output;
use holdfast_figures::{Bar, Figure, Panel, Scale};
use holdfast_plan::paper::Named;
use holdfast_plan::simulate;

/// Requests of one run.
const REQUESTS: u64 = 20_000_000;

/// Requests between two checkpoints.
const INTERVAL: u64 = 100_000;

/// The rate of the configuration that is simulated most slowly, and what is asked of it.
const SLOWEST: &str = "plan.requests_per_s";
const GOAL: f64 = 10e6;

const UNIT: &str = "requests/s of a core";

/// Measures all four configurations so many times.
pub(crate) fn measure(rounds: usize) -> Vec<Figure> {
    let mut ledger = Ledger::default();
    for round in 1..=rounds {
        output::progress(&format!("speed: round {round} of {rounds}"));
        let rates = Named::ALL.map(rate);
        ledger.higher(SLOWEST.into(), UNIT, rates.into_iter().fold(f64::MAX, f64::min));
        for (named, rate) in Named::ALL.into_iter().zip(rates) {
            ledger.higher(id(named), UNIT, rate);
        }
    }
    let wanted = |figure: Figure| if figure.id == SLOWEST { figure.wanted(GOAL) } else { figure };
    ledger.figures().into_iter().map(wanted).collect()
}

/// The rates of all configurations.
pub(crate) fn panel() -> Panel {
    let bar = |named: Named| Bar { label: named.name().into(), colour: OWN, id: id(named) };
    let title = "requests that are simulated in a second of one core".into();
    Panel { title, scale: Scale::Linear, bars: Named::ALL.map(bar).into() }
}

fn id(named: Named) -> String {
    format!("plan.{}.requests_per_s", named.name().replace('-', "_"))
}

/// Requests a second of the time that a core worked on them.
fn rate(named: Named) -> f64 {
    let configuration = named.configuration();
    let clock = Clock::start();
    black_box(simulate(&configuration, Some(INTERVAL), REQUESTS));
    REQUESTS as f64 * 1e6 / clock.process_us()
}
