//! A machine with a disk image for a home, and a naive model of what must be on the disk.

use std::ops::{Deref, Range};
use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{Random, Sectors};
use holdfast_io::{Blocks, BlocksError, Files, OneFile, OpenFile, OpenHow};
use holdfast_log::{CommitError, CommitLog, Log};
use holdfast_volume::{BlockVolume, Class, CleanError, DirectoryVolume, VolumeError};

use crate::cached::Cache;
use crate::world::World;

/// A disk small enough to be compared whole at every step.
pub(crate) const DISK_BYTES: usize = 96 << 10;
const SECTOR_BYTES: u64 = 512;

/// The machine, perhaps with a cache before the home.
pub(crate) struct DiskWorld(pub(crate) World, pub(crate) Option<Cache>);

/// A disk with its log at hand, for tests that do what its threads would do.
pub(crate) struct Disk {
    blocks: BlockVolume,
    log: Arc<Log>,
}

impl Deref for Disk {
    type Target = BlockVolume;

    fn deref(&self) -> &BlockVolume {
        &self.blocks
    }
}

impl Disk {
    pub(crate) fn log(&self) -> &Log {
        &self.log
    }

    pub(crate) fn drain(&self) -> Result<(), CommitError> {
        self.log.drain().map(drop)
    }

    /// Brings home what is acknowledged, so far as nothing fails.
    pub(crate) fn clean(&self) -> Result<(), CleanError> {
        self.log.commit(self.log.marks().tail).map_err(CleanError::Log)?;
        while !self.blocks.clean_step()?.is_idle() {}
        Ok(())
    }

    pub(crate) fn detach(&self) -> Result<(), CleanError> {
        self.blocks.detach()?;
        self.log.close().map_err(CleanError::Log)
    }

    pub(crate) fn contents(&self) -> Vec<u8> {
        let mut bytes = vec![0; usize::try_from(self.size_bytes()).expect("a small disk")];
        self.read(&mut bytes, 0).expect("a sound disk");
        bytes
    }
}

impl DiskWorld {
    /// A machine with a new log, and a home that holds what [`Life::new`] begins with.
    pub(crate) fn new(seed: u64) -> DiskWorld {
        let world = DiskWorld(World::new(seed), None);
        let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
        let home = world.0.home();
        let image = home.open("image".as_ref(), how).expect("a new disk");
        image.write_all_at(&first_contents(), 0).expect("a new disk");
        image.sync_data().expect("a new disk");
        home.sync_dir(Path::new("")).expect("a new disk");
        world
    }

    /// [`Self::new`] with a cache.
    pub(crate) fn cached(seed: u64) -> DiskWorld {
        DiskWorld(DiskWorld::new(seed).0, Some(Cache::new()))
    }

    /// Torn sectors hold noise, in every other world.
    pub(crate) fn tearing(seed: u64) -> DiskWorld {
        let world = DiskWorld::new(seed);
        world.0.files.set_sectors(sectors(seed));
        world
    }

    pub(crate) fn image_file(&self) -> Arc<dyn OpenFile> {
        let how = OpenHow { write: true, ..OpenHow::default() };
        self.0.home().open("image".as_ref(), how).expect("an image made above")
    }

    /// What the home holds.
    pub(crate) fn image(&self) -> Vec<u8> {
        let file = self.image_file();
        let mut bytes = vec![0; file.metadata().expect("a sound disk").size_bytes as usize];
        assert_eq!(file.read_full_at(&mut bytes, 0).expect("a sound disk"), bytes.len());
        bytes
    }

    pub(crate) fn open(&self) -> Result<Disk, VolumeError> {
        self.open_as(Class::Memory, self.image_file(), |log| log)
    }

    /// With this class, over this file, on what `between` makes of the log.
    pub(crate) fn open_as(
        &self,
        class: Class,
        file: Arc<dyn OpenFile>,
        between: fn(Arc<Log>) -> Arc<dyn CommitLog>,
    ) -> Result<Disk, VolumeError> {
        let log = self.0.try_open_log().map_err(VolumeError::Log)?;
        let (home, clock) = (self.home_over(file), Arc::new(self.0.clock.clone()));
        let (volume, _) = DirectoryVolume::open(home, between(log.clone()), clock, class)?;
        Ok(Disk { blocks: BlockVolume::new(volume)?, log })
    }

    /// What a volume uses for its home.
    fn home_over(&self, file: Arc<dyn OpenFile>) -> Arc<dyn Files> {
        let home = Arc::new(OneFile::new(file));
        match &self.1 {
            Some(cache) => Arc::new(cache.before(home)),
            None => home,
        }
    }

    /// The memory is gone, and with it the cache.
    pub(crate) fn after_power_cut(&self, seed: u64) -> DiskWorld {
        DiskWorld(self.0.after_power_cut(seed), None)
    }
}

/// What torn sectors of a world hold.
pub(crate) fn sectors(seed: u64) -> Sectors {
    if seed.is_multiple_of(2) { Sectors::Whole } else { Sectors::Garbage }
}

fn first_contents() -> Vec<u8> {
    (0..DISK_BYTES).map(|index| (index / 512) as u8 | 1).collect()
}

/// A change of a disk.
#[derive(Clone, Debug)]
pub(crate) enum Doing {
    Write { offset: u64, data: Vec<u8> },
    Zero { offset: u64, bytes: u64 },
    Discard { offset: u64, bytes: u64 },
    Resize { bytes: u64 },
}

impl Doing {
    pub(crate) fn apply(&self, disk: &BlockVolume) -> Result<(), BlocksError> {
        match self {
            Doing::Write { offset, data } => Blocks::write(disk, data, *offset),
            Doing::Zero { offset, bytes } => disk.write_zeroes(*offset, *bytes),
            Doing::Discard { offset, bytes } => disk.discard(*offset, *bytes),
            Doing::Resize { bytes } => {
                disk.resize(*bytes).expect("a file");
                Ok(())
            }
        }
    }

    fn apply_to_model(&self, model: &mut Vec<u8>) {
        let mut fill = |offset: u64, bytes: u64| model[offset as usize..][..bytes as usize].fill(0);
        match self {
            Doing::Write { offset, data } => {
                model[*offset as usize..][..data.len()].copy_from_slice(data);
            }
            Doing::Zero { offset, bytes } | Doing::Discard { offset, bytes } => {
                fill(*offset, *bytes);
            }
            Doing::Resize { bytes } => model.resize(*bytes as usize, 0),
        }
    }
}

/// The life of a disk's user, with the bytes that he must find.
pub(crate) struct Life {
    pub(crate) random: Random,
    pub(crate) model: Vec<u8>,
    /// Ranges begin and end at multiples of this.
    grain_bytes: u64,
    longest: u64,
    last: Option<Doing>,
}

impl Life {
    /// Where torn sectors hold noise, whole sectors are written, as a disk's users do. Otherwise
    /// any bytes are, and the size changes. No write is longer than `longest`.
    pub(crate) fn new(seed: u64, longest: usize) -> Life {
        let grain_bytes = if sectors(seed) == Sectors::Garbage { SECTOR_BYTES } else { 1 };
        let (random, model) = (Random::new(seed), first_contents());
        Life { random, model, grain_bytes, longest: longest as u64, last: None }
    }

    /// A range of at most `longest` bytes that is on the disk; never empty.
    fn range(&mut self, longest: u64) -> (u64, u64) {
        let grain = self.grain_bytes;
        let grains = self.model.len() as u64 / grain;
        let offset = self.random.below(grains);
        let most = (longest / grain).min(grains - offset);
        (offset * grain, (1 + self.random.below(most)) * grain)
    }

    fn write(&mut self) -> Doing {
        let longest = if self.random.chance(10) { self.longest } else { 9000.min(self.longest) };
        let (offset, bytes) = self.range(longest);
        let mut data = vec![self.random.below(4) as u8; bytes as usize];
        if self.random.chance(50) {
            let zeros = self.random.below(bytes) as usize;
            data[zeros..].fill(0);
        }
        Doing::Write { offset, data }
    }

    /// The last write again, a little different: what a database's log does.
    fn write_again(&mut self) -> Option<Doing> {
        let Some(Doing::Write { offset, mut data }) = self.last.clone() else { return None };
        let index = self.random.below(data.len() as u64) as usize;
        data[index] = self.random.any() as u8;
        (offset as usize + data.len() <= self.model.len()).then_some(Doing::Write { offset, data })
    }

    fn any_doing(&mut self) -> Doing {
        match self.random.below(20) {
            0 | 1 => {
                let (offset, bytes) = self.range(20_000);
                Doing::Zero { offset, bytes }
            }
            2 | 3 => {
                let (offset, bytes) = self.range(20_000);
                Doing::Discard { offset, bytes }
            }
            4 if self.grain_bytes == 1 => {
                Doing::Resize { bytes: 1 + self.random.below(2 * DISK_BYTES as u64) }
            }
            5..=9 => self.write_again().unwrap_or_else(|| self.write()),
            _ => self.write(),
        }
    }

    /// One change, acknowledged.
    pub(crate) fn step(&mut self, disk: &BlockVolume) {
        let doing = self.any_doing();
        doing.apply(disk).unwrap_or_else(|error| panic!("{doing:?}: {error}"));
        doing.apply_to_model(&mut self.model);
        self.last = Some(doing);
    }

    /// Writes what is there already, alone in a window.
    pub(crate) fn write_the_same(&mut self, disk: &Disk, told: &str) {
        let clean = || disk.clean().unwrap_or_else(|error| panic!("{told}: {error}"));
        clean();
        let (offset, bytes) = self.range(9000);
        let same = &self.model[offset as usize..][..bytes as usize];
        Blocks::write(&**disk, same, offset).expect("room");
        clean();
    }

    /// Reads any range, and compares it; looks whether every hole reads as zeros.
    pub(crate) fn look(&mut self, disk: &BlockVolume, told: &str) {
        for hole in holes(disk) {
            let is_zero = self.model[hole.clone()].iter().all(|byte| *byte == 0);
            assert!(is_zero, "{told}: a hole at {hole:?} with something in it");
        }
        let (offset, bytes) = self.range(30_000);
        let mut found = vec![0xee; bytes as usize];
        disk.read(&mut found, offset).expect("a sound disk");
        let expected = &self.model[offset as usize..][..found.len()];
        assert!(found == expected, "{told}: {bytes} bytes at {offset} are others");
    }
}

/// Where the disk has no room.
pub(crate) fn holes(disk: &dyn Blocks) -> Vec<Range<usize>> {
    let (mut at, size_bytes, mut holes) = (0, disk.size_bytes(), Vec::new());
    while at < size_bytes {
        let extent = disk.extent_at(at).expect("a sound disk");
        assert!(at < extent.end && extent.end <= size_bytes, "{extent:?} at {at}");
        if extent.is_hole {
            holes.push(at as usize..extent.end as usize);
        }
        at = extent.end;
    }
    holes
}

/// Makes room before the ring is full: here nobody else does.
pub(crate) fn make_room(disk: &Disk) {
    let marks = disk.log().marks();
    if marks.tail.since(marks.released) > 500 << 10 {
        disk.clean().expect("a sound disk");
    }
}
