//! A disk: what its users rely on.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use holdfast_io::fake::{Effect, Fault, Operation, Random};
use holdfast_io::tree::{Allocate, Errno, Kind, ROOT, RenameHow, SetAttributes, Tree};
use holdfast_io::{
    Allocation, Blocks, BlocksError, Change, Files, Metadata, OpenFile, Seek, Space,
};
use holdfast_log::Health;
use holdfast_volume::Class;

use crate::disk::{DISK_BYTES, Disk, DiskWorld, Life, holes, make_room};
use crate::seeds::for_each_seed;
use crate::world::new_node;

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

/// Applies a part of a window, as a process does that dies while it cleans.
fn half_apply(world: &DiskWorld, disk: &Disk, life: &mut Life) {
    const STEPS: [Operation; 4] =
        [Operation::SetLen, Operation::Punch, Operation::Reserve, Operation::Change];
    disk.log().commit(disk.log().marks().tail).expect("a sound disk");
    let operation = STEPS[life.random.below(4) as usize];
    let fault = Fault { operation, skip: life.random.below(3), effect: Effect::Errno(EIO) };
    world.0.files.fail(fault);
    while disk.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
    world.0.files.forget_faults();
}

/// Lives a random life with deaths in it. Returns how often it died with work in memory only.
pub(crate) fn live(world: &DiskWorld, seed: u64) -> u64 {
    let mut disk = world.open().expect("a new volume");
    let mut life = Life::new(seed, 2 * disk.atomic_bytes_max());
    let mut deaths = 0;
    for step in 0..120 {
        let told = format!("seed {seed}, step {step}");
        world.0.clock.advance_ns(1_000_003);
        life.step(&disk);
        life.look(&disk, &told);
        make_room(&disk);
        match life.random.below(12) {
            0 => disk.drain().expect("a sound disk"),
            1 => drop(disk.clean_step().expect("a sound home")),
            2 => disk.flush().expect("a sound disk"),
            3 => {
                if life.random.chance(60) {
                    half_apply(world, &disk, &mut life);
                    assert!(disk.contents() == life.model, "{told}: a window seen in part");
                }
                deaths += u64::from(disk.log().marks().tail > disk.log().marks().durable);
                drop(disk);
                disk = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
                assert!(disk.contents() == life.model, "{told}: changed by a death");
            }
            4 => life.write_the_same(&disk, &told),
            _ => {}
        }
    }
    assert_eq!(disk.size_bytes(), life.model.len() as u64);
    disk.detach().expect("a sound disk");
    assert!(world.image() == life.model, "seed {seed}: the home is not what was written");
    deaths
}

#[test]
fn a_disk_holds_what_was_written_last_through_drains_cleaning_and_deaths() {
    let deaths = std::cell::Cell::new(0);
    for_each_seed("block::a_disk_holds", &[], 0..300, |seed| {
        deaths.set(deaths.get() + live(&DiskWorld::new(seed), seed));
    });
    println!("{} deaths had something to lose", deaths.get());
}

#[test]
fn a_disk_has_room_where_something_was_written_and_a_hole_where_it_was_discarded() {
    for seed in 0..20 {
        let world = DiskWorld::new(seed);
        let disk = world.open().expect("a new volume");
        let node = Tree::lookup(&*disk, ROOT, b"disk").expect("the file").node;
        disk.discard(0, DISK_BYTES as u64).expect("room");
        assert!(holes(&*disk).iter().eq([&(0..DISK_BYTES)]), "seed {seed}");
        let mut life = Life::new(seed, disk.atomic_bytes_max());
        let block = |random: &mut Random| 4096 * random.below(DISK_BYTES as u64 / 4096);
        for step in 0..30 {
            let (written, discarded) = (block(&mut life.random), block(&mut life.random));
            disk.discard(discarded, 4096).expect("room");
            Blocks::write(&*disk, &[7], written).expect("room");
            make_room(&disk);
            if step % 7 == 6 {
                disk.clean().expect("a sound home");
            }
            let is_hole = |at: u64| holes(&*disk).iter().any(|hole| hole.contains(&(at as usize)));
            assert!(!is_hole(written), "seed {seed}, step {step}: something at {written}");
            let gone = discarded == written || is_hole(discarded);
            assert!(gone, "seed {seed}, step {step}: nothing at {discarded}");
            let next = |what| Tree::seek(&*disk, node, discarded, what);
            if discarded != written {
                assert_eq!(next(Seek::Hole), Ok(discarded), "seed {seed}, step {step}");
                assert_ne!(next(Seek::Data), Ok(discarded), "seed {seed}, step {step}");
            }
        }
    }
}

/// The checker must notice a home that is not what was written.
#[test]
#[should_panic(expected = "are others")]
fn canary_a_byte_that_differs_is_noticed() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let mut life = Life::new(1, disk.atomic_bytes_max());
    life.model.fill(0xdd);
    (0..100).for_each(|_| life.look(&disk, "canary"));
}

#[test]
fn a_range_that_is_not_wholly_on_the_disk_is_refused_and_nothing_is_done() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let before = (disk.log().marks().tail, disk.contents());
    let size = DISK_BYTES as u64;
    let long = 3 * disk.atomic_bytes_max();
    for (offset, bytes) in [
        (size, 1),
        (size - 1, 2),
        (size + 1, 0),
        (u64::MAX, 0),
        (u64::MAX, 1),
        (u64::MAX - 1, 4096),
        (i64::MAX as u64, 4096),
        (size - long as u64 + 1, long),
    ] {
        let mut room = vec![1; bytes];
        let results = [
            Blocks::read(&*disk, &mut room, offset),
            Blocks::write(&*disk, &room, offset),
            disk.write_zeroes(offset, bytes as u64),
            disk.discard(offset, bytes as u64),
        ];
        for (index, result) in results.into_iter().enumerate() {
            assert!(
                matches!(result, Err(BlocksError::OutOfRange)),
                "operation {index} of {bytes} bytes at {offset}: {result:?}"
            );
        }
    }
    for result in [disk.write_zeroes(4096, u64::MAX), disk.discard(4096, u64::MAX)] {
        assert!(matches!(result, Err(BlocksError::OutOfRange)), "{result:?}");
    }
    assert!((disk.log().marks().tail, disk.contents()) == before, "something was done");
    for offset in [0, 7, size] {
        Blocks::write(&*disk, &[], offset).expect("nothing fits everywhere");
        Blocks::read(&*disk, &mut [], offset).expect("nothing fits everywhere");
        disk.discard(offset, 0).expect("nothing fits everywhere");
        disk.write_zeroes(offset, 0).expect("nothing fits everywhere");
    }
    assert_eq!(disk.log().marks().tail, before.0);
}

#[test]
fn in_class_disk_a_flush_returns_when_the_logs_device_has_flushed() {
    let world = DiskWorld::new(1);
    let disk = world.open_as(Class::Disk, world.image_file(), |log| log).expect("a new volume");
    let flushes = || world.0.files.calls(Operation::SyncData);
    for round in 0..20 {
        Blocks::write(&*disk, &[round; 512], 512 * u64::from(round)).expect("room");
        let before = flushes();
        assert!(disk.log().marks().durable < disk.log().marks().tail);
        disk.flush().expect("a sound disk");
        assert!(flushes() > before, "round {round}: no flush of the log's device");
        assert_eq!(disk.log().marks().durable, disk.log().marks().tail);
    }
    let fault = Fault { operation: Operation::SyncData, skip: 0, effect: Effect::Errno(EIO) };
    Blocks::write(&*disk, &[1; 512], 0).expect("room");
    world.0.files.fail(fault);
    assert!(matches!(disk.flush(), Err(BlocksError::Failed(_))), "a failed flush was acknowledged");
    assert!(matches!(disk.flush(), Err(BlocksError::Failed(_))), "a failed flush was forgotten");
}

#[test]
fn in_class_memory_a_flush_has_nothing_left_to_do() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    Blocks::write(&*disk, &[1; 4096], 0).expect("room");
    let before = world.0.files.calls(Operation::SyncData);
    disk.flush().expect("nothing to do");
    assert_eq!(world.0.files.calls(Operation::SyncData), before);
    assert!(!disk.sync_is_needed());
}

#[test]
fn a_disk_grows_and_shrinks_and_what_comes_back_is_zeros() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let mut model = disk.contents();
    for bytes in [DISK_BYTES + 70_000, 5000, 20_000, 4999, 1, DISK_BYTES] {
        disk.resize(bytes as u64).expect("a file");
        model.resize(bytes, 0);
        assert!(disk.contents() == model, "{bytes} bytes in memory");
        let end = bytes as u64;
        Blocks::write(&*disk, &[9], end - 1).expect("on the disk");
        model[bytes - 1] = 9;
        let behind = Blocks::write(&*disk, &[9], end);
        assert!(matches!(behind, Err(BlocksError::OutOfRange)), "{behind:?}");
        disk.clean().expect("a sound disk");
        assert!(world.image() == model, "{bytes} bytes at home");
    }
    assert!(disk.resize(u64::MAX).is_err_and(|error| error.to_string().contains("as large")));
}

/// Everything that the cleaner of a disk asks of its home, except what the log is asked too.
const HOME_OPERATIONS: [Operation; 5] = [
    Operation::Metadata,
    Operation::SetLen,
    Operation::Reserve,
    Operation::Punch,
    Operation::Change,
];

/// Cleans while `fault` waits, then without it. Returns whether the fault struck the home.
fn clean_through(seed: u64, fault: Fault) -> bool {
    let told = format!("seed {seed}, {fault:?}");
    let world = DiskWorld::new(seed);
    let disk = world.open().expect("a new volume");
    let mut life = Life::new(seed, disk.atomic_bytes_max());
    (0..40).for_each(|_| life.step(&disk));
    disk.log().commit(disk.log().marks().tail).expect("a sound log");
    world.0.files.fail(fault);
    while disk.clean_step().is_ok_and(|cleaned| !cleaned.is_idle()) {}
    let struck = world.0.files.faults_fired() > 0;
    world.0.files.forget_faults();
    assert!(disk.contents() == life.model, "{told}: seen in the middle of a window");
    if !matches!(disk.log().health(), Health::Sound) {
        return false; // it struck the log, which does not forgive
    }
    disk.detach().unwrap_or_else(|error| panic!("{told}: still fails: {error}"));
    assert!(world.image() == life.model, "{told}: the home is not what was written");
    struck
}

#[test]
fn whatever_call_of_the_home_fails_cleaning_is_repeated_and_nothing_is_lost() {
    let mut struck = 0;
    for operation in HOME_OPERATIONS.into_iter().chain([Operation::Write]) {
        for (skip, errno) in (0..6).flat_map(|skip| [(skip, EIO), (skip, ENOSPC)]) {
            for seed in 0..4 {
                let fault = Fault { operation, skip, effect: Effect::Errno(errno) };
                struck += u32::from(clean_through(seed, fault));
            }
        }
    }
    assert!(struck > 60, "only {struck} faults struck");
}

#[test]
fn a_home_that_cannot_be_read_is_told_and_read_again_later() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let expected = disk.contents();
    world.0.files.fail(Fault { operation: Operation::Read, skip: 0, effect: Effect::Errno(EIO) });
    let mut bytes = [0; 4096];
    let failed = Blocks::read(&*disk, &mut bytes, 0);
    assert!(
        matches!(&failed, Err(BlocksError::Failed(error)) if error.raw_os_error() == Some(EIO)),
        "{failed:?}"
    );
    Blocks::read(&*disk, &mut bytes, 0).expect("it struck once");
    assert!(bytes == expected[..4096]);
    Blocks::write(&*disk, &[1; 4096], 0).expect("the log is sound");
}

#[test]
fn a_log_that_fails_refuses_changes_and_still_reads() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    Blocks::write(&*disk, &[1; 4096], 0).expect("room");
    let seen = disk.contents();
    world.0.files.fail(Fault { operation: Operation::Write, skip: 0, effect: Effect::Errno(EIO) });
    disk.drain().expect_err("the log's device failed");
    for result in
        [Blocks::write(&*disk, &[2; 4096], 0), disk.write_zeroes(0, 4096), disk.discard(0, 4096)]
    {
        assert!(matches!(result, Err(BlocksError::Failed(_))), "{result:?}");
    }
    disk.resize(1).expect_err("a log that failed");
    assert!(disk.contents() == seen, "a refused change was seen");
}

/// A home with holes on a full file system: what is acknowledged must fit.
#[test]
fn a_write_for_which_a_thin_home_has_no_room_is_refused_at_once() {
    const CHUNK_BYTES: usize = 16 << 10;
    let world = DiskWorld::new(1);
    let image = world.image_file();
    image.set_len(0).expect("a sound disk");
    image.set_len(64 << 20).expect("a sound disk");
    let used = world.0.files.space().expect("a sound disk");
    let used = used.total_bytes - used.free_bytes;
    world.0.files.set_capacity_bytes(Some(used + (4 << 20) + (512 << 10)));
    let disk = world.open().expect("a new volume");
    let mut writes = (0..40).map(|chunk| {
        world.0.clock.advance_ns(1_000_000_000);
        Blocks::write(&*disk, &[1; CHUNK_BYTES], chunk * CHUNK_BYTES as u64)
    });
    let refused = writes.find(Result::is_err);
    assert!(matches!(refused, Some(Err(BlocksError::NoSpace))), "a full disk was never noticed");
    let before = disk.contents();
    let zeroed = disk.write_zeroes(0, 32 << 20);
    assert!(matches!(zeroed, Err(BlocksError::NoSpace)), "{zeroed:?}");
    assert!(disk.contents() == before, "something was done");
    disk.clean().expect("what was acknowledged fits");
    world.0.files.set_capacity_bytes(None);
    world.0.clock.advance_ns(1_000_000_000);
    Blocks::write(&*disk, &[3; 4096], 40 << 20).expect("there is room again");
}

#[test]
fn zeros_that_would_take_long_to_write_are_made_by_the_home_and_keep_their_room() {
    const MANY_BYTES: u64 = 24 << 20;
    let world = DiskWorld::new(1);
    let image = world.image_file();
    image.set_len(2 * MANY_BYTES).expect("a sound disk");
    let disk = world.open().expect("a new volume");
    let before = world.image();
    disk.write_zeroes(1000, MANY_BYTES).expect("room");
    Blocks::write(&*disk, &[4; 512], 8 << 20).expect("room");
    let written = world.0.files.calls(Operation::Write);
    disk.clean().expect("a sound disk");
    assert!(world.0.files.calls(Operation::Write) - written < 20, "zeros were written one by one");
    assert!(image.metadata().expect("a sound disk").allocated_bytes >= MANY_BYTES);
    let mut expected = before;
    expected[1000..1000 + MANY_BYTES as usize].fill(0);
    expected[8 << 20..(8 << 20) + 512].fill(4);
    assert!(world.image() == expected);
}

/// One with a block for every byte needs no more, however full the file system is.
#[test]
fn a_home_that_has_all_its_room_takes_writes_on_a_full_file_system() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let used = world.0.files.space().expect("a sound disk");
    world.0.files.set_capacity_bytes(Some(used.total_bytes - used.free_bytes));
    let mut model = disk.contents();
    for offset in (0..DISK_BYTES as u64).step_by(4096) {
        Blocks::write(&*disk, &[5; 4096], offset).expect("the home has a block for it");
    }
    model.fill(5);
    assert!(disk.contents() == model);
    // Now the log wants a segment; that is another matter.
    world.0.files.set_capacity_bytes(None);
    disk.detach().expect("a sound disk");
    assert!(world.image() == model);
}

/// What is done while the home is being read.
type Meanwhile = Box<dyn FnOnce() + Send>;

/// A file whose reads take long.
struct Slow {
    file: Arc<dyn OpenFile>,
    meanwhile: Mutex<Option<Meanwhile>>,
}

impl OpenFile for Slow {
    fn read_at(&self, into: &mut [u8], offset: u64) -> io::Result<usize> {
        let bytes = self.file.read_at(into, offset)?;
        let meanwhile = self.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).take();
        meanwhile.into_iter().for_each(|act| act());
        Ok(bytes)
    }
    fn write_at(&self, from: &[u8], offset: u64) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.file.sync_data()
    }
    fn set_len(&self, bytes: u64) -> io::Result<()> {
        self.file.set_len(bytes)
    }
    fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.file.reserve(offset, bytes)
    }
    fn punch(&self, offset: u64, bytes: u64) -> io::Result<()> {
        self.file.punch(offset, bytes)
    }
    fn seek(&self, offset: u64, what: Seek) -> io::Result<Option<u64>> {
        self.file.seek(offset, what)
    }
    fn metadata(&self) -> io::Result<Metadata> {
        self.file.metadata()
    }
    fn change(&self, change: &Change) -> io::Result<()> {
        self.file.change(change)
    }
    fn space(&self) -> io::Result<Space> {
        self.file.space()
    }
    fn allocation(&self) -> io::Result<Allocation> {
        self.file.allocation()
    }
    fn writes_in_place(&self) -> bool {
        self.file.writes_in_place()
    }
}

/// Whatever happens while the home's disk takes its time: the answer is what the disk held at some
/// moment of the read, and nobody waits for it.
#[test]
fn a_read_of_the_home_sees_what_is_brought_there_meanwhile() {
    type Act = fn(&Disk);
    let write: Act = |disk| Blocks::write(&**disk, &[2; 1024], 1024).expect("room");
    let clean: Act = |disk| disk.clean().expect("a sound disk");
    let shrink: Act = |disk| {
        disk.resize(1024).expect("a file");
        disk.resize(DISK_BYTES as u64).expect("a file");
    };
    for (name, acts) in [
        ("written", &[write][..]),
        ("brought home", &[clean]),
        ("written and brought home", &[write, clean]),
        ("cut", &[shrink]),
        ("cut, and brought home", &[shrink, clean]),
    ] {
        let world = DiskWorld::new(1);
        let slow = Arc::new(Slow { file: world.image_file(), meanwhile: Mutex::new(None) });
        let disk = world.open_as(Class::Memory, slow.clone(), |log| log).expect("a new volume");
        let disk = Arc::new(disk);
        Blocks::write(&**disk, &[1; 1024], 0).expect("room");
        let during = (disk.clone(), acts.to_vec());
        let act: Meanwhile = Box::new(move || during.1.iter().for_each(|act| act(&during.0)));
        *slow.meanwhile.lock().unwrap_or_else(PoisonError::into_inner) = Some(act);
        let mut found = vec![0; 8192];
        Blocks::read(&**disk, &mut found, 0).expect("a sound disk");
        let is_done = slow.meanwhile.lock().unwrap_or_else(PoisonError::into_inner).is_none();
        assert!(is_done, "{name}: the home was not read");
        assert!(found == disk.contents()[..8192], "{name}: another time's bytes");
    }
}

#[test]
fn to_those_that_want_a_file_it_is_one_and_keeps_its_name_and_size() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let found = disk.lookup(ROOT, b"disk").expect("the one name");
    let node = found.node;
    assert_eq!(found.size_bytes, DISK_BYTES as u64);
    let new = new_node(Kind::File, 0o600);
    let truncated = SetAttributes { size_bytes: Some(0), ..SetAttributes::default() };
    let mode = SetAttributes { mode: Some(0o640), ..SetAttributes::default() };
    let refused = [
        disk.make(ROOT, b"new", &new).map(drop),
        disk.link(node, ROOT, b"new").map(drop),
        disk.remove_file(ROOT, b"disk"),
        disk.remove_dir(ROOT, b"disk"),
        disk.rename((ROOT, b"disk"), (ROOT, b"new"), RenameHow::Replace),
        disk.set_attributes(node, &truncated).map(drop),
        disk.set_attributes(ROOT, &mode).map(drop),
    ];
    assert_eq!(refused, [Err(Errno::PERM); 7]);
    assert_eq!(disk.set_attributes(node, &mode).expect("a file").mode, 0o640);
    Tree::write(&*disk, node, &[1; 100], 50, false).expect("room");
    let end = DISK_BYTES as u64 - 50;
    assert_eq!(Tree::write(&*disk, node, &[1; 100], end, false), Err(Errno::NOSPC));
    assert_eq!(Tree::write(&*disk, ROOT, &[1; 100], 0, false), Err(Errno::ISDIR));
    disk.allocate(node, Allocate::PunchHole, 60, 10).expect("on the disk");
    disk.allocate(node, Allocate::ZeroRange { keep_size: true }, 80, 10).expect("on the disk");
    disk.allocate(node, Allocate::Reserve { keep_size: true }, 0, 4096).expect("on the disk");
    let grown = disk.allocate(node, Allocate::Reserve { keep_size: false }, end, 100);
    assert_eq!(grown, Err(Errno::NOSPC));
    let mut bytes = [7; 200];
    assert_eq!(Tree::read(&*disk, node, &mut bytes, end), Ok(50));
    assert_eq!(Tree::read(&*disk, node, &mut bytes, end + 50), Ok(0));
    assert_eq!(Tree::read(&*disk, node, &mut bytes, u64::MAX), Ok(0));
    assert_eq!(Tree::read(&*disk, node, &mut bytes, 50), Ok(200));
    let ones = bytes[..100].iter().filter(|byte| **byte == 1).count();
    assert_eq!(ones, 80);
    disk.forget(node, u64::MAX);
    disk.detach().expect("nothing that the home could refuse");
    assert_eq!(world.image()[50..150].iter().filter(|byte| **byte == 1).count(), 80);
    let mode = world.image_file().metadata().expect("a sound disk").mode;
    assert_eq!(mode, 0o640);
}

/// The kernel goes on with the number it knows.
#[test]
fn the_files_number_is_the_same_after_a_death() {
    let world = DiskWorld::new(1);
    let mut node = None;
    for round in 0..6 {
        let disk = world.open().expect("a new volume");
        let found = disk.lookup(ROOT, b"disk").expect("the one name").node;
        assert_eq!(*node.get_or_insert(found), found, "round {round}");
        Tree::write(&*disk, found, &[round; 100], 0, false).expect("room");
        if round % 2 == 0 {
            disk.clean().expect("a sound disk");
        }
        assert_eq!(disk.attributes(found).expect("known").size_bytes, DISK_BYTES as u64);
    }
}
