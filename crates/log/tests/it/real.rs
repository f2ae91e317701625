//! On a real file system, where transfers that bypass the page cache must be aligned.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use holdfast_io::Files;
use holdfast_io::real::{RealClock, RealFiles};
use holdfast_log::{Log, LogConfig, Parity, Policy, Retention, Scanned, Source, Verdict};

use crate::support::{IDENTITY, Model, region_of};

const CONFIG: LogConfig = LogConfig {
    segment_bytes: 1 << 20,
    segments: 2,
    dirty_bytes_max: 1 << 20,
    retention: Retention::InRing,
    parity: Parity::None,
    policy: Policy::Refuse,
    scan: Scanned::Tail,
};
const RING_BYTES: u64 = 4 << 20;

/// A directory that is gone afterwards.
struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _removed = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_log_on_a_real_disk_fills_recycles_and_opens_again() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let directory = Directory(path.join(format!("log-{}", std::process::id())));
    fs::create_dir_all(&directory.0).expect("the build directory can be written");
    let files: Arc<dyn Files> = Arc::new(RealFiles::open(&directory.0).expect("a directory"));
    Log::create(&*files, IDENTITY, &CONFIG).expect("an empty directory takes a log");
    let mut model = Model::default();
    for life in 0..3 {
        let ring = Arc::new(region_of(IDENTITY, RING_BYTES));
        let clock = Arc::new(RealClock);
        let (log, recovery) =
            Log::open(Arc::clone(&files), ring, clock, CONFIG).expect("the disk is sound");
        assert_eq!((recovery.source, recovery.verdict), (Source::Segments, Verdict::Clean));
        model.check(&log, true).expect("all of it");
        for round in 0..60 {
            model.put_surely(&log, 700 * round + life).expect("the disk is sound");
            if round % 7 == 0 {
                log.commit(log.marks().tail).expect("the disk is sound");
                model.apply(&log).expect("there is room");
                log.prepare().expect("the disk is sound");
            }
        }
        model.note(&log);
        log.close().expect("the disk is sound");
        assert!(log.drain_rate_bytes_per_s() > 0);
    }
}
