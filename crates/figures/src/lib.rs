//! Figures: what a benchmark writes for machines to read, and the plot of them.
//!
//! Promise: one shape for every benchmark: `NAME.json` with the commit, the machine, what an
//! acknowledgement meant and every single run, and `NAME.svg`, which shows nothing else.
//! Never: measures, prints, or knows what is measured.

mod chart;
mod figures;
mod files;
mod machine;
mod plot;
mod text;
mod values;

pub use chart::{Chart, Level, Line, Points};
pub use figures::{Better, Figure, Figures};
pub use files::WriteError;
pub use machine::{Machine, utc};
pub use plot::{Bar, Panel, Scale, svg};
pub use text::escape;
pub use values::{median, percentile};
