//! What the kernel keeps of a volume is never stale: names, attributes, bytes.
//!
//! Random work is done on a volume and on the file system below it alike, by every way in which
//! bytes can be read and written, while front ends are killed, everything is brought home, and the
//! volume is unmounted and mounted again. After each step both say the same.

use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::process::Signal;
use vm_memory::mmap::MmapRegion;
use vm_memory::{FileOffset, VolatileMemory};

use crate::fixture::{Fixture, NAME, kill, wait_until};
use crate::seeds::{Random, for_seeds};

const SEEDS: u64 = 4;
const STEPS: usize = 250;
const NAMES: [&str; 6] = ["a", "b", "d/a", "d/b", "e/a", "e/b"];
const FILE_BYTES_MAX: u64 = 96 << 10;
const BLOCK: u64 = 4096;
/// What the log has when the home has everything.
const MARKS_BYTES: u64 = 64 << 10;

/// One open file in both places.
struct Pair {
    ours: File,
    reference: File,
    name: String,
}

/// Both places, and what is open in them.
struct Both {
    ours: PathBuf,
    reference: PathBuf,
    open: Vec<Pair>,
    random: Random,
}

/// Memory at a multiple of a block, as direct transfers want it.
struct Aligned(Vec<u8>);

impl Aligned {
    fn filled(bytes: usize, with: u8) -> Aligned {
        Aligned(vec![with; bytes + BLOCK as usize])
    }

    fn bytes(&mut self) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(BLOCK as usize);
        let bytes = self.0.len() - BLOCK as usize;
        &mut self.0[start..start + bytes]
    }
}

/// Does it in both places; both succeed, or both fail alike.
fn alike<T>(one: std::io::Result<T>, other: std::io::Result<T>, told: &str) -> Option<(T, T)> {
    match (one, other) {
        (Ok(one), Ok(other)) => Some((one, other)),
        (Err(one), Err(other)) => {
            assert_eq!(one.raw_os_error(), other.raw_os_error(), "{told}");
            None
        }
        (one, other) => panic!("{told}: {:?}, and below {:?}", one.err(), other.err()),
    }
}

impl Both {
    fn new(ours: PathBuf, reference: PathBuf, seed: u64) -> Both {
        for place in [&ours, &reference] {
            fs::create_dir_all(place.join("d")).unwrap();
            fs::create_dir_all(place.join("e")).unwrap();
        }
        Both { ours, reference, open: Vec::new(), random: Random::new(seed) }
    }

    fn name(&mut self) -> &'static str {
        NAMES[self.random.below(NAMES.len() as u64) as usize]
    }

    fn pair(&mut self) -> Option<usize> {
        let count = self.open.len() as u64;
        (count > 0).then(|| self.random.below(count) as usize)
    }

    fn step(&mut self, told: &str) {
        let way = self.random.below(16);
        let told = &format!("{told}, way {way}");
        match way {
            0..=2 => self.open_one(told),
            3 => drop(self.pair().map(|index| self.open.swap_remove(index))),
            4..=6 => self.write(told),
            7 => self.write_direct(told),
            8 => self.write_mapped(),
            9 => self.truncate(told),
            10 => self.punch(told),
            11 => self.rename(told),
            12 => self.remove(told),
            13 => self.link(told),
            14 => self.change_mode(told),
            _ => self.compare_all(told),
        }
        self.compare_one(told);
    }

    fn open_one(&mut self, told: &str) {
        let name = self.name();
        let truncate = self.random.below(6) == 0;
        let direct = self.random.below(8) == 0;
        let flags = if direct { OFlags::DIRECT.bits().cast_signed() } else { 0 };
        let mut how = OpenOptions::new();
        how.read(true).write(true).create(true).truncate(truncate).custom_flags(flags).mode(0o640);
        let (ours, reference) = (self.ours.join(name), self.reference.join(name));
        if let Some((ours, reference)) = alike(how.open(ours), how.open(reference), told)
            && !direct
            && self.open.len() < 8
        {
            self.open.push(Pair { ours, reference, name: name.into() });
        }
    }

    fn write(&mut self, told: &str) {
        let Some(index) = self.pair() else { return };
        let offset = self.random.below(FILE_BYTES_MAX);
        let bytes = 1 + self.random.below(20_000) as usize;
        let data = vec![self.random.next() as u8; bytes];
        let pair = &self.open[index];
        pair.ours.write_all_at(&data, offset).unwrap_or_else(|error| panic!("{told}: {error}"));
        pair.reference.write_all_at(&data, offset).unwrap();
    }

    fn write_direct(&mut self, told: &str) {
        let name = self.name();
        let offset = self.random.below(FILE_BYTES_MAX / BLOCK) * BLOCK;
        let blocks = 1 + self.random.below(4) as usize;
        let mut data = Aligned::filled(blocks * BLOCK as usize, self.random.next() as u8);
        let mut how = OpenOptions::new();
        how.read(true).write(true).custom_flags(OFlags::DIRECT.bits().cast_signed());
        let (ours, reference) = (self.ours.join(name), self.reference.join(name));
        if let Some((ours, reference)) = alike(how.open(ours), how.open(reference), told) {
            ours.write_all_at(data.bytes(), offset).unwrap();
            reference.write_all_at(data.bytes(), offset).unwrap();
        }
    }

    /// Through shared mappings, which are synced before anybody looks another way.
    fn write_mapped(&mut self) {
        let Some(index) = self.pair() else { return };
        let (pair, with) = (&self.open[index], self.random.next() as u8);
        let bytes = pair.reference.metadata().unwrap().len();
        if bytes == 0 {
            return;
        }
        for file in [&pair.ours, &pair.reference] {
            let map = map(file, bytes);
            let slice = map.get_slice(bytes as usize / 2, 1).unwrap();
            slice.copy_from(&[with]);
            file.sync_all().unwrap();
        }
    }

    fn truncate(&mut self, told: &str) {
        let Some(index) = self.pair() else { return };
        let bytes = self.random.below(FILE_BYTES_MAX);
        let pair = &self.open[index];
        let told = format!("{told}: {} to {bytes}", pair.name);
        alike(pair.ours.set_len(bytes), pair.reference.set_len(bytes), &told);
    }

    fn punch(&mut self, told: &str) {
        let Some(index) = self.pair() else { return };
        let how = match self.random.below(3) {
            0 => FallocateFlags::ZERO_RANGE,
            1 => FallocateFlags::empty(),
            _ => FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE,
        };
        let (offset, bytes) = (self.random.below(FILE_BYTES_MAX), 1 + self.random.below(30_000));
        let pair = &self.open[index];
        let done = |file: &File| Ok(fallocate(file, how, offset, bytes)?);
        alike(done(&pair.ours), done(&pair.reference), told);
    }

    fn rename(&mut self, told: &str) {
        let (from, to) = (self.name(), self.name());
        let done = |place: &Path| fs::rename(place.join(from), place.join(to));
        let told = &format!("{told}: {from} to {to}");
        alike(done(&self.ours), done(&self.reference), told);
    }

    fn remove(&mut self, told: &str) {
        let name = self.name();
        let done = |place: &Path| fs::remove_file(place.join(name));
        alike(done(&self.ours), done(&self.reference), told);
    }

    fn link(&mut self, told: &str) {
        let (from, to) = (self.name(), self.name());
        let done = |place: &Path| fs::hard_link(place.join(from), place.join(to));
        let told = &format!("{told}: {from} to {to}");
        alike(done(&self.ours), done(&self.reference), told);
    }

    fn change_mode(&mut self, told: &str) {
        let name = self.name();
        let mode = fs::Permissions::from_mode(0o600 + self.random.below(64) as u32);
        let done = |place: &Path| fs::set_permissions(place.join(name), mode.clone());
        alike(done(&self.ours), done(&self.reference), told);
    }

    /// An open file, by one of the ways to read it.
    fn compare_one(&mut self, told: &str) {
        let Some(index) = self.pair() else { return };
        let (way, pair) = (self.random.below(3), &self.open[index]);
        let told = format!("{told}: open file {}, by way {way}", pair.name);
        same_attributes(&pair.ours.metadata().unwrap(), &pair.reference.metadata().unwrap(), &told);
        let bytes = pair.reference.metadata().unwrap().len();
        let wanted = read(&pair.reference, bytes);
        let found = match way {
            0 => read(&pair.ours, bytes),
            1 if bytes > 0 => mapped(&pair.ours, bytes),
            _ => match read_direct(&self.ours.join(&pair.name), &pair.ours, bytes) {
                Some(found) => found,
                None => read(&pair.ours, bytes),
            },
        };
        same_bytes(&found, &wanted, &told);
    }

    /// All names, and what is behind them.
    fn compare_all(&self, told: &str) {
        for directory in ["", "d", "e"] {
            let listed = |place: &Path| -> BTreeSet<_> {
                let names = fs::read_dir(place.join(directory)).unwrap();
                names.map(|entry| entry.unwrap().file_name()).collect()
            };
            assert_eq!(
                listed(&self.ours),
                listed(&self.reference),
                "{told}: names in {directory:?}"
            );
        }
        for name in NAMES {
            let told = format!("{told}: {name}");
            let (ours, reference) = (self.ours.join(name), self.reference.join(name));
            let found = alike(ours.symlink_metadata(), reference.symlink_metadata(), &told);
            if let Some((found, wanted)) = found {
                same_attributes(&found, &wanted, &told);
                same_bytes(&fs::read(ours).unwrap(), &fs::read(reference).unwrap(), &told);
            }
        }
    }
}

fn same_attributes(found: &fs::Metadata, wanted: &fs::Metadata, told: &str) {
    let told_of = |it: &fs::Metadata| (it.len(), it.nlink(), it.mode(), it.uid());
    assert_eq!(told_of(found), told_of(wanted), "{told}");
}

#[track_caller]
fn same_bytes(found: &[u8], wanted: &[u8], told: &str) {
    assert_eq!(found.len(), wanted.len(), "{told}");
    let differs = found.iter().zip(wanted).position(|(one, other)| one != other);
    assert_eq!(differs, None, "{told}: the first byte that differs");
}

fn read(file: &File, bytes: u64) -> Vec<u8> {
    let mut found = vec![0; bytes as usize];
    file.read_exact_at(&mut found, 0).unwrap();
    found
}

/// Past every cache, if the name is still that of the open file.
fn read_direct(path: &Path, open: &File, bytes: u64) -> Option<Vec<u8>> {
    let mut how = OpenOptions::new();
    let file = how.read(true).custom_flags(OFlags::DIRECT.bits().cast_signed()).open(path);
    let file = file.ok()?;
    if file.metadata().unwrap().ino() != open.metadata().unwrap().ino() {
        return None;
    }
    let mut room = Aligned::filled(bytes.next_multiple_of(BLOCK) as usize + BLOCK as usize, 0);
    let got = file.read_at(room.bytes(), 0).unwrap();
    Some(room.bytes()[..got].to_vec())
}

fn map(file: &File, bytes: u64) -> MmapRegion {
    MmapRegion::from_file(FileOffset::new(file.try_clone().unwrap(), 0), bytes as usize).unwrap()
}

fn mapped(file: &File, bytes: u64) -> Vec<u8> {
    let mut found = vec![0; bytes as usize];
    map(file, bytes).get_slice(0, bytes as usize).unwrap().copy_to(&mut found[..]);
    found
}

/// Everything goes home, so that the next read finds it there and no more in the log.
fn bring_home(fixture: &Fixture) {
    let is_home =
        || fixture.status()["unapplied_bytes"].as_u64().is_some_and(|left| left <= MARKS_BYTES);
    wait_until(is_home, || fixture.status().to_string());
}

/// A process that another test is just starting has for a moment what was open here.
fn unmount(fixture: &Fixture) {
    let unmounted = || fixture.holdfast(&["umount", NAME]).code == Some(0);
    wait_until(unmounted, || fixture.keeper_log());
}

fn live(seed: u64) {
    let mut fixture = Fixture::made();
    if seed.is_multiple_of(2) {
        fixture.reconfigure("[\"process\"]", "[\"process\", \"os\", \"power\"]");
    }
    fixture.serve();
    let reference = fixture.path("reference");
    let mut both = Both::new(fixture.mount(), reference.clone(), seed);
    for step in 0..STEPS {
        let told = format!("seed {seed}, step {step}");
        both.step(&told);
        match both.random.below(60) {
            0 | 1 => kill(fixture.front_end(), Signal::KILL),
            2 => bring_home(&fixture),
            3 => {
                both.compare_all(&told);
                both.open.clear();
                unmount(&fixture);
                let home = Both::new(fixture.home(), reference.clone(), seed);
                home.compare_all(&format!("{told}, at home"));
                fixture.holdfast(&["mount", NAME]).succeeded();
            }
            _ => {}
        }
    }
    both.compare_all(&format!("seed {seed}, at the end"));
    both.open.clear();
    unmount(&fixture);
    Both::new(fixture.home(), reference, seed).compare_all(&format!("seed {seed}, at home"));
    let left = fs::metadata(fixture.home().join(".holdfast"));
    assert_eq!(left.map(drop).map_err(|error| error.kind()), Err(ErrorKind::NotFound));
}

#[test]
fn nothing_that_the_kernel_keeps_is_ever_stale() {
    for_seeds("nothing_that_the_kernel_keeps_is_ever_stale", SEEDS, live);
}
