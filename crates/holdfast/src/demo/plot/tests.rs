//! What the plot must show.
//!
//! Promise: looks for words and shapes, not for coordinates.
//! Never: compares with a stored picture.

use super::*;
use crate::demo::figures::{Better, Figure};

#[test]
fn every_setting_has_a_bar_in_every_panel() {
    let mut figures = Figures::here("postgres", "a <slow> disk", "Memory");
    let runs = vec![1_234.0];
    figures.figures.push(Figure::of("postgres.c8.holdfast.tps", "1/s", Better::Higher, runs));
    let drawn = svg(&figures);
    assert_eq!(drawn.matches("<rect x=").count(), SETTINGS.len() * PANELS.len());
    assert!(drawn.contains(">1234</text>"), "{drawn}");
    assert!(drawn.contains("a &lt;slow&gt; disk"), "words from outside are escaped");
}
