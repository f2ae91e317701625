//! Records are found by their places and by one another, whatever happened to what was cloned.

use holdfast_io::fake::Random;
use holdfast_log::Lsn;

use super::*;
use crate::stream::record::{PageLink, What};
use crate::stream::rsn::Slot;

const PAGES: u64 = 4;

/// All records of a stream, the newest of each page, and the bytes of the frame being made.
#[derive(Default)]
struct Writer {
    all: Vec<(Rsn, Option<PageNumber>)>,
    newest: [Rsn; PAGES as usize],
}

impl Writer {
    /// A frame of so many records, pushed.
    fn push(&mut self, fresh: &mut Fresh, records: u64, random: &mut Random) {
        let (first, mut bytes) = (fresh.end(), Vec::new());
        for _ in 0..records {
            let rsn = first.advance(bytes.len() as u64);
            let page = random.below(PAGES + 1);
            self.what(rsn, page, &vec![7; random.below(3000) as usize]).put(rsn, &mut bytes);
            self.all.push((rsn, (page < PAGES).then_some(PageNumber(page + 1))));
        }
        let end = first.advance(bytes.len() as u64);
        let (lsn, lsn_end) = (Lsn(first.get()), Lsn(end.get()));
        fresh.push(&bytes, &[FramePlace { first, end, lsn, lsn_end, utc_ns: 0 }]);
    }

    fn what<'a>(&mut self, rsn: Rsn, page: u64, body: &'a [u8]) -> What<'a> {
        let Some(newest) = self.newest.get_mut(page as usize) else { return What::Commit(Slot(1)) };
        let at = PageLink { page: PageNumber(page + 1), before: std::mem::replace(newest, rsn) };
        match at.before {
            Rsn::NONE => What::Image { at, bytes: body },
            _ => What::System { at, body },
        }
    }

    /// What the writer wrote is what is there.
    fn check(&self, fresh: &Fresh) {
        let here = self.all.iter().filter(|(rsn, _)| *rsn >= fresh.begin());
        let here: Vec<_> = here.take_while(|(rsn, _)| *rsn < fresh.end()).copied().collect();
        let page_of = |record: Record<'_>| (record.rsn, record.what.link().map(|at| at.page));
        let found: Vec<_> = fresh.records(fresh.begin(), fresh.end()).map(page_of).collect();
        assert_eq!(found, here);
        for (rsn, page) in &here {
            assert_eq!(fresh.record(*rsn).map(page_of), Some((*rsn, *page)));
        }
        for page in (1..=PAGES).map(PageNumber) {
            let mut wanted: Vec<_> = here.iter().filter(|(_, of)| *of == Some(page)).collect();
            wanted.reverse();
            let newest = wanted.first().map_or(Rsn::NONE, |(rsn, _)| *rsn);
            let found: Vec<_> = fresh.history(page, newest).map(|it| it.expect("whole")).collect();
            assert!(found.iter().map(|record| record.rsn).eq(wanted.iter().map(|(rsn, _)| *rsn)));
        }
    }
}

#[test]
fn a_page_is_followed_back_to_the_same_records_that_a_scan_finds() {
    for seed in 1..=20 {
        let (mut random, mut writer) = (Random::new(seed), Writer::default());
        let mut fresh = Fresh::new(Rsn::FIRST);
        let mut kept = Vec::new();
        for _ in 0..40 {
            let records = 1 + random.below(20);
            writer.push(&mut fresh, records, &mut random);
            if random.chance(20) {
                kept.push(fresh.clone());
            }
            if random.chance(20) {
                let from = writer.all[random.below(writer.all.len() as u64) as usize].0;
                fresh.forget_below(from);
                assert!(fresh.begin() >= from);
            }
        }
        writer.check(&fresh);
        kept.iter().for_each(|fresh| writer.check(fresh));
    }
}

#[test]
fn small_pieces_become_few_chunks() {
    let (mut random, mut writer) = (Random::new(1), Writer::default());
    let mut fresh = Fresh::new(Rsn::FIRST);
    let mut clone = fresh.clone();
    for number in 0..1000 {
        if number % 7 == 0 {
            clone = fresh.clone();
        }
        writer.push(&mut fresh, 1, &mut random);
    }
    writer.check(&clone);
    let bytes = fresh.end().since(Rsn::FIRST) as usize;
    let full = 2 * bytes / CHUNK_BYTES_MAX;
    assert!(fresh.chunks.len() <= full + 16, "{} chunks of {bytes} bytes", fresh.chunks.len());
    assert_eq!(fresh.frames(Rsn::FIRST, fresh.end()).count(), 1000);
}

#[test]
fn a_piece_comes_behind_the_last_one_without_moving_it_unless_a_clone_has_that() {
    let (mut random, mut writer) = (Random::new(4), Writer::default());
    let mut fresh = Fresh::new(Rsn::FIRST);
    let place = |fresh: &Fresh| fresh.chunks[0].bytes.as_ptr();
    writer.push(&mut fresh, 1, &mut random);
    let first = place(&fresh);
    writer.push(&mut fresh, 1, &mut random);
    assert_eq!((fresh.chunks.len(), place(&fresh)), (1, first));
    let clone = fresh.clone();
    writer.push(&mut fresh, 1, &mut random);
    assert!(place(&clone) == first && clone.end() < fresh.end());
    writer.check(&clone);
    writer.check(&fresh);
}

#[test]
fn frames_are_told_from_where_they_begin() {
    let (mut random, mut writer) = (Random::new(2), Writer::default());
    let mut fresh = Fresh::new(Rsn::FIRST);
    for _ in 0..10 {
        writer.push(&mut fresh, 3, &mut random);
    }
    let all: Vec<FramePlace> = fresh.frames(Rsn::FIRST, fresh.end()).copied().collect();
    assert_eq!((all.len(), all[0].first, all[9].end), (10, Rsn::FIRST, fresh.end()));
    let some: Vec<_> = fresh.frames(all[3].first, all[7].first).copied().collect();
    assert_eq!(some, all[3..7]);
    fresh.forget_below(all[5].first);
    let rest: Vec<_> = fresh.frames(Rsn::FIRST, fresh.end()).copied().collect();
    assert_eq!(rest, all[5..]);
}

#[test]
fn what_is_not_fresh_is_not_found() {
    let (mut random, mut writer) = (Random::new(3), Writer::default());
    let mut fresh = Fresh::new(Rsn(1000));
    writer.push(&mut fresh, 10, &mut random);
    assert_eq!((fresh.record(Rsn(999)), fresh.record(fresh.end())), (None, None));
    assert_eq!(fresh.history(PageNumber(1), Rsn(999)).count(), 0);
    assert_eq!(fresh.history(PageNumber(1), Rsn::NONE).count(), 0);
    fresh.forget_below(fresh.end());
    assert_eq!((fresh.begin(), fresh.record(Rsn(1000))), (fresh.end(), None));
    assert!(fresh.chunks.is_empty());
}

#[test]
fn a_link_to_another_pages_record_is_noticed() {
    let mut fresh = Fresh::new(Rsn::FIRST);
    let mut bytes = Vec::new();
    let at = PageLink { page: PageNumber(1), before: Rsn::NONE };
    What::Image { at, bytes: b"all" }.put(Rsn::FIRST, &mut bytes);
    let second = Rsn::FIRST.advance(bytes.len() as u64);
    let at = PageLink { page: PageNumber(2), before: Rsn::FIRST };
    What::System { at, body: b"some" }.put(second, &mut bytes);
    let end = Rsn::FIRST.advance(bytes.len() as u64);
    let (lsn, lsn_end) = (Lsn::ZERO, Lsn(end.get()));
    fresh.push(&bytes, &[FramePlace { first: Rsn::FIRST, end, lsn, lsn_end, utc_ns: 0 }]);
    let mut history = fresh.history(PageNumber(2), second);
    assert!(history.next().expect("it is there").is_ok());
    let broken = BrokenChain { page: PageNumber(2), rsn: Rsn::FIRST };
    assert_eq!(history.next(), Some(Err(broken)));
    assert_eq!(history.next(), None);
    let nowhere = fresh.history(PageNumber(2), end).next();
    assert_eq!(nowhere, Some(Err(BrokenChain { page: PageNumber(2), rsn: end })));
}
