//! What the plot must show.
//!
//! Promise: looks for words and shapes, not for coordinates.
//! Never: compares with a stored picture.

use super::*;
use crate::demo::figures::{Better, Figure};
use crate::demo::sqlite::Sqlite;
use crate::demo::subject::Database;

#[test]
fn every_setting_has_a_bar_in_every_panel() {
    let panels = panels(&Sqlite::SUBJECT);
    let mut figures = Figures::here("sqlite", "a <slow> disk", "Memory");
    let runs = vec![1_234.0];
    figures.figures.push(Figure::of("sqlite.wal.holdfast.tps", "1/s", Better::Higher, runs));
    let drawn = svg(&figures, &panels);
    assert_eq!(panels.len(), Sqlite::SUBJECT.cases.len() + 1);
    assert_eq!(drawn.matches("<rect x=").count(), Sqlite::SUBJECT.settings.len() * panels.len());
    assert!(drawn.contains(">1234</text>"), "{drawn}");
    assert!(drawn.contains("a &lt;slow&gt; disk"), "words from outside are escaped");
}
