//! The power goes at every I/O of a disk: home and log are a prefix of the acknowledged writes.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use holdfast_io::Blocks;
use holdfast_log::{
    AppendError, Appended, CommitError, CommitLog, Frame, Log, Lsn, Marks, NoteError, ReadError,
    WordError,
};
use holdfast_volume::Class;
use holdfast_volume::words::WINDOW_END;

use crate::disk::{Disk, DiskWorld, Life};
use crate::seeds::for_each_seed;

/// What lies between a volume and its log.
type Between = fn(Arc<Log>) -> Arc<dyn CommitLog>;

/// What is known of a run when the power went.
struct Run {
    world: DiskWorld,
    /// The disk before the first change and after each acknowledged one.
    images: Vec<Vec<u8>>,
    /// At least this many of them were durable.
    durable: usize,
    /// Which of them the home was at last, and which it was on its way to.
    home: (usize, usize),
    /// The cut came before the end.
    cut: bool,
}

/// A disk's life until operation `cut_at` of the machine, from which `step` makes one change.
fn run(world: DiskWorld, cut_at: Option<u64>, between: Between, mut life: impl Steps) -> Run {
    let disk = world.open_as(Class::Memory, world.image_file(), between).expect("a new volume");
    let start = world.0.files.operations();
    if let Some(cut_at) = cut_at {
        world.0.files.cut_power_at(start + cut_at);
    }
    let mut seen = vec![(disk.log().marks().tail, life.image())];
    for number in 0..STEPS {
        life.step(&disk);
        seen.push((disk.log().marks().tail, life.image()));
        let failed = match life.chore(number) {
            0 => disk.drain().is_err(),
            1 => disk.clean_step().is_err(),
            2 => disk.log().prepare().is_err(),
            3 => disk.flush().is_err(),
            _ => false,
        };
        if failed {
            break;
        }
    }
    let durable = disk.log().marks().durable;
    let durable = seen.iter().filter(|(tail, _)| *tail <= durable).count();
    let state_at = |lsn| seen.iter().rposition(|(tail, _)| *tail <= lsn).unwrap_or(0);
    let released = disk.log().marks().released;
    let window_end = Lsn(CommitLog::word(disk.log(), WINDOW_END).expect("a whole region"));
    let home = (state_at(released), state_at(released.max(window_end)));
    let images = seen.into_iter().map(|(_, image)| image).collect();
    let cut = cut_at.is_some_and(|cut_at| world.0.files.operations() >= start + cut_at);
    drop(disk);
    Run { world, images, durable, home, cut }
}

const STEPS: u64 = 50;
const SECTOR_BYTES: usize = 512;

/// Somebody who changes a disk, and knows what it must hold.
trait Steps {
    fn step(&mut self, disk: &Disk);
    fn image(&self) -> Vec<u8>;
    fn chore(&mut self, number: u64) -> u64;
}

impl Steps for Life {
    fn step(&mut self, disk: &Disk) {
        Life::step(self, disk);
    }
    fn image(&self) -> Vec<u8> {
        self.model.clone()
    }
    fn chore(&mut self, _number: u64) -> u64 {
        self.random.below(5)
    }
}

fn random_run(seed: u64, cut_at: Option<u64>, between: Between) -> Run {
    let world = DiskWorld::tearing(seed);
    let longest = world.open().expect("a new volume").atomic_bytes_max();
    run(world, cut_at, between, Life::new(seed, longest))
}

/// Recovers, and finds which acknowledged state the disk is in.
fn recovered_index(run: &Run, world: &DiskWorld, told: &str) -> usize {
    let disk = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
    let through = disk.contents();
    disk.detach().unwrap_or_else(|error| panic!("{told}: {error}"));
    assert!(world.image() == through, "{told}: the home is not what was seen");
    let index = run.images.iter().rposition(|image| *image == through);
    index.unwrap_or_else(|| panic!("{told}: the disk is in no acknowledged state"))
}

/// Three crash images of a run, each recovered and found. Returns how many there were.
fn check(run: &Run, told: &str) -> u64 {
    for crash_seed in 0..3 {
        let told = format!("{told}, crash image {crash_seed}");
        let world = run.world.after_power_cut(crash_seed);
        let index = recovered_index(run, &world, &told);
        let (count, durable) = (run.images.len(), run.durable);
        assert!(index + 1 >= durable, "{told}: state {index} of {count}, {durable} were durable");
    }
    3
}

/// Cuts the power of a life at every `stride`th operation, starting from a seeded one.
fn check_all_cuts(seed: u64, stride: u64, between: Between) -> u64 {
    let cuts = (1 + seed % stride..).step_by(stride as usize);
    let runs = cuts.map(|cut_at| (cut_at, random_run(seed, Some(cut_at), between)));
    let runs = runs.take_while(|(_, run)| run.cut);
    runs.map(|(cut_at, run)| check(&run, &format!("seed {seed}, cut at {cut_at}"))).sum()
}

#[test]
fn a_power_cut_at_any_io_leaves_a_prefix_of_the_acknowledged_writes() {
    let images = Cell::new(0);
    for_each_seed("block_power::a_power_cut_at_any_io", &[], 0..60, |seed| {
        images.set(images.get() + check_all_cuts(seed, 3, |log| log));
    });
    println!("{} crash images", images.get());
}

#[test]
fn a_power_cut_during_recovery_is_recovered_from() {
    for_each_seed("block_power::a_power_cut_during_recovery", &[], 100..112, |seed| {
        let operations = random_run(seed, None, |log| log).world.0.files.operations();
        let run = random_run(seed, Some(operations / 2), |log| log);
        for cut_at in 0..40 {
            let told = format!("seed {seed}, recovery cut at {cut_at}");
            let world = run.world.after_power_cut(seed);
            world.0.files.set_sectors(crate::disk::sectors(seed));
            world.0.files.cut_power_at(world.0.files.operations() + cut_at);
            if let Ok(disk) = world.open() {
                let _ = disk.detach();
            }
            let world = world.after_power_cut(cut_at);
            let index = recovered_index(&run, &world, &told);
            assert!(index + 1 >= run.durable, "{told}: lost what was durable");
        }
    });
}

/// Writes the same place over and over, as long as a frame can be.
struct Longest {
    image: Vec<u8>,
    bytes: usize,
    number: u8,
}

impl Steps for Longest {
    fn step(&mut self, disk: &Disk) {
        self.number += 1;
        let data = vec![self.number; self.bytes];
        Blocks::write(&**disk, &data, 4096).expect("room");
        self.image[4096..4096 + self.bytes].fill(self.number);
    }
    fn image(&self) -> Vec<u8> {
        self.image.clone()
    }
    fn chore(&mut self, number: u64) -> u64 {
        number % 3
    }
}

/// The states that are looked for have each write wholly: none with a part of one is among them.
#[test]
fn a_write_of_the_longest_atomic_length_is_there_wholly_or_not_at_all() {
    let mut images = 0;
    for cut_at in (1..).step_by(5) {
        let world = DiskWorld::tearing(cut_at);
        let disk = world.open().expect("a new volume");
        let (image, bytes) = (disk.contents(), disk.atomic_bytes_max());
        assert!(bytes > 8192 && bytes.is_multiple_of(4096), "{bytes} bytes show nothing");
        drop(disk);
        let life = Longest { image, bytes, number: 0 };
        let run = run(world, Some(cut_at), |log| log, life);
        if !run.cut {
            break;
        }
        images += check(&run, &format!("longest writes, cut at {cut_at}"));
    }
    assert!(images > 60, "only {images} crash images");
}

/// Longer ones are there in pieces, in order.
#[test]
fn a_longer_write_is_there_up_to_one_of_its_pieces() {
    let world = DiskWorld::new(1);
    let disk = world.open().expect("a new volume");
    let piece = disk.atomic_bytes_max();
    let before = disk.log().marks().tail;
    Blocks::write(&*disk, &vec![1; 2 * piece + 512], 512).expect("room");
    let mut frames = Vec::new();
    CommitLog::read(disk.log(), before, disk.log().marks().tail, &mut |frame| {
        frames.push(frame.payload.len());
        true
    })
    .expect("a sound log");
    let lengths: Vec<usize> = frames.iter().map(|bytes| bytes / 512 * 512).collect();
    assert_eq!(lengths, [piece, piece, 512]);
}

/// Three crash images of a run: without log and memory, each sector of the home is in the state
/// that the last window came to, or in the one that the window under way comes to.
fn check_home_alone(run: &Run, told: &str) {
    let (from, to) = run.home;
    for crash_seed in 0..3 {
        let home = run.world.after_power_cut(crash_seed).image();
        let states = [&run.images[from], &run.images[to]].map(|image| image.chunks(SECTOR_BYTES));
        let [mut before, mut after] = states;
        for (number, sector) in home.chunks(SECTOR_BYTES).enumerate() {
            let is_one = [before.next(), after.next()].contains(&Some(sector));
            assert!(is_one, "{told}, crash image {crash_seed}: sector {number} is neither");
        }
    }
}

/// Cuts the power of a life at every third operation. Returns how many cuts came between windows,
/// and how many while one was under way.
fn home_alone_at_all_cuts(seed: u64) -> [u64; 2] {
    let mut cuts = [0, 0];
    for cut_at in (1 + seed % 3..).step_by(3) {
        // An odd seed's life writes whole sectors, and this disk tears none.
        let world = DiskWorld::cached(seed);
        let longest = world.open().expect("a new volume").atomic_bytes_max();
        let run = run(world, Some(cut_at), |log| log, Life::new(seed, longest));
        if !run.cut {
            break;
        }
        check_home_alone(&run, &format!("seed {seed}, cut at {cut_at}"));
        cuts[usize::from(run.home.0 != run.home.1)] += 1;
    }
    cuts
}

#[test]
fn the_home_alone_is_a_prefix_between_windows_and_sector_by_sector_one_of_two_within() {
    let cuts = Cell::new([0, 0]);
    for_each_seed("block_power::the_home_alone", &[], 0..30, |seed| {
        let [between, within] = home_alone_at_all_cuts(2 * seed + 1);
        cuts.set([cuts.get()[0] + between, cuts.get()[1] + within]);
    });
    let [between, within] = cuts.get();
    println!("{between} cuts between windows, {within} within one");
    // One seed alone has few.
    let enough = if std::env::var_os("HOLDFAST_SEED").is_some() { 0 } else { 100 };
    assert!(between >= enough && within >= enough, "cuts of both kinds must be seen");
}

/// The checker must notice a home that has got something else.
#[test]
#[should_panic(expected = "is neither")]
fn canary_a_home_in_no_known_state_is_noticed() {
    let world = DiskWorld::cached(1);
    let longest = world.open().expect("a new volume").atomic_bytes_max();
    let mut run = run(world, Some(200), |log| log, Life::new(1, longest));
    run.images.iter_mut().for_each(|image| image[5000] ^= 1);
    check_home_alone(&run, "canary");
}

/// Tells the volume that its log is durable when it is not, and takes care that the log, which
/// would notice, hears nothing of what follows from that.
struct Ahead(Arc<Log>);

impl CommitLog for Ahead {
    fn marks(&self) -> Marks {
        let marks = self.0.marks();
        Marks { durable: marks.tail, ..marks }
    }
    fn commit(&self, _upto: Lsn) -> Result<(), CommitError> {
        Ok(())
    }
    fn mark(&self, _released: Lsn) -> Result<(), AppendError> {
        Ok(())
    }
    fn release(&self, _upto: Lsn) {}
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        self.0.append(records, parts)
    }
    fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError> {
        self.0.wait_for_room(payload_bytes, patience)
    }
    fn read(
        &self,
        from: Lsn,
        to: Lsn,
        each: &mut dyn FnMut(&Frame<'_>) -> bool,
    ) -> Result<(), ReadError> {
        CommitLog::read(&*self.0, from, to, each)
    }
    fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), ReadError> {
        CommitLog::copy_bytes(&*self.0, lsn, into)
    }
    fn payload_bytes_max(&self) -> u64 {
        self.0.payload_bytes_max()
    }
    fn word(&self, index: usize) -> Result<u64, WordError> {
        CommitLog::word(&*self.0, index)
    }
    fn set_word(&self, index: usize, value: u64) -> Result<(), WordError> {
        self.0.set_word(index, value)
    }
    fn add_to_word(&self, index: usize, more: u64) {
        self.0.add_to_word(index, more);
    }
    fn raise_word(&self, index: usize, value: u64) {
        self.0.raise_word(index, value);
    }
    fn note(&self, record: &[u8]) -> Result<(), NoteError> {
        self.0.note(record)
    }
    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError> {
        self.0.notes()
    }
    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError> {
        self.0.replace_notes(records)
    }
}

/// The checker must notice a volume that applies to the home what the log's device does not have.
#[test]
#[should_panic(expected = "in no acknowledged state")]
fn canary_a_home_ahead_of_the_log_is_noticed() {
    for seed in 0..20 {
        check_all_cuts(seed, 7, |log| Arc::new(Ahead(log)));
    }
}
