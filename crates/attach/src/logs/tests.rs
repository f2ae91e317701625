//! The memory of a log as it is taken up.

use super::*;
use holdfast_config::claims::MediumKind;
use holdfast_config::sizes::Size;
use holdfast_io::real::RealFiles;
use holdfast_log::LogConfig;

const IDENTITY: [u8; 16] = [7; 16];
const SEGMENT_BYTES: u64 = 4 << 20;

/// A log, and memory of this size beside it.
fn log_and_memory(folder: &tempfile::TempDir, ring_bytes: u64) -> (RealFiles, MemoryConfig) {
    let log = folder.path().join("log");
    std::fs::create_dir_all(&log).unwrap();
    let files = RealFiles::open(&log).unwrap();
    if Log::identity_of(&files).is_err() {
        let config = LogConfig::in_ring(2 * SEGMENT_BYTES, SEGMENT_BYTES, 4);
        Log::create(&files, IDENTITY, &config).unwrap();
    }
    let path = Some(folder.path().join("region"));
    (files, MemoryConfig { medium: MediumKind::File, size: Size(ring_bytes), path })
}

fn ring_bytes_of(taken: Outcome<(Region, Option<Loss>)>) -> u64 {
    taken.unwrap().0.ring_bytes()
}

#[test]
fn a_region_that_was_never_used_is_replaced_when_memory_is_to_have_another_size() {
    let folder = tempfile::tempdir().unwrap();
    let (files, small) = log_and_memory(&folder, SEGMENT_BYTES);
    let roster_bytes = ROSTER_BYTES_MIN;
    let spec = RegionSpec { ring_bytes: SEGMENT_BYTES, roster_bytes, identity: IDENTITY };
    drop(Region::create(&small.medium(), &spec).unwrap());
    let (files_again, large) = log_and_memory(&folder, 4 * SEGMENT_BYTES);
    drop(files);
    assert_eq!(ring_bytes_of(region("log/l", &large, &files_again, None)), 4 * SEGMENT_BYTES);
}

#[test]
fn a_region_that_is_the_logs_ring_keeps_its_size() {
    let folder = tempfile::tempdir().unwrap();
    let (files, memory) = log_and_memory(&folder, 2 * SEGMENT_BYTES);
    let (taken, _) = region("log/l", &memory, &files, None).unwrap();
    taken.set_word(words::GENERATION, taken.generation());
    drop(taken);
    let larger = MemoryConfig { size: Size(4 * SEGMENT_BYTES), ..memory };
    assert_eq!(ring_bytes_of(region("log/l", &larger, &files, None)), 2 * SEGMENT_BYTES);
}
