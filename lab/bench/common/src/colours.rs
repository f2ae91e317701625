//! Colours of a plot.
//!
//! Promise: what is ours looks alike in every plot, and so does what it is compared with.
//! Never: says what is drawn.

/// What this repository makes.
pub const OWN: &str = "#2f6fdb";

/// What others make.
pub const OTHER: &str = "#8a8f98";

/// What nobody can do better, and what only shows a way that is not taken.
pub const LIMIT: &str = "#c9ced6";
