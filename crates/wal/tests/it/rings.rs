//! Sealed logs that are opened again and again, each time with another ring of keys.
//!
//! Promise: an opening is accepted only if it was refused, with the id, exactly where a key that is
//! wrong is one that the label knows, or that sealed a set which is still needed.
//! Never: looks at what an opening reads.

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_wal::format::Raw;
use holdfast_wal::{Keys, Log, Lsn, OpenError, Options};

use crate::sealed::open_as;
use crate::support::{SMALL, factor, place, records};

/// Keys of the ids from 1 on.
const KEYS: u32 = 5;
/// Openings of one life.
const OPENINGS: u32 = 12;

/// Ids whose key is another one than it was.
type Wrong = Vec<u32>;

/// A ring with this current key and all others, but for some that are missing.
fn ring(current: u32, missing: &[u32], wrong: &Wrong) -> Options {
    let key = |id: u32| [if wrong.contains(&id) { 0x77 } else { id as u8 }; 32];
    let ids = (1..=KEYS).filter(|id| *id != current && !missing.contains(id));
    let older: Vec<_> = ids.map(|id| (id, key(id))).collect();
    let older: Vec<_> = older.iter().map(|(id, key)| (*id, key)).collect();
    SMALL.with_keys(Keys::new((current, &key(current)), &older).unwrap())
}

fn open(files: &FakeFiles, options: &Options) -> Result<Log<Vec<u8>, Raw>, OpenError> {
    open_as(files, options)
}

/// What is known of a log.
#[derive(Default)]
struct Known {
    made_with: u32,
    /// By id from 1 on, where the last set lies that its key sealed.
    last: [Option<Lsn>; KEYS as usize],
    checkpoint: Lsn,
}

impl Known {
    /// Whether an opening needs the key with this id.
    fn needs(&self, id: u32) -> bool {
        let last = self.last[id as usize - 1];
        id == self.made_with || last.is_some_and(|last| last >= self.checkpoint)
    }
}

/// Appends sets, some so long that a few fill a segment, and moves the checkpoint now and then.
fn work(log: &Log<Vec<u8>, Raw>, current: u32, known: &mut Known, random: &mut Random) {
    let mut ends = Vec::new();
    for _ in 0..random.below(6) {
        let bytes = [10, 500, 20_000][random.below(3) as usize];
        let ticket = log.append(&vec![7; bytes]).unwrap();
        known.last[current as usize - 1] = Some(ticket.lsn());
        ends.push(ticket.end());
    }
    log.commit().unwrap();
    if let (Some(end), true) = (ends.get(random.below(6) as usize), random.chance(25)) {
        log.checkpoint(*end).unwrap();
    }
    known.checkpoint = log.stat().checkpoint;
}

/// One life of a log. Returns how many openings were refused, and how many were not.
fn life(seed: u64) -> [u64; 2] {
    let (mut random, files) = (Random::new(seed), FakeFiles::new(seed));
    let told = format!("HOLDFAST_SEED={seed} cargo test -p holdfast-wal --test it rings::");
    let any = |random: &mut Random| 1 + random.below(KEYS.into()) as u32;
    let mut known = Known { made_with: any(&mut random), ..Known::default() };
    let made = ring(known.made_with, &[], &vec![]);
    Log::<Vec<u8>, Raw>::create_at(&place(&files), &made).unwrap();
    let mut openings = [0, 0];
    for _ in 0..OPENINGS {
        let current = any(&mut random);
        work(
            &open(&files, &ring(current, &[], &vec![])).unwrap(),
            current,
            &mut known,
            &mut random,
        );
        for _ in 0..3 {
            let wrong: Wrong = (0..1 + random.below(2)).map(|_| any(&mut random)).collect();
            let missing: Vec<u32> = (0..random.below(2)).map(|_| any(&mut random)).collect();
            let current = any(&mut random);
            let here = |id: &&u32| **id == current || !missing.contains(id);
            let needed: Vec<_> = wrong.iter().filter(here).filter(|id| known.needs(**id)).collect();
            match open(&files, &ring(current, &missing, &wrong)) {
                Ok(_) => assert!(needed.is_empty(), "{needed:?} of {wrong:?} are wrong: {told}"),
                Err(OpenError::WrongKey { id }) => {
                    assert!(needed.contains(&&id), "{id} is named, of {needed:?}: {told}");
                }
                Err(error) => panic!("{error}: {told}"),
            }
            openings[usize::from(needed.is_empty())] += 1;
        }
    }
    assert!(records(&open(&files, &ring(1, &[], &vec![])).unwrap()).is_ok());
    openings
}

#[test]
fn a_wrong_key_is_refused_at_open_and_named_wherever_the_sets_lie_that_it_did_not_seal() {
    let asked_for = std::env::var("HOLDFAST_SEED").ok().and_then(|seed| seed.parse().ok());
    let seeds = asked_for.map_or(1..101 * factor(), |seed: u64| seed..seed + 1);
    let (mut refused, mut opened) = (0, 0);
    for seed in seeds {
        let openings = life(seed);
        refused += openings[0];
        opened += openings[1];
    }
    assert!(refused > 0 && opened > 0, "{refused} openings refused, {opened} not");
}
