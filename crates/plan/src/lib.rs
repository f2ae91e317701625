//! How much of a machine's memory should be durable: the model of the DM/6000 paper's section 6
//! (Eskesen, Hack, Iyengar, King, Halim, "Software Exploitation of a Fault-Tolerant Computer with a
//! Large Memory"), as a simulator with advice.
//!
//! Promise: the same configuration and seed give the same numbers, on every machine; what the paper
//! leaves open is decided in one place each, and said in `docs/planner.md`.
//! Never: reads a file, prints, or looks at a clock; counts anything but the input and output of
//! pages.
//!
//! Where to look: a [`Configuration`] says what is simulated, `requests` makes its requests (or a
//! [`Trace`] has them), `lru` orders the pages in conventional memory, `memory` is the model of
//! both memories, and `room` decides who gets into the durable one. [`steady`] and [`warm_up`] run
//! it, a [`Curve`] is many runs, [`advise`] is many curves, [`paper`] sets the paper's numbers
//! beside ours, and [`drawn`] makes figures and charts of all that.

mod advice;
mod configuration;
mod curve;
pub mod drawn;
mod lru;
mod machine;
mod memory;
pub mod paper;
mod request;
mod requests;
mod room;
mod steady;
mod trace;
mod traffic;
mod warm_up;

pub use advice::{Advice, NoAdvice, Tried, advise};
pub use configuration::{CleanPages, ColdPages, Configuration, ConfigurationFault, Load, Mix};
pub use curve::{Best, Curve, Point};
pub use machine::Machine;
pub use request::Request;
pub use steady::{Effort, Steady, simulate, steady};
pub use trace::{Trace, TraceError, TraceFault};
pub use traffic::Traffic;
pub use warm_up::{Filled, WarmUp, warm_up};

#[cfg(test)]
mod tests;
