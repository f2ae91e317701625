//! A page is the sum of its records, wherever they are and whatever it was built from.

use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_log::Lsn;

use super::*;
use crate::apply::tests::Counters;
use crate::apply::{Applied, ApplyFault};
use crate::archive::Archive;
use crate::places::FramePlace;
use crate::record::{PageLink, Record, Records};
use crate::rsn::Slot;
use crate::run::RunWriter;
use crate::run_format::{RunSpan, page_of};
use crate::run_reader::Run;
use crate::tag::Tag;
use crate::view::FreshRecords;

const PAGES: u64 = 6;
/// Of records in the samples, the last so many are not archived.
const WINDOWS: usize = 5;

/// A stream of records of a few pages, in stretches; the last stretch is fresh.
struct Sample {
    bytes: Vec<u8>,
    borders: Vec<Rsn>,
}

impl Sample {
    fn new(seed: u64) -> Sample {
        let mut random = Random::new(seed);
        let (mut bytes, mut borders) = (Vec::new(), vec![Rsn::FIRST]);
        let mut last = [Rsn::NONE; PAGES as usize + 1];
        for _ in 0..=WINDOWS {
            for _ in 0..60 {
                let rsn = Rsn::FIRST.advance(bytes.len() as u64);
                let page = 1 + random.below(PAGES);
                let before = &mut last[page as usize];
                let at = PageLink { page: PageNumber(page), before: *before };
                put(&mut random, at, rsn, &mut bytes);
                *before = rsn;
            }
            borders.push(Rsn::FIRST.advance(bytes.len() as u64));
        }
        Sample { bytes, borders }
    }

    fn records(&self) -> impl Iterator<Item = Record<'_>> {
        Records::new(Rsn::FIRST, &self.bytes).map(|record| record.expect("it was written so"))
    }

    fn bytes_of(&self, record: &Record<'_>) -> &[u8] {
        let from = record.rsn.since(Rsn::FIRST) as usize;
        &self.bytes[from..record.end.since(Rsn::FIRST) as usize]
    }

    /// Runs of all stretches but the last.
    fn archive(&self) -> Archive {
        let files = FakeFiles::new(1);
        let windows = self.borders.windows(2).take(WINDOWS);
        windows.fold(Archive::default(), |archive, two| archive.with(self.run(&files, two)))
    }

    fn run(&self, files: &FakeFiles, two: &[Rsn]) -> Arc<Run> {
        let (span, tag) = (RunSpan { level: 0, begin: two[0], end: two[1] }, Tag::of(&[7; 16]));
        let inside = |record: &Record<'_>| two[0] <= record.rsn && record.rsn < two[1];
        let mut records: Vec<_> = self.records().filter(inside).collect();
        records.sort_by_key(|record| (page_of(record), record.rsn));
        let mut run = RunWriter::begin(files, tag, span).expect("there is room");
        for record in &records {
            run.push(page_of(record), record.rsn, self.bytes_of(record)).expect("there is room");
        }
        let (lsn, lsn_end) = (Lsn(two[0].get()), Lsn(two[1].get()));
        let frame = FramePlace { first: two[0], end: two[1], lsn, lsn_end, utc_ns: 0 };
        run.finish(b"", &[frame]).expect("there is room");
        Arc::new(Run::open(files, span, tag).expect("it is whole"))
    }

    /// The page as it is when it has got each record up to `upto`, one by one.
    fn naive(&self, number: PageNumber, upto: Rsn) -> Page {
        let mut page = Page::zeroed();
        for record in self.records().take_while(|record| record.rsn <= upto) {
            if page_of(&record) == number {
                assert_eq!(apply(&mut page, &record, &Counters), Ok(Applied::Now));
            }
        }
        page
    }
}

/// Puts a record of a page: an image if it is the first one, and now and then.
fn put(random: &mut Random, at: PageLink, rsn: Rsn, out: &mut Vec<u8>) {
    let (body, slot) = ([random.below(200) as u8, 1], Slot(1));
    let what = match random.below(12) {
        _ if at.before == Rsn::NONE => What::Image { at, bytes: &[0; 250] },
        0 => What::Image { at, bytes: &[9; 200] },
        1 => What::Compensate { slot, at, body: &body },
        _ => What::Update { slot, at, body: &body },
    };
    what.put(rsn, out);
}

impl FreshRecords for Sample {
    fn first(&self) -> Rsn {
        self.borders[WINDOWS]
    }

    fn record(&self, rsn: Rsn) -> Option<(Record<'_>, &[u8])> {
        assert!(rsn >= self.first());
        let record = self.records().find(|record| record.rsn == rsn)?;
        Some((record, self.bytes_of(&record)))
    }

    fn newest_of(&self, page: PageNumber) -> Option<Rsn> {
        let here = |record: &Record<'_>| record.rsn >= self.first() && page_of(record) == page;
        self.records().filter(here).last().map(|record| record.rsn)
    }
}

fn replayed(page: &mut Page, number: u64, upto: Upto, view: &View<'_>) -> Result<Rsn, ReplayError> {
    replay(page, PageNumber(number), upto, view, &Counters, &mut History::default())
}

#[test]
fn a_page_is_brought_from_each_of_its_records_to_each_later_one() {
    for seed in 1..=3 {
        let sample = Sample::new(seed);
        let (archive, number) = (sample.archive(), 1 + seed % PAGES);
        let view = View { archive: &archive, fresh: &sample };
        let mine = sample.records().filter(|record| page_of(record) == PageNumber(number));
        let mut places: Vec<Rsn> = mine.map(|record| record.rsn).collect();
        places.insert(0, Rsn::NONE);
        for (at, from) in places.iter().enumerate() {
            let base = sample.naive(PageNumber(number), *from);
            for upto in &places[at.max(1)..] {
                let mut page = base.clone();
                let found = replayed(&mut page, number, Upto::Record(*upto), &view);
                assert_eq!(found.expect("nothing is missing"), *upto, "seed {seed}, from {from}");
                let naive = sample.naive(PageNumber(number), *upto);
                assert!(page.same_bytes(&naive), "seed {seed}, from {from} to {upto}");
            }
            let mut page = base;
            let found = replayed(&mut page, number, Upto::Newest, &view);
            assert_eq!(found.expect("nothing is missing"), *places.last().expect("it has some"));
        }
    }
}

#[test]
fn a_page_that_never_was_is_nothing() {
    let sample = Sample::new(4);
    let (archive, mut page) = (sample.archive(), Page::zeroed());
    let view = View { archive: &archive, fresh: &sample };
    let found = replayed(&mut page, PAGES + 1, Upto::Newest, &view);
    assert_eq!(found.expect("nothing is missing"), Rsn::NONE);
    assert!(page.same_bytes(&Page::zeroed()));
}

#[test]
fn a_page_of_another_history_is_not_built_upon() {
    let sample = Sample::new(5);
    let (archive, mut page) = (sample.archive(), Page::zeroed());
    let view = View { archive: &archive, fresh: &sample };
    let first = sample.records().find(|record| page_of(record) == PageNumber(1));
    page.begin(PageNumber(1), crate::PageKind::Leaf, PageNumber(1));
    page.stamp(first.expect("it has records").rsn.advance(1), 0);
    let second = sample.records().filter(|record| page_of(record) == PageNumber(1)).nth(1);
    let upto = Upto::Record(second.expect("it has records").rsn);
    let found = replayed(&mut page, 1, upto, &view);
    assert!(matches!(found, Err(ReplayError::Broken(ApplyFault::Chain { .. }))), "{found:?}");
}

#[test]
fn a_record_that_is_not_there_is_told() {
    let sample = Sample::new(6);
    let (archive, nothing) = (sample.archive(), Archive::default());
    let astray = Upto::Record(sample.borders[WINDOWS].advance(1));
    let view = View { archive: &archive, fresh: &sample };
    let found = replayed(&mut Page::zeroed(), 1, astray, &view);
    assert!(matches!(found, Err(ReplayError::Astray { .. })), "{found:?}");
    let view = View { archive: &nothing, fresh: &sample };
    let lost = sample.records().filter(|record| record.rsn < sample.first()).last();
    let lost = lost.expect("there are records");
    let found = replayed(&mut Page::zeroed(), page_of(&lost).get(), Upto::Record(lost.rsn), &view);
    assert!(matches!(found, Err(ReplayError::Missing { .. })), "{found:?}");
}
