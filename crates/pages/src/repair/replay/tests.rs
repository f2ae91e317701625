//! A page is the sum of its records, wherever they are and whatever it was built from.

use std::sync::Arc;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_log::Lsn;

use super::*;
use crate::archive::Archive;
use crate::archive::fresh::Fresh;
use crate::archive::run::RunWriter;
use crate::archive::run_format::{RunSpan, page_of};
use crate::archive::run_reader::Run;
use crate::page::apply::tests::Counters;
use crate::page::apply::{Applied, ApplyFault};
use crate::stream::frame_index::FramePlace;
use crate::stream::record::{PageLink, Record, Records, What};
use crate::stream::rsn::Slot;
use crate::stream::tag::Tag;

const PAGES: u64 = 6;
/// Of records in the samples, the last so many are not archived.
const WINDOWS: usize = 5;

/// A stream of records of a few pages, in stretches; the last stretch is fresh.
pub(crate) struct Sample {
    bytes: Vec<u8>,
    borders: Vec<Rsn>,
}

impl Sample {
    pub(crate) fn new(seed: u64) -> Sample {
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

    pub(crate) fn records(&self) -> impl Iterator<Item = Record<'_>> {
        Records::new(Rsn::FIRST, &self.bytes).map(|record| record.expect("it was written so"))
    }

    pub(crate) fn bytes_of(&self, record: &Record<'_>) -> &[u8] {
        let from = record.rsn.since(Rsn::FIRST) as usize;
        &self.bytes[from..record.end.since(Rsn::FIRST) as usize]
    }

    /// Runs of all stretches but the last.
    pub(crate) fn archive(&self) -> Archive {
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

    /// The last stretch.
    fn fresh(&self) -> Fresh {
        let (first, end) = (self.borders[WINDOWS], self.borders[WINDOWS + 1]);
        let (lsn, lsn_end) = (Lsn(first.get()), Lsn(end.get()));
        let mut fresh = Fresh::new(first);
        let frame = FramePlace { first, end, lsn, lsn_end, utc_ns: 0 };
        fresh.push(&self.bytes[first.since(Rsn::FIRST) as usize..], &[frame]);
        fresh
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

fn replayed(page: &mut Page, number: u64, upto: Upto, view: &View) -> Result<Rsn, ReplayError> {
    replay(page, PageNumber(number), upto, view, &Counters, &mut PageRecords::default())
}

#[test]
fn a_page_is_brought_from_each_of_its_records_to_each_later_one() {
    for seed in 1..=3 {
        let sample = Sample::new(seed);
        let (archive, number) = (sample.archive(), 1 + seed % PAGES);
        let view = View::new(archive, sample.fresh());
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
    let view = View::new(archive, sample.fresh());
    let found = replayed(&mut page, PAGES + 1, Upto::Newest, &view);
    assert_eq!(found.expect("nothing is missing"), Rsn::NONE);
    assert!(page.same_bytes(&Page::zeroed()));
}

#[test]
fn a_page_of_another_history_is_not_built_upon() {
    let sample = Sample::new(5);
    let (archive, mut page) = (sample.archive(), Page::zeroed());
    let view = View::new(archive, sample.fresh());
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
    let first = sample.borders[WINDOWS];
    let view = View::new(sample.archive(), sample.fresh());
    let foreign = sample.records().find(|record| record.rsn >= first).expect("there are records");
    let number = page_of(&foreign).get() % PAGES + 1;
    let found = replayed(&mut Page::zeroed(), number, Upto::Record(foreign.rsn), &view);
    assert!(matches!(found, Err(ReplayError::Astray(_))), "{found:?}");
    let archived = Upto::Record(Rsn(first.get() - 1));
    let found = replayed(&mut Page::zeroed(), number, archived, &view);
    assert!(matches!(found, Err(ReplayError::Missing { .. })), "{found:?}");
}
