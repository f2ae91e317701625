//! What is compared.
//!
//! Promise: looks at panels, not at their picture.
//! Never: starts a database.

use std::collections::HashSet;

use super::*;
use crate::sqlite::Sqlite;
use crate::subject::Database;

#[test]
fn every_setting_has_a_bar_of_its_own_in_every_panel() {
    let panels = panels(&Sqlite::SUBJECT);
    assert_eq!(panels.len(), Sqlite::SUBJECT.cases.len() + 1);
    let settings = Sqlite::SUBJECT.settings.len();
    for panel in &panels {
        let colours: HashSet<_> = panel.bars.iter().map(|bar| bar.colour).collect();
        assert_eq!(colours.len(), settings);
    }
    let ids: HashSet<_> = panels.iter().flat_map(|panel| &panel.bars).map(|bar| &bar.id).collect();
    assert_eq!(ids.len(), settings * panels.len());
}
