//! What the report must say.
//!
//! Promise: looks for what a reader needs.
//! Never: compares with a stored page.

use holdfast_figures::Better;

use super::*;

#[test]
fn a_missed_goal_stands_out_and_the_class_is_named() {
    let mut figures = Figures::here("postgres", "disk", "Memory: process only");
    let figure = Figure::of("postgres.kills.lost", "transactions", Better::Lower, vec![1.0]);
    figures.figures.push(figure.against(0.0, "acknowledged"));
    let page = html(&figures, "a < b", "<svg/>");
    assert!(page.contains("class=\"missed\""));
    assert!(page.contains("Memory: process only"));
    assert!(page.contains("a &lt; b"));
}
