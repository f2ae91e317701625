//! Homes that do not do everything with room: what is acknowledged comes home all the same.
//!
//! The generator draws a home that lacks one call or another, that writes elsewhere what has room,
//! or that is a device, perhaps nearly full; then changes of a disk on it, and deaths.

use std::io;
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, FakeLimits, Random};
use holdfast_io::tree::{Allocate, Errno, Kind, ROOT, Tree};
use holdfast_io::{
    Allocation, Blocks, BlocksError, Change, Files, Metadata, OpenFile, OpenHow, Seek, Space,
};
use holdfast_volume::Class;

use crate::disk::{Disk, DiskWorld, make_room};
use crate::seeds::for_each_seed;
use crate::world::{World, new_node};

const BLOCK_BYTES: u64 = 4096;
const BLOCKS: u64 = 200;
const DISK_BYTES: u64 = BLOCKS * BLOCK_BYTES;
/// What is kept free of a home, and a little more.
const MARGIN_BYTES: u64 = (4 << 20) + (400 << 10);
const EINVAL: i32 = 22;

/// A block device: always all there, and of its size.
struct Device(Arc<dyn OpenFile>);

impl OpenFile for Device {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(into, offset)
    }
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.0.write_at(from, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        let is_its = bytes == DISK_BYTES;
        if is_its { Ok(()) } else { Err(io::Error::from_raw_os_error(EINVAL)) }
    }
    fn reserve(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.0.write_all_at(&vec![0; bytes as usize], offset)
    }
    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        let found = if what == Seek::Data { offset } else { DISK_BYTES };
        Ok((offset < DISK_BYTES).then_some(found))
    }
    fn metadata(&self) -> io::Result<Metadata> {
        Ok(Metadata { allocated_bytes: DISK_BYTES, rdev: 7, ..self.0.metadata()? })
    }
    fn change(&self, change: &Change) -> io::Result<()> {
        self.0.change(change)
    }
    fn space(&self) -> io::Result<Space> {
        Ok(Space { free_bytes: 0, available_bytes: 0, ..self.0.space()? })
    }
    fn allocation(&self) -> io::Result<Allocation> {
        Ok(Allocation { reserves: true, gives_back: false })
    }
    fn writes_in_place(&self) -> bool {
        true
    }
}

/// A home, and the disk's file on it.
struct Home {
    files: FakeFiles,
    file: Arc<dyn OpenFile>,
    /// There is room for every write, whatever was done before.
    is_whole: bool,
}

fn home(random: &mut Random) -> Home {
    let files = FakeFiles::new(random.any());
    let how = OpenHow { write: true, create_mode: Some(0o600), ..OpenHow::default() };
    let file = files.open("image".as_ref(), how).expect("a new disk");
    let is_device = random.chance(25);
    let is_full = is_device || random.chance(40);
    match is_full {
        true => file.write_all_at(&vec![9; DISK_BYTES as usize], 0).expect("a new disk"),
        false => file.set_len(DISK_BYTES).expect("a new disk"),
    }
    let allocation = Allocation { reserves: random.chance(60), gives_back: random.chance(60) };
    let writes_in_place = is_device || random.chance(70);
    files.set_limits(FakeLimits { allocation, writes_in_place, ..FakeLimits::default() });
    let used = files.space().expect("a new disk");
    let used = used.total_bytes - used.free_bytes;
    let is_tight = is_device || random.chance(40);
    let more = if is_tight { 0 } else { MARGIN_BYTES };
    files.set_capacity_bytes(Some(used + more));
    let is_whole = is_full && writes_in_place && (is_device || !allocation.gives_back);
    let file = if is_device { Arc::new(Device(file)) } else { file };
    Home { files, file, is_whole }
}

fn clean(disk: &Disk, told: &str) {
    disk.clean().unwrap_or_else(|error| panic!("{told}: acknowledged, but {error}"));
}

/// One change of the disk, perhaps refused.
fn change(disk: &Disk, random: &mut Random, model: &mut [u8]) -> Result<(), BlocksError> {
    let first = random.below(BLOCKS);
    let choice = random.below(6);
    // The ring takes so much of bytes.
    let most = if choice < 3 && random.chance(30) { BLOCKS } else { 30 };
    let (offset, bytes) = (first * BLOCK_BYTES, BLOCK_BYTES * (1 + random.below(most)));
    let (offset, bytes) = match random.chance(30) {
        true => (offset + random.below(4000), bytes + random.below(4000)),
        false => (offset, bytes),
    };
    let bytes = bytes.min(DISK_BYTES - offset);
    let range = offset as usize..(offset + bytes) as usize;
    let node = disk.lookup(ROOT, b"disk").expect("the file").node;
    let value = 1 + random.below(250) as u8;
    let value = match choice {
        0 => disk.discard(offset, bytes).map(|()| 0)?,
        1 => disk.write_zeroes(offset, bytes).map(|()| 0)?,
        2 => {
            let how = Allocate::Reserve { keep_size: true };
            match disk.allocate(node, how, offset, bytes) {
                Ok(()) | Err(Errno::NOSPC | Errno::NOTSUP) => return Ok(()),
                Err(errno) => panic!("{errno:?} when room is reserved"),
            }
        }
        _ => Blocks::write(&**disk, &vec![value; range.len()], offset).map(|()| value)?,
    };
    model[range].fill(value);
    Ok(())
}

fn live(seed: u64) {
    let mut random = Random::new(seed);
    let home = home(&mut random);
    let world = DiskWorld::new(seed);
    let open = || world.open_as(Class::Memory, home.file.clone(), |log| log);
    let mut disk = open().expect("a new volume");
    let mut model = disk.contents();
    for step in 0..60 {
        let told = format!("seed {seed}, step {step}");
        world.0.clock.advance_ns(random.below(200_000_000));
        make_room(&disk);
        let mut again = random.clone();
        if let Err(BlocksError::NoSpace) = change(&disk, &mut random, &mut model) {
            assert!(!home.is_whole, "{told}: no space on a home that has all of it");
            clean(&disk, &told);
            model = disk.contents();
            let repeated = change(&disk, &mut again, &mut model);
            assert!(repeated.is_err(), "{told}: there was room, once what waited was home");
        }
        assert!(disk.contents() == model, "{told}: other bytes");
        match random.below(12) {
            0 => {
                drop(disk);
                disk = open().expect("it was there before");
                assert!(disk.contents() == model, "{told}: other bytes after a death");
            }
            1 => clean(&disk, &told),
            _ => {}
        }
    }
    clean(&disk, &format!("seed {seed}, at the end"));
    disk.detach().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    let mut found = vec![1; DISK_BYTES as usize];
    home.file.read_full_at(&mut found, 0).expect("a sound disk");
    assert!(found == model, "seed {seed}: the home has other bytes");
    drop(home.files);
}

#[test]
fn a_disk_brings_home_what_it_acknowledged_whatever_its_home_does_with_room() {
    for_each_seed("room::a_disk_brings_home", &[], 0..60, live);
}

#[test]
fn room_that_a_directory_does_not_give_or_take_is_refused_as_there() {
    for (reserves, gives_back) in [(false, false), (false, true), (true, false), (true, true)] {
        let world = World::new(1);
        let allocation = Allocation { reserves, gives_back };
        world.files.set_limits(FakeLimits { allocation, ..FakeLimits::default() });
        let (volume, _) = world.open().expect("a new volume");
        let node = volume.make(ROOT, b"file", &new_node(Kind::File, 0o600)).expect("a file").node;
        volume.write(node, &[7; 10_000], 0, false).expect("room");
        let asked = |how| volume.allocate(node, how, 4096, 20_000);
        let told = |has: bool| if has { Ok(()) } else { Err(Errno::NOTSUP) };
        assert_eq!(asked(Allocate::Reserve { keep_size: true }), told(reserves));
        assert_eq!(asked(Allocate::Reserve { keep_size: false }), told(reserves));
        assert_eq!(asked(Allocate::PunchHole), told(gives_back));
        let zeroed = asked(Allocate::ZeroRange { keep_size: true });
        assert_eq!(zeroed, told(reserves && gives_back));
        volume.detach().unwrap_or_else(|error| panic!("{allocation:?}: {error}"));
    }
}

/// What an earlier version acknowledged, or a home that was moved to another file system.
#[test]
fn what_a_log_asks_of_room_comes_home_where_the_home_no_longer_does_it() {
    const BYTES: u64 = 3 << 20;
    let world = World::new(1);
    let (volume, _) = world.open().expect("a new volume");
    let node = volume.make(ROOT, b"file", &new_node(Kind::File, 0o600)).expect("a file").node;
    for offset in (0..BYTES).step_by(16 << 10) {
        volume.write(node, &[7; 16 << 10], offset, false).expect("room");
        if offset % (256 << 10) == 0 {
            volume.log().commit(volume.log().marks().tail).expect("a sound log");
            while !volume.clean_step().expect("a sound home").is_idle() {}
        }
    }
    volume.allocate(node, Allocate::PunchHole, 5000, 1 << 20).expect("it is known");
    let zero = Allocate::ZeroRange { keep_size: false };
    volume.allocate(node, zero, BYTES - 100_000, 2 << 20).expect("it is known");
    let reserve = Allocate::Reserve { keep_size: true };
    volume.allocate(node, reserve, 0, BYTES + (8 << 20)).expect("it is known");
    let allocation = Allocation { reserves: false, gives_back: false };
    world.files.set_limits(FakeLimits { allocation, ..FakeLimits::default() });
    volume.detach().expect("what is acknowledged comes home");
    let file = world.home().open("file".as_ref(), OpenHow::default()).expect("it is home");
    let size_bytes = BYTES - 100_000 + (2 << 20);
    let mut found = vec![1; size_bytes as usize + 1];
    assert_eq!(file.read_full_at(&mut found, 0).expect("a sound disk") as u64, size_bytes);
    let mut expected = vec![7; BYTES as usize - 100_000];
    expected[5000..5000 + (1 << 20)].fill(0);
    expected.resize(size_bytes as usize, 0);
    assert!(found[..size_bytes as usize] == expected);
}
