//! The files, written and read.
//!
//! Promise: looks for what a reader needs.
//! Never: compares with a stored file.

use super::*;
use crate::figures::{Better, Figure};

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
    let figure = Figure::of("x.over_y", "ratio", Better::Lower, vec![2.0]).against(1.5, "y");
    figures.figures.push(figure.acknowledged_by("Disk"));
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
