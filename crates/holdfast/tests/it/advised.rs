//! `holdfast advise`: what is measured, and what is said of it.

use crate::fixture::{Ended, Fixture};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

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
    assert!(text.contains("alone could be measured") && text.contains("must_survive"), "{text}");
}

#[test]
fn what_is_no_directory_is_refused_and_what_cannot_be_measured_is_told() {
    let fixture = Fixture::new();
    fixture.holdfast(&["advise", "/nowhere"]).expect(2, &["/nowhere", "name directories"]);
    let file = fixture.path("file");
    fs::write(&file, "").unwrap();
    fixture.holdfast(&["advise", file.to_str().unwrap()]).expect(2, &["name directories"]);
    let said = fixture.holdfast(&["advise", "/proc"]).succeeded().out;
    assert!(said.contains("not measured") && said.contains("nothing is known"), "{said}");
}

/// Mounts something, and takes it away again.
struct Mounted(PathBuf);

impl Mounted {
    fn new(kind: &str, options: &str, at: &Path) -> Option<Mounted> {
        let mount = Command::new("mount").args(["-t", kind, "-o", options, kind]).arg(at).status();
        mount.unwrap().success().then(|| Mounted(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _gone = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn an_overlay_is_no_place_for_a_log_if_it_is_made_of_ram_or_syncs_nothing() {
    let fixture = Fixture::new();
    let path = |name: &str| {
        let path = fixture.path(name);
        fs::create_dir_all(&path).unwrap();
        path.display().to_string()
    };
    let ram = fixture.path("ram");
    fs::create_dir(&ram).unwrap();
    let _ram = Mounted::new("tmpfs", "size=8m", &ram).unwrap();
    let below = |upper: &str, work: &str| {
        format!("lowerdir={},upperdir={},workdir={}", path("low"), path(upper), path(work))
    };
    let volatile = below("up", "work") + ",volatile";
    for (options, told) in [(below("ram/up", "ram/work"), "tmpfs"), (volatile, "volatile")] {
        let at = fixture.path("over");
        fs::create_dir_all(&at).unwrap();
        let Some(_over) = Mounted::new("overlay", &options, &at) else {
            return println!("there is no overlay here");
        };
        let said = fixture.holdfast(&["advise", at.to_str().unwrap()]).succeeded().out;
        assert!(said.contains(told) && said.contains("no place for a log"), "{said}");
    }
}

#[test]
fn whatever_a_directory_is_called_it_is_told() {
    let fixture = Fixture::new();
    let odd = fixture.path("").join(OsStr::from_bytes(b"bad\xff\nname"));
    fs::create_dir(&odd).unwrap();
    let run = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        Ended::of(command.arg("advise").args(words).arg(&odd).output().unwrap()).succeeded().out
    };
    assert!(serde_json::from_str::<Value>(&run(&["--json"])).is_ok());
    assert!(!run(&[]).contains("\nname"), "a name has no lines");
}
