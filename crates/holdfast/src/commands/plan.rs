//! `holdfast plan advise | curve | simulate | paper`.
//!
//! Promise: what is printed was simulated, with the seed that was asked for; every problem says
//! what to do next.
//! Never: knows the model; `holdfast-plan` does.

mod advise;
mod curve;
mod paper;
mod printed;
mod simulate;
mod system;

use crate::cli::plan::PlanCommand;
use crate::output::Output;
use holdfast_config::problem::Outcome;

/// Does what is asked of the planner.
pub(crate) fn plan(command: PlanCommand, output: Output) -> Outcome<()> {
    match command {
        PlanCommand::Advise { system, recovery_limit, out } => {
            advise::advise(system, recovery_limit, out.as_deref(), output)
        }
        PlanCommand::Curve { system, out } => curve::curve(system, out.as_deref(), output),
        PlanCommand::Simulate { system, interval } => simulate::simulate(system, interval, output),
        PlanCommand::Paper { out } => paper::paper(out.as_deref(), output),
    }
}
