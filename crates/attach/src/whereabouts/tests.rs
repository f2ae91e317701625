//! What a look at a directory tells, for each thing that somebody may do to it: what a log does
//! itself is nothing.

use super::*;
use holdfast_io::private::directory_there;
use std::fs;
use std::path::PathBuf;

fn place(path: &Path) -> String {
    Shown::name(path).to_string()
}

/// A directory with what makes one a log, as far as names tell, and a first look at it.
fn watched() -> (tempfile::TempDir, PathBuf, OwnedFd, Watched) {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("log");
    fs::create_dir(&log).unwrap();
    let config = LogConfig::in_ring(256 << 10, 64 << 10, 2);
    Log::create(&RealFiles::open(&log).unwrap(), [7; 16], &config).unwrap();
    fs::write(log.join("home"), "").unwrap();
    let (held, mut watched) = (directory_there(&log).unwrap(), Watched::default());
    assert_eq!(watched.look(&held, &log), Whereabouts::InPlace);
    (folder, log, held, watched)
}

#[test]
fn what_is_where_it_was_is_in_place_with_every_segment_that_comes() {
    let (_folder, log, held, mut watched) = watched();
    fs::write(log.join("segment-00000002"), "").unwrap();
    fs::remove_file(log.join("catalogue")).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::InPlace);
    // It was being made, and there was no room for it.
    fs::remove_file(log.join("segment-00000002")).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::InPlace);
    fs::remove_file(log.join("segment-00000001")).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::Lacking(1));
}

#[test]
fn a_segment_that_is_another_file_is_lacking() {
    let (_folder, log, held, mut watched) = watched();
    fs::write(log.join("copy"), "segment-00000001").unwrap();
    fs::rename(log.join("copy"), log.join("segment-00000001")).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::Lacking(1));
}

#[test]
fn a_directory_that_is_moved_is_told_with_its_place_until_it_is_back() {
    let (folder, log, held, mut watched) = watched();
    let away = folder.path().join("away");
    fs::rename(&log, &away).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::Moved(place(&away)));
    fs::create_dir(&log).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::Moved(place(&away)));
    fs::remove_dir(&log).unwrap();
    fs::rename(&away, &log).unwrap();
    assert_eq!(watched.look(&held, &log), Whereabouts::InPlace);
}

#[test]
fn a_directory_that_is_removed_or_emptied_is_no_log_any_more() {
    for empties in [true, false] {
        let (_folder, log, held, mut watched) = watched();
        fs::remove_dir_all(&log).unwrap();
        if empties {
            fs::create_dir(&log).unwrap();
        }
        assert_eq!(watched.look(&held, &log), Whereabouts::Removed);
    }
}
