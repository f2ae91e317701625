//! `holdfast advise`: what is measured, and what is said of it.

use crate::fixture::Fixture;
use serde_json::Value;

#[test]
fn each_disk_that_is_named_is_measured_and_ram_is_no_place_for_a_log() {
    let (fixture, memory) = (Fixture::new(), tempfile::tempdir_in("/dev/shm").unwrap());
    let (disk, ram) = (fixture.path("").display().to_string(), memory.path().display().to_string());
    let said = fixture.holdfast(&["advise", "--json", &disk, &ram]).succeeded().out;
    let advice: Value = serde_json::from_str(&said).unwrap();
    let (first, second) = (&advice["disks"][0], &advice["disks"][1]);
    assert!(first["kept"]["writes"].as_u64().unwrap() >= 5, "{advice}");
    assert!(first["kept"]["median_us"].as_f64().unwrap() > 0.0, "{advice}");
    assert_eq!(first["objection"], Value::Null);
    assert!(second["objection"].as_str().unwrap().contains("RAM"), "{advice}");
    assert_eq!(advice["logs_on"], first["at"]);
    assert_eq!(advice["gains"].as_array().unwrap().len(), 0);
    assert_eq!(advice["memory"]["survives"], serde_json::json!(["process"]));
    let text = fixture.holdfast(&["advise", &disk, &ram]).succeeded().out;
    assert!(
        text.contains("as long as without a volume") && text.contains("must_survive"),
        "{text}"
    );
}

#[test]
fn what_is_no_directory_is_refused_and_what_cannot_be_measured_is_told() {
    let fixture = Fixture::new();
    fixture.holdfast(&["advise", "/nowhere"]).expect(2, &["/nowhere", "name directories"]);
    let file = fixture.path("file");
    std::fs::write(&file, "").unwrap();
    fixture.holdfast(&["advise", file.to_str().unwrap()]).expect(2, &["name directories"]);
    let said = fixture.holdfast(&["advise", "/proc"]).succeeded().out;
    assert!(said.contains("not measured") && said.contains("no disk here"), "{said}");
}
