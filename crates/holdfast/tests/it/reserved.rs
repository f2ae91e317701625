//! Memory that may or may not outlive the operating system, on a machine that has none that does.

use crate::fixture::{Fixture, NAME, kill, way};
use rustix::process::Signal;
use std::fs::{self, File};

/// Where a region notes in which run of the system it was used; FORMAT.md of the memory says so.
pub(crate) const BOOT: std::ops::Range<usize> = 4376..4392;

/// The configuration of a volume whose region is a file that the system writes to a disk.
fn on_a_file(fixture: &Fixture) -> String {
    let direct = fixture.config_text().replace(&format!("way = {:?}", way()), "way = \"direct\"");
    direct.replace("\"shm\"", "\"file\"").replace("[\"process\"]", "[\"process\", \"os\"]")
}

#[test]
fn a_folder_behind_the_page_cache_is_not_probed() {
    let fixture = Fixture::new();
    let home = fixture.home().display().to_string();
    let ended = fixture.holdfast(&["region", "probe", "--path", &home]);
    ended.expect(2, &["page cache", "-o dax"]);
    assert_eq!(fs::read_dir(fixture.home()).unwrap().count(), 0, "nothing is left");
    let missing = fixture.path("nowhere").display().to_string();
    fixture.holdfast(&["region", "probe", "--path", &missing]).expect(2, &["nowhere"]);
    fixture.holdfast(&["region", "probe", "--path", &home, "--size", "5B"]).expect(2, &["4096"]);
}

/// The system writes a file's pages to its disk when it likes, so after a crash a region there is
/// of some earlier moment, or of several.
#[test]
fn a_region_that_an_earlier_run_of_the_system_left_is_not_believed() {
    let mut fixture = Fixture::made();
    fixture.configure(&on_a_file(&fixture));
    fixture.serve();
    let mut earlier = fs::read(&fixture.region).unwrap();
    for number in 0..20 {
        let file = File::create(fixture.mount().join(format!("f{number}"))).unwrap();
        file.sync_all().unwrap();
    }
    let front_end = fixture.front_end();
    fixture.kill_keeper();
    kill(front_end, Signal::KILL);
    fixture.wait_for_state("left in memory");
    fixture.restart();
    earlier[BOOT].fill(1);
    fs::write(&fixture.region, &earlier).unwrap();
    fixture.serve();
    assert!(fixture.keeper_log().contains("from the log anew"), "{}", fixture.keeper_log());
    assert_eq!(fs::read_dir(fixture.mount()).unwrap().count(), 20);
    fixture.holdfast(&["umount", NAME]).succeeded();
    assert_eq!(fs::read_dir(fixture.home()).unwrap().count(), 20);
}
