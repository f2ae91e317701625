//! What is done with files, and how long it takes.
//!
//! Promise: each kind of work is done in every place before the next begins, and the places take
//! turns at being first.
//! Never: measures what an earlier kind of work left to be done.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use holdfast_bench_common::Failure;
use holdfast_bench_common::ledger::Ledger;
use holdfast_figures::median;
use rustix::fs::{Advice, fadvise, syncfs};

use crate::places::{Kind, Places};

const MIB: usize = 1 << 20;
const READ_BYTES: usize = 4096;
const SMALL_BYTES: usize = 4096;
/// Passes of work that leaves everything as it was, behind one that does not count.
const WARM_PASSES: usize = 5;

/// How much is done.
pub struct Effort {
    /// Files of 1 MiB.
    large: usize,
    /// MiB of the file that is read in small parts.
    read_mib: usize,
    /// Small files.
    small: usize,
}

impl Effort {
    /// As the figures are quoted.
    pub const WHOLE: Effort = Effort { large: 500, read_mib: 100, small: 5000 };
    /// Enough to see that it works.
    pub const QUICK: Effort = Effort { large: 60, read_mib: 32, small: 800 };
}

/// A kind of work: its figure, and what it is. It returns seconds.
type Kinds = [(&'static str, fn(&Path, &Path, &Effort) -> Result<f64, Failure>); 11];

/// In this order: each finds what those before have left.
const WORK: Kinds = [
    ("write_1m_unsynced", write_1m_unsynced),
    ("write_1m", write_1m),
    ("make_large", make_large),
    ("read_4k_cold", read_4k_cold),
    ("read_4k_warm", read_4k_warm),
    ("create", create),
    ("stat_first", stat_once),
    ("stat", stat),
    ("read_small_first", read_small_once),
    ("read_small_warm", read_small),
    ("unlink", unlink),
];

/// Does everything once in every place.
///
/// # Errors
/// At the first thing that cannot be done.
pub fn round(
    places: &mut Places,
    round: usize,
    effort: &Effort,
    ledger: &mut Ledger,
) -> Result<(), Failure> {
    let mut order = Kind::ALL;
    order.rotate_left(round % Kind::ALL.len());
    for kind in order {
        fs::create_dir_all(places.path(kind).join("small"))?;
    }
    for (name, work) in WORK {
        for kind in order {
            let seconds = work(&places.path(kind), &places.home(kind), effort)?;
            places.settle(kind)?;
            if name != "make_large" {
                ledger.lower(format!("files.{}.{name}_s", kind.name()), "s", seconds);
            }
        }
    }
    for kind in order {
        fs::remove_dir_all(places.path(kind).join("large"))?;
        fs::remove_file(places.path(kind).join("read"))?;
        places.settle(kind)?;
    }
    unmounting(places, effort, ledger)?;
    for kind in order {
        fs::remove_dir_all(places.path(kind).join("small"))?;
        places.settle(kind)?;
    }
    Ok(())
}

/// How fast small files come home at an unmount, beside how fast the home takes them from a program
/// that syncs when all are made.
fn unmounting(places: &Places, effort: &Effort, ledger: &mut Ledger) -> Result<(), Failure> {
    let ext4 = places.path(Kind::Ext4);
    let began = Instant::now();
    create(&ext4, &ext4, effort)?;
    syncfs(File::open(&ext4)?)?;
    let home_s = began.elapsed().as_secs_f64();
    for kind in Kind::VOLUMES {
        create(&places.path(kind), &places.home(kind), effort)?;
        let umount_s = places.remount(kind)?.as_secs_f64();
        let id = format!("files.{}.umount_over_home_rate", kind.name());
        ledger.higher(id, "ratio", home_s / umount_s);
    }
    Ok(())
}

fn timed(work: impl FnOnce() -> Result<(), Failure>) -> Result<f64, Failure> {
    let began = Instant::now();
    work()?;
    Ok(began.elapsed().as_secs_f64())
}

/// As far as the page cache of the file system below, and into the ring of a volume.
fn write_1m_unsynced(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let (folder, bytes) = (place.join("large"), any_bytes(MIB));
    fs::create_dir(&folder)?;
    timed(|| {
        for number in 0..effort.large {
            File::create(folder.join(number.to_string()))?.write_all(&bytes)?;
        }
        Ok(())
    })
}

/// Written, and then synced once: what was written outlasts what the place promises.
fn write_1m(place: &Path, home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let folder = place.join("large");
    fs::remove_dir_all(&folder)?;
    syncfs(File::open(place)?)?;
    let written_s = write_1m_unsynced(place, home, effort)?;
    Ok(written_s + timed(|| Ok(syncfs(File::open(&folder)?)?))?)
}

fn make_large(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let bytes = any_bytes(MIB);
    let file = File::create(place.join("read"))?;
    timed(|| {
        for number in 0..effort.read_mib {
            file.write_all_at(&bytes, (number * MIB) as u64)?;
        }
        Ok(())
    })
}

/// Neither the file's own pages nor those of the file below are in memory.
fn read_4k_cold(place: &Path, home: &Path, effort: &Effort) -> Result<f64, Failure> {
    for path in [place.join("read"), home.join("read")] {
        let file = File::open(path)?;
        file.sync_all()?;
        fadvise(&file, 0, None, Advice::DontNeed)?;
    }
    read_4k(place, home, effort)
}

fn read_4k(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    // As databases open their files.
    let mut file = OpenOptions::new().read(true).write(true).open(place.join("read"))?;
    let mut bytes = [0; READ_BYTES];
    timed(|| {
        for _ in 0..effort.read_mib * MIB / READ_BYTES {
            file.read_exact(&mut bytes)?;
        }
        Ok(())
    })
}

fn read_4k_warm(place: &Path, home: &Path, effort: &Effort) -> Result<f64, Failure> {
    warm(|| read_4k(place, home, effort))
}

fn create(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let (folder, bytes) = (place.join("small"), any_bytes(SMALL_BYTES));
    timed(|| {
        for number in 0..effort.small {
            File::create(folder.join(number.to_string()))?.write_all(&bytes)?;
        }
        Ok(())
    })
}

fn stat_once(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let folder = place.join("small");
    timed(|| {
        for number in 0..effort.small {
            fs::metadata(folder.join(number.to_string()))?;
        }
        Ok(())
    })
}

fn stat(place: &Path, home: &Path, effort: &Effort) -> Result<f64, Failure> {
    warm(|| stat_once(place, home, effort))
}

fn read_small_once(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let folder = place.join("small");
    let mut bytes = [0; SMALL_BYTES];
    timed(|| {
        for number in 0..effort.small {
            File::open(folder.join(number.to_string()))?.read_exact(&mut bytes)?;
        }
        Ok(())
    })
}

fn read_small(place: &Path, home: &Path, effort: &Effort) -> Result<f64, Failure> {
    warm(|| read_small_once(place, home, effort))
}

fn unlink(place: &Path, _home: &Path, effort: &Effort) -> Result<f64, Failure> {
    let folder = place.join("small");
    timed(|| {
        for number in 0..effort.small {
            fs::remove_file(folder.join(number.to_string()))?;
        }
        Ok(())
    })
}

fn warm(work: impl Fn() -> Result<f64, Failure>) -> Result<f64, Failure> {
    work()?;
    let seconds = (0..WARM_PASSES).map(|_| work()).collect::<Result<Vec<_>, _>>()?;
    Ok(median(&seconds))
}

/// Bytes that are not zeros, which a volume would not log.
fn any_bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at.wrapping_mul(2_654_435_761) >> 7) as u8 | 1).collect()
}
