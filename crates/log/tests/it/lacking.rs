//! Segment files that are not as they were when their log is opened again: damaged, full of zeros,
//! older, short, too long or gone, while the ring has what its reader lacks.

use std::path::Path;
use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{Foreseen, Log, OpenError, Recovery};
use holdfast_memory::{Medium, Region, RegionSpec};

use crate::support::{
    CONFIG, IDENTITY, Model, RING_BYTES, open_shared, open_with, region, replay, seeds, step,
};

/// What happens to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Damage {
    Nothing,
    Flips,
    Zeros,
    ZerosFrom,
    Older,
    Short,
    Long,
    Missing,
    /// The whole directory.
    AllOlder,
    /// The whole directory, made again from memory.
    AllGone,
    /// Both catalogues, and now and then a segment, made again from memory.
    NoCatalogue,
}

const ALL: [Damage; 11] = [
    Damage::Nothing,
    Damage::Flips,
    Damage::Zeros,
    Damage::ZerosFrom,
    Damage::Older,
    Damage::Short,
    Damage::Long,
    Damage::Missing,
    Damage::AllOlder,
    Damage::AllGone,
    Damage::NoCatalogue,
];

pub(crate) fn image(files: &FakeFiles) -> FakeFiles {
    files.after_power_cut_in(Mood::KeepAll, 0)
}

pub(crate) fn contents_of(files: &FakeFiles, name: &str) -> Vec<u8> {
    let file = files.open(Path::new(name), OpenHow::default()).expect("it is there");
    let mut bytes = vec![0; file.metadata().expect("it is open").size_bytes as usize];
    file.read_full_at(&mut bytes, 0).expect("the disk is sound");
    bytes
}

pub(crate) fn segments_of(files: &FakeFiles) -> Vec<String> {
    let entries = files.read_dir(Path::new("")).expect("a directory");
    let names = entries.into_iter().map(|it| String::from_utf8(it.name).expect("a name of ours"));
    let mut names: Vec<_> = names.filter(|name| name.starts_with("segment-")).collect();
    names.sort();
    names
}

/// Does it to one of the segment files.
fn damage(what: Damage, files: &FakeFiles, before: &FakeFiles, random: &mut Random) {
    if matches!(what, Damage::Nothing | Damage::AllOlder | Damage::AllGone) {
        return;
    }
    if what == Damage::NoCatalogue {
        let remove = |name: &str| drop(files.remove_file(Path::new(name)));
        ["catalogue", "catalogue.copy"].into_iter().for_each(remove);
        segments_of(files).iter().filter(|_| random.below(3) == 0).for_each(|name| remove(name));
        return files.sync_dir(Path::new("")).expect("the disk is sound");
    }
    let names = segments_of(files);
    let name = &names[random.below(names.len() as u64) as usize];
    let mut bytes = contents_of(files, name);
    let at = random.below(bytes.len() as u64) as usize;
    match what {
        Damage::Nothing | Damage::AllOlder | Damage::AllGone | Damage::NoCatalogue => {
            unreachable!("no file's contents")
        }
        Damage::Missing => {
            files.remove_file(Path::new(name)).expect("it is there");
            return files.sync_dir(Path::new("")).expect("the disk is sound");
        }
        Damage::Flips => (0..3).for_each(|_| {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << random.below(8);
        }),
        Damage::Zeros => bytes.fill(0),
        Damage::ZerosFrom => bytes[at..].fill(0),
        Damage::Older if segments_of(before).contains(name) => bytes = contents_of(before, name),
        Damage::Older => return,
        Damage::Short => bytes.truncate(at),
        // Behind its end, which hurts nothing, or somewhere before it, with all that follows moved.
        Damage::Long => {
            let at = if random.below(2) == 0 { bytes.len() } else { at };
            let more = [1, 4095, 4096, 1 << 20][random.below(4) as usize];
            bytes.splice(at..at, vec![random.below(256) as u8; more]);
        }
    }
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = files.open(Path::new(name), how).expect("it is there");
    file.set_len(bytes.len() as u64).expect("the disk is sound");
    file.write_all_at(&bytes, 0).expect("the disk is sound");
    file.sync_data().expect("the disk is sound");
}

/// Every file.
fn all_of(files: &FakeFiles) -> Vec<(String, Vec<u8>)> {
    let entries = files.read_dir(Path::new("")).expect("a directory");
    let names = entries.into_iter().map(|it| String::from_utf8(it.name).expect("a name of ours"));
    let mut all: Vec<_> = names.map(|name| (name.clone(), contents_of(files, &name))).collect();
    all.sort();
    all
}

/// What was foreseen is what an open comes to; and what it refuses is as it was.
fn agree(
    foreseen: &Result<Foreseen, OpenError>,
    opened: &Result<(Log, Recovery), OpenError>,
    (before, after): (&FakeFiles, &FakeFiles),
) -> Result<(), String> {
    if let Err(error) = opened
        && all_of(before) != all_of(after)
    {
        return Err(format!("it was refused, and is not as it was: {error}"));
    }
    let same = match (foreseen, opened) {
        (Ok(foreseen), Ok((_, found))) => {
            (foreseen.durable, foreseen.tail) == (found.durable, found.tail)
                && foreseen.released == found.released
        }
        (Err(foreseen), Err(found)) => foreseen.to_string() == found.to_string(),
        _ => false,
    };
    let found = opened.as_ref().map(|(_, found)| found);
    if same { Ok(()) } else { Err(format!("foreseen {foreseen:?}, opened {found:?}")) }
}

/// A log that was killed, of which a file is damaged then. Whether the device lacked anything.
fn lived_through(what: Damage, seed: u64) -> Result<bool, String> {
    let folder = tempfile::tempdir().expect("a folder");
    let medium = Medium::File { path: folder.path().join("region") };
    let mut random = Random::new(seed);
    let (files, mut model) = (FakeFiles::new(seed), Model::default());
    Log::create(&files, IDENTITY, &CONFIG).expect("an empty disk takes a log");
    let spec = RegionSpec { ring_bytes: RING_BYTES, roster_bytes: 4096, identity: IDENTITY };
    let ring = Arc::new(Region::create(&medium, &spec).expect("there is room"));
    let (log, _) = open_shared(&files, &ring).expect("a new log opens");
    let mut before = image(&files);
    let (steps, copied_every) = if what == Damage::AllOlder { (400, 200) } else { (60, 12) };
    for _ in 0..random.below(steps) {
        step(&mut model, &log, &mut random).expect("the disk is sound");
        if random.below(copied_every) == 0 {
            before = image(&files);
        }
    }
    drop((log, ring));
    let files = match what {
        Damage::AllOlder => image(&before),
        Damage::AllGone => FakeFiles::new(seed),
        _ => image(&files),
    };
    damage(what, &files, &before, &mut random);
    // Without the ring.
    let alone = Log::foresee(&files, None, &CONFIG);
    let other = image(&files);
    agree(&alone, &open_with(&other, region()), (&files, &other))?;
    // With it.
    let seen = Region::observe(&medium).expect("it is a region");
    if matches!(what, Damage::AllGone | Damage::NoCatalogue) {
        Log::remake(&files, &seen, &CONFIG).map_err(|error| format!("made again: {error}"))?;
    }
    let foreseen = Log::foresee(&files, Some(&seen), &CONFIG);
    drop(seen);
    let ring = Arc::new(Region::attach(&medium).expect("it is a region"));
    let before = image(&files);
    let opened = open_shared(&files, &ring);
    agree(&foreseen, &opened, (&before, &files))?;
    let (log, found) = opened.map_err(|error| format!("memory has all of it: {error}"))?;
    model.check(&log, true)?;
    let lacked = foreseen.is_ok_and(|it| it.ring.is_some_and(|ring| ring.lacking.is_some()));
    if lacked == found.again.is_empty() || found.lacks.is_some() {
        return Err(format!("lacked {lacked}, and {found:?}"));
    }
    if found.shortened.is_empty() != (what != Damage::Long) {
        return Err(format!("it is not said that it was cut: {found:?}"));
    }
    drop((log, ring));
    // Then the power goes, and the ring with it.
    let files = files.after_power_cut_in(Mood::LoseAll, 0);
    let alone = open_with(&files, region());
    let is_told = [Damage::Nothing, Damage::Short, Damage::Long, Damage::Missing].contains(&what);
    if lacked || is_told {
        let (log, _) = alone.map_err(|error| format!("without the ring: {error}"))?;
        model.check(&log, false)?;
    }
    Ok(lacked)
}

#[test]
fn what_a_segment_lost_is_written_again_from_the_ring_and_what_an_open_does_is_foreseen() {
    let mut lacked = 0;
    for seed in seeds(220) {
        let what = ALL[(seed % ALL.len() as u64) as usize];
        match lived_through(what, seed) {
            Ok(it) => lacked += u32::from(it),
            Err(error) => panic!(
                "{what:?}: {error}; {}",
                replay("what_a_segment_lost_is_written_again", seed)
            ),
        }
    }
    assert!(lacked > 10, "the damages hit nothing: {lacked}");
}
