//! Two damaged sectors among records of 4 MB: what lies behind them tells damage from a torn end,
//! however far behind it is.

use holdfast_io::fake::{FakeFiles, Mood, Random};
use holdfast_io::{Files, OpenHow};
use holdfast_log::CheckVerdict;
use holdfast_wal::format::Raw;
use holdfast_wal::{Log, Lsn, OpenError, Options, ReplayError, verify_at};

use crate::support::{factor, place};

const OPTIONS: Options =
    Options::new().with_segment_bytes(16 << 20).with_segments(2).with_ring_bytes(32 << 20);
const SEGMENT_BYTES: u64 = 16 << 20;
const HEADER_BYTES: u64 = 4096;
const SECTOR_BYTES: u64 = 512;
/// Records of a log, at the least and at the most, and damaged directories made of each.
const RECORDS: [u64; 2] = [4, 7];
const PER_LOG: u64 = 5;
/// Where an open once left most of a span out.
const NEAR_BYTES: u64 = 4 << 20;

/// A log that nobody closed, with records of 3 to 4 MB: some were waited for together, and all
/// before the last one was appended.
struct Victim {
    files: FakeFiles,
    records: Vec<Vec<u8>>,
    places: Vec<(Lsn, Lsn)>,
}

#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    Whole,
    RefusedAtOpen,
    RefusedAtRead,
}

fn open(files: &FakeFiles) -> Result<Log<Vec<u8>, Raw>, OpenError> {
    Log::open_at(place(files), &OPTIONS).map(|(log, _)| log)
}

impl Victim {
    fn new(random: &mut Random) -> Victim {
        let files = FakeFiles::new(1);
        Log::<Vec<u8>, Raw>::create_at(&place(&files), &OPTIONS).unwrap();
        let log = open(&files).unwrap();
        let (mut records, mut places) = (Vec::new(), Vec::new());
        let count = RECORDS[0] + random.below(RECORDS[1] - RECORDS[0] + 1);
        for id in 1..=count {
            let bytes = log.stat().set_bytes_max - random.below(1 << 20);
            records.push(vec![id as u8; bytes as usize]);
            if id == count || random.chance(30) {
                log.commit().unwrap();
            }
            let ticket = log.append(&records[id as usize - 1]).unwrap();
            places.push((ticket.lsn(), ticket.end()));
        }
        log.commit().unwrap();
        let files = files.after_power_cut_in(Mood::LoseAll, 1);
        Victim { files, records, places }
    }

    /// The sector with the head of a record, or any of its sectors.
    fn sector(&self, hit: u64, random: &mut Random) -> (usize, Lsn) {
        let (lsn, end) = self.places[hit as usize];
        let inside = if random.chance(75) { 0 } else { random.below(end.since(lsn)) };
        (hit as usize, lsn.advance(inside).align_down(SECTOR_BYTES))
    }

    /// Overwrites two sectors of records before the last. Returns how far behind the first that one
    /// is, whose head proves them all.
    fn strike(&self, image: &FakeFiles, random: &mut Random) -> u64 {
        let last = self.records.len() - 1;
        let mut hit = [(); 2].map(|()| self.sector(random.below(last as u64), random));
        hit.sort_unstable();
        for (_, lsn) in hit {
            let mut noise = [0; SECTOR_BYTES as usize];
            random.fill(&mut noise);
            let name = format!("segment-{:08}", lsn.get() / SEGMENT_BYTES);
            let how = OpenHow { write: true, ..OpenHow::default() };
            let file = image.open(name.as_ref(), how).unwrap();
            file.write_all_at(&noise, HEADER_BYTES + lsn.get() % SEGMENT_BYTES).unwrap();
            file.sync_data().unwrap();
        }
        self.places[last].0.since(self.places[hit[0].0].0)
    }

    /// A log that opens and is read to its end has all records but the last, which nothing proves.
    fn judge(&self, image: &FakeFiles) -> Result<Outcome, String> {
        let verified = verify_at(&place(image), &mut |_| {}).unwrap().verdict;
        let log = match open(image) {
            Ok(log) => log,
            Err(OpenError::Corrupt { .. }) => return Ok(Outcome::RefusedAtOpen),
            Err(error) => return Err(format!("refused otherwise: {error:?}")),
        };
        let found: Result<Vec<_>, _> = log.iter().map(|one| one.map(|one| one.record)).collect();
        match found {
            Ok(found) if found.len() + 1 < self.records.len() => {
                Err(format!("{} records, and verify says {verified:?}", found.len()))
            }
            Ok(found) if found != self.records[..found.len()] => Err("others".to_owned()),
            Ok(_) if verified == CheckVerdict::Clean => Ok(Outcome::Whole),
            Err(ReplayError::Damaged { .. }) if verified != CheckVerdict::Clean => {
                Ok(Outcome::RefusedAtRead)
            }
            other => Err(format!("{:?}, and verify says {verified:?}", other.map(|all| all.len()))),
        }
    }
}

#[test]
fn two_damaged_sectors_under_large_records_lose_none_that_was_acknowledged_silently() {
    let (mut far, mut refused, mut all) = (0, 0, 0);
    for seed in 0..4 * factor() {
        let mut random = Random::new(seed);
        let victim = Victim::new(&mut random);
        for number in 0..PER_LOG {
            let image = victim.files.after_power_cut_in(Mood::KeepAll, 0);
            let distance_bytes = victim.strike(&image, &mut random);
            let outcome = victim.judge(&image).unwrap_or_else(|why| {
                panic!("seed {seed}, damage {number}, {distance_bytes} bytes to go: {why}")
            });
            far += u64::from(distance_bytes > NEAR_BYTES);
            refused += u64::from(outcome != Outcome::Whole);
            all += 1;
        }
    }
    println!("{all} logs with two damaged sectors, {refused} refused; {far} had to look far ahead");
    assert!(far * 4 > all && refused * 2 > all);
}

#[test]
#[should_panic(expected = "records, and verify says Clean")]
fn two_acknowledged_records_that_are_lost_would_be_noticed() {
    let victim = Victim::new(&mut Random::new(1));
    let image = victim.files.after_power_cut_in(Mood::KeepAll, 0);
    let log = open(&image).unwrap();
    let last = victim.places.len() - 1;
    log.truncate_after(victim.places[last - 2].1).unwrap();
    drop(log);
    victim.judge(&image).unwrap();
}
