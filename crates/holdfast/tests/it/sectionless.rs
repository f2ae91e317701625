//! Memory that has what its home lacks, and that no section of the configuration has any more.

use crate::fixture::{Fixture, NAME, wait_until};
use rustix::mount::{UnmountFlags, unmount};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

const OTHER: &str = "w";

/// A volume beside the fixture's, whose region is where one has no path.
struct Other {
    fixture: Fixture,
    mount: PathBuf,
    region: PathBuf,
}

impl Other {
    fn made() -> Other {
        let fixture = Fixture::made();
        let (mount, region) = (fixture.path("mount-w"), fixture.regions().join(OTHER));
        for folder in [&mount, &fixture.path("home-w"), &fixture.regions()] {
            fs::create_dir(folder).unwrap();
        }
        let other = Other { fixture, mount, region };
        other.fixture.configure(&other.text());
        other.fixture.holdfast(&["volume", "make", OTHER]).succeeded();
        other
    }

    /// The configuration with both sections.
    fn text(&self) -> String {
        let text = self.fixture.config_text();
        let section = text.split_once("[volume.v]").unwrap().1;
        let section = section.replace("/home\"", "/home-w\"").replace("/mount\"", "/mount-w\"");
        let section = section.replace("/log\"", "/log-w\"");
        let [ours, theirs] = [&self.fixture.region, &self.region].map(|it| format!("{it:?}"));
        format!("{text}\n[volume.{OTHER}]{}", section.replace(&ours, &theirs))
    }

    fn serve(&mut self) {
        self.fixture.serve();
        self.fixture.holdfast(&["wait", OTHER]).succeeded();
    }

    /// Both have something in memory that nothing else has, and nobody serves them.
    fn kill_all(&mut self) {
        fs::write(self.mount.join("g"), "kept").unwrap();
        self.fixture.kill_all();
        self.take_mount_away();
        let region = fs::File::open(&self.region).unwrap();
        wait_until(|| region.try_lock().is_ok(), || "it is kept".into());
    }

    fn take_mount_away(&self) {
        while unmount(&self.mount, UnmountFlags::DETACH).is_ok() {}
    }

    fn named(&self) -> Vec<Value> {
        let told = self.fixture.holdfast(&["status", "--json"]).out;
        let told: Value = serde_json::from_str(&told).unwrap();
        told["without_section"].as_array().unwrap().clone()
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        self.fixture.end_keepers();
        self.take_mount_away();
    }
}

#[test]
fn memory_whose_section_was_removed_is_named_until_the_section_is_back() {
    let mut other = Other::made();
    other.serve();
    assert_eq!(other.fixture.holdfast(&["status"]).code, Some(0), "it is served");
    other.kill_all();
    assert!(other.named().is_empty(), "it has its section");

    other.fixture.configure(&other.fixture.config_text());
    let region = other.region.display().to_string();
    let told = other.fixture.holdfast(&["status"]);
    assert!(told.code == Some(4) && told.out.contains(&region), "without a keeper: {told:?}");
    other.fixture.serve();
    let told = other.fixture.holdfast(&["status"]);
    let words = [&*region, "which no section of the configuration has", "[volume.w]"];
    assert_eq!(told.code, Some(7), "{told:?}");
    assert!(words.iter().all(|word| told.out.contains(word)), "{told:?}");
    let log = other.fixture.keeper_log();
    assert_eq!(log.matches(&region).count(), 1, "{log}");
    let [named] = &other.named()[..] else { panic!("{:?}", other.named()) };
    assert_eq!(named["path"], *region);
    assert!(named["unapplied_bytes"].as_u64() > Some(0), "{named}");
    assert_eq!(named["log"].as_str().map(str::len), Some(32), "{named}");

    // As it says.
    assert_eq!(other.fixture.stop(), Some(0));
    other.fixture.configure(&other.text());
    other.serve();
    assert_eq!(fs::read(other.mount.join("g")).unwrap(), b"kept");
    assert_eq!(other.fixture.holdfast(&["status"]).code, Some(0));
    assert_eq!(other.fixture.stop(), Some(0));
}

#[test]
fn memory_that_a_process_has_that_was_put_aside_or_that_has_nothing_is_not_named() {
    let mut other = Other::made();
    other.serve();
    // Of another configuration, the keeper of this one being alive: as it is for its neighbour.
    let neighbour = other.fixture.path("neighbour.toml");
    let text = other.fixture.config_text().replace("run/", "run-n/");
    fs::write(&neighbour, text).unwrap();
    let named_by_neighbour = |fixture: &Fixture| {
        let mut command = fixture.command();
        command.env("HOLDFAST_CONFIG", &neighbour).args(["status", "--json"]);
        let told: Value = serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        told["without_section"].as_array().unwrap().len()
    };
    fs::write(other.mount.join("h"), "x").unwrap();
    assert_eq!(named_by_neighbour(&other.fixture), 0, "a process has it");
    other.kill_all();
    assert_eq!(named_by_neighbour(&other.fixture), 1);
    other.fixture.holdfast(&["volume", "accept", OTHER, "--keep", "home"]).succeeded();
    fs::copy(&other.fixture.region, other.fixture.regions().join("w.aside-1")).unwrap();
    fs::write(other.fixture.regions().join("rest"), "no region").unwrap();
    assert_eq!(named_by_neighbour(&other.fixture), 0, "what was put aside is known");
    other.fixture.holdfast(&["umount", NAME]).succeeded();
}
