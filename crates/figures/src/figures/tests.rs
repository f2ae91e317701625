//! Goals, and the files.
//!
//! Promise: looks for what a reader needs.
//! Never: compares with a stored file.

use super::*;

fn figure(better: Better, goal: f64) -> Figure {
    Figure::of("x.over_y", "ratio", better, vec![2.0]).against(goal, "y")
}

#[test]
fn a_goal_is_met_from_its_own_side() {
    assert_eq!(figure(Better::Higher, 1.5).met(), Some(true));
    assert_eq!(figure(Better::Lower, 1.5).met(), Some(false));
    assert_eq!(Figure::of("x", "ratio", Better::Lower, vec![2.0]).beside("y").met(), None);
}

#[test]
fn a_figure_without_a_value_misses_its_goal() {
    let none = Figure::of("x", "ratio", Better::Higher, Vec::new()).against(1.0, "y");
    assert_eq!(none.met(), Some(false));
}

#[test]
fn the_table_says_which_goal_is_missed() {
    let mut figures = Figures::here("sample", "none", "none");
    figures.figures.push(figure(Better::Lower, 1.5));
    assert!(figures.table().contains("goal at most 1.5 MISSED"), "{}", figures.table());
}

#[test]
fn the_files_bear_the_name_and_hold_every_run() {
    let folder = std::env::temp_dir().join(format!("holdfast-figures-{}", std::process::id()));
    let mut figures = Figures::here("sample", "none", "none");
    figures.figures.push(Figure::of("x", "ns", Better::Lower, vec![3.0, 1.0, 2.0]));
    figures.write(&folder, &[]).unwrap();
    let json = fs::read_to_string(folder.join("sample.json")).unwrap();
    let drawn = fs::read_to_string(folder.join("sample.svg")).unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["figures"][0]["runs"], serde_json::json!([3.0, 1.0, 2.0]));
    assert_eq!(json["figures"][0]["value"], serde_json::json!(2.0));
    assert!(drawn.starts_with("<svg"));
}

#[test]
fn what_was_written_is_read_and_nothing_else_is_taken_for_it() {
    let folder = std::env::temp_dir().join(format!("holdfast-figures-read-{}", std::process::id()));
    let mut figures = Figures::here("sample", "none", "none");
    figures.figures.push(figure(Better::Lower, 1.5).acknowledged_by("Disk"));
    figures.figures.push(Figure::of("x", "ns", Better::Higher, vec![0.1, 1.0 / 3.0]));
    figures.write(&folder, &[]).unwrap();
    let read = Figures::read(&folder, "sample").unwrap().unwrap();
    let none = Figures::read(&folder, "another").unwrap();
    fs::write(folder.join("sample.json"), "{}").unwrap();
    let damaged = Figures::read(&folder, "sample");
    fs::remove_dir_all(&folder).unwrap();
    assert_eq!(format!("{read:?}"), format!("{figures:?}"));
    assert!(none.is_none() && damaged.is_err());
}
