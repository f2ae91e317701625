//! Pages keep their records whatever frames they come to and leave.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::thread;

use holdfast_io::fake::Random;
use holdfast_pages::canary::{self, Invariant, Point};
use holdfast_pages::{PageLink, What, apply, parse};

use super::*;
use crate::node::body::{Body, Spot};
use crate::node::contents::{NodeContents, put_image};
use crate::node::{Entry, Node, Shape};

const TREE: PageNumber = PageNumber(1);
const KEY: &[u8] = b"counter";

/// Records in memory, which pages are made of again.
struct Journal {
    records: Mutex<Records>,
    noted: Mutex<BTreeMap<PageNumber, Rsn>>,
    stable: AtomicU64,
    cleaned: AtomicU64,
}

struct Records {
    next: Rsn,
    of_pages: BTreeMap<PageNumber, Vec<(Rsn, Vec<u8>)>>,
}

/// The page has no records.
#[derive(Debug, PartialEq, Eq)]
struct Unknown;

impl Journal {
    fn new() -> Arc<Journal> {
        let records = Records { next: Rsn::FIRST, of_pages: BTreeMap::new() };
        Arc::new(Journal {
            records: Mutex::new(records),
            noted: Mutex::default(),
            stable: AtomicU64::new(u64::MAX),
            cleaned: AtomicU64::new(0),
        })
    }

    /// Puts a record about the page, and applies it.
    fn change(&self, page: &mut Page, number: PageNumber, what: impl FnOnce(PageLink) -> Vec<u8>) {
        let mut records = self.records.lock().expect("no test panics here");
        let (rsn, at) = (records.next, PageLink { page: number, before: page.rsn() });
        let bytes = what(at);
        let begins = page.number() == PageNumber::NONE;
        let what = if begins {
            What::Image { at, bytes: &bytes }
        } else {
            What::System { at, body: &bytes }
        };
        let mut encoded = Vec::new();
        what.put(rsn, &mut encoded);
        let record = parse(rsn, &encoded).expect("it was put");
        apply(page, &record, &NodeContents).expect("it fits");
        records.next = record.end;
        records.of_pages.entry(number).or_default().push((rsn, encoded));
    }

    fn noted(&self, number: PageNumber) -> Option<Rsn> {
        self.noted.lock().expect("no test panics here").get(&number).copied()
    }
}

impl Below for Arc<Journal> {
    type Error = Unknown;

    fn load(&self, number: PageNumber, into: &mut Page) -> Result<(), Unknown> {
        let wanted = self.noted(number).unwrap_or(Rsn::NONE);
        let records = self.records.lock().expect("no test panics here");
        assert!(into.same_bytes(&Page::zeroed()));
        for (rsn, encoded) in records.of_pages.get(&number).ok_or(Unknown)? {
            // What nobody noted is not looked for.
            if *rsn <= wanted {
                let record = parse(*rsn, encoded).expect("it was put");
                apply(into, &record, &NodeContents).expect("it fits");
            }
        }
        Ok(())
    }

    fn cleaned(&self) -> Rsn {
        Rsn(self.cleaned.load(Ordering::Relaxed))
    }

    fn stable(&self) -> Rsn {
        Rsn(self.stable.load(Ordering::Relaxed))
    }

    fn settle(&self) -> Result<(), Unknown> {
        Ok(())
    }

    fn note(&self, number: PageNumber, rsn: Rsn) {
        self.noted.lock().expect("no test panics here").insert(number, rsn);
    }
}

/// Gives the page a counter that is 0.
fn begin(pool: &Pool<Arc<Journal>>, number: u64) {
    let number = PageNumber(number);
    let mut page = pool.make(number).expect("there is a frame");
    pool.below.change(&mut page, number, |_| {
        let (mut image, value) = (Vec::new(), 0_u64.to_le_bytes());
        let shape = Shape { level: 0, low: b"", high: None, foster: None };
        let entry = Entry { suffix: KEY, value: &value, ghost: false };
        put_image(TREE, &shape, [entry].into_iter(), &mut image);
        image
    });
}

fn count(page: &Page) -> u64 {
    let node = Node::of(page).expect("it is a node");
    u64::from_le_bytes(node.entry(0).value.try_into().expect("eight bytes"))
}

/// Adds one to the page's counter.
fn add(pool: &Pool<Arc<Journal>>, page: &mut Page) {
    let (old, number) = (count(page), page.number());
    let new = (old + 1).to_le_bytes();
    pool.below.change(page, number, |_| {
        let spot = Spot { tree: TREE, place: 0, key: KEY };
        let mut body = Vec::new();
        Body::Replace { spot, at: 0, old: &old.to_le_bytes(), new: &new }.put(&mut body);
        body
    });
}

/// A pool of so many frames, and so many pages with counters, from 1 on.
fn pool(frames: usize, pages: u64) -> Pool<Arc<Journal>> {
    pool_by(Eviction::Unused, frames, pages)
}

fn pool_by(eviction: Eviction, frames: usize, pages: u64) -> Pool<Arc<Journal>> {
    let pool = Pool::new(frames, Journal::new(), eviction);
    (1..=pages).for_each(|number| begin(&pool, number));
    pool
}

fn read(pool: &Pool<Arc<Journal>>, number: u64) -> Result<u64, FixError<Unknown>> {
    pool.read(PageNumber(number)).map(|page| count(&page))
}

/// Counts up pages at random, and returns how often; a page is never seen to go back.
fn count_up(pool: &Pool<Arc<Journal>>, seed: u64, pages: u64) -> u64 {
    let (mut random, mut seen, mut added) = (Random::new(seed), BTreeMap::new(), 0);
    for _ in 0..2000 {
        let number = 1 + random.below(pages);
        let now = if random.chance(50) {
            let Ok(mut page) = pool.write(PageNumber(number)) else { continue };
            add(pool, &mut page);
            added += 1;
            count(&page)
        } else {
            let Ok(now) = read(pool, number) else { continue };
            now
        };
        assert!(seen.insert(number, now).is_none_or(|before| before <= now), "page {number}");
    }
    added
}

#[test]
fn pages_keep_what_threads_did_though_few_frames_hold_them() {
    let (pages, pool) = (32, pool(6, 32));
    let added: u64 = thread::scope(|scope| {
        let threads: Vec<_> = (1..=4)
            .map(|seed| {
                scope.spawn({
                    let pool = &pool;
                    move || count_up(pool, seed, pages)
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("it counts")).sum()
    });
    let found: u64 =
        (1..=pages).map(|number| read(&pool, number).expect("nobody else is there")).sum();
    assert_eq!(found, added);
    assert!(added > 1000, "most fixes find a frame: {added}");
}

#[test]
fn a_page_whose_records_are_not_stable_stays() {
    let pool = pool(2, 1);
    let before = pool.below.records.lock().expect("no test panics here").next;
    pool.below.stable.store(before.get(), Ordering::Relaxed);
    begin(&pool, 2);
    begin(&pool, 3);
    assert_eq!(read(&pool, 1), Err(FixError::NoFrame));
    assert_eq!((read(&pool, 2), read(&pool, 3)), (Ok(0), Ok(0)));
    pool.below.stable.store(u64::MAX, Ordering::Relaxed);
    assert_eq!((read(&pool, 1), read(&pool, 3), read(&pool, 2)), (Ok(0), Ok(0), Ok(0)));
}

/// Which of four pages is sent away, the first of which alone is not clean.
fn sent_away(eviction: Eviction, cleaned: impl FnOnce(Rsn) -> Rsn) -> Vec<u64> {
    let pool = pool_by(eviction, 4, 4);
    let next = || pool.below.records.lock().expect("no test panics here").next;
    pool.below.cleaned.store(cleaned(next()).get(), Ordering::Relaxed);
    add(&pool, &mut pool.write(PageNumber(1)).expect("it is there"));
    // The hand has seen that all were used, and that none was since.
    pool.frames.used().for_each(|at| pool.frames[at].used.store(false, Ordering::Relaxed));
    begin(&pool, 5);
    (1..=4).filter(|number| pool.copy(PageNumber(*number)).is_none()).collect()
}

#[test]
fn a_clean_page_goes_before_one_that_is_not_if_that_is_asked_for() {
    assert_eq!(sent_away(Eviction::Unused, |next| next), [1]);
    assert_eq!(sent_away(Eviction::CleanFirst, |next| next), [2]);
    let none_is_clean = |_| Rsn::NONE;
    assert_eq!(sent_away(Eviction::CleanFirst, none_is_clean).len(), 1);
}

#[test]
fn pages_that_were_found_brought_and_sent_away_are_counted() {
    let pool = pool(2, 3);
    let before = pool.statistics();
    assert_eq!((before.frames, before.misses, before.evictions), (2, 0, 1));
    assert_eq!((read(&pool, 3), read(&pool, 3), read(&pool, 1)), (Ok(0), Ok(0), Ok(0)));
    let now = pool.statistics();
    assert_eq!((now.hits, now.misses, now.evictions), (before.hits + 2, 1, 2));
}

#[test]
fn a_latched_page_stays() {
    let pool = pool(2, 3);
    let (one, two) = (pool.read(PageNumber(1)), pool.read(PageNumber(2)));
    assert_eq!(read(&pool, 3), Err(FixError::NoFrame));
    assert_eq!((count(&one.expect("there")), count(&two.expect("there"))), (0, 0));
    assert_eq!(read(&pool, 3), Ok(0));
}

#[test]
fn a_page_that_cannot_be_had_takes_no_frame() {
    let pool = pool(1, 1);
    for _ in 0..3 {
        assert_eq!(read(&pool, 7), Err(FixError::Below(Unknown)));
    }
    assert_eq!(read(&pool, 1), Ok(0));
}

#[test]
fn a_number_that_no_page_has_is_refused() {
    let pool = pool(1, 1);
    for number in [0, PAGES_MAX, u64::MAX] {
        assert_eq!(read(&pool, number), Err(FixError::NoSuchPage(PageNumber(number))));
        assert!(pool.make(PageNumber(number)).is_err());
        assert!(pool.try_write(PageNumber(number)).is_none());
    }
    assert_eq!(read(&pool, PAGES_MAX - 1), Err(FixError::Below(Unknown)));
}

#[test]
fn only_what_is_there_and_free_is_tried() {
    let pool = pool(1, 2);
    assert!(pool.try_write(PageNumber(1)).is_none(), "it has left its frame");
    assert!(pool.try_write(PageNumber(2)).is_some());
    let latch = pool.read(PageNumber(2)).expect("it is there");
    assert!(pool.try_write(PageNumber(2)).is_none(), "somebody reads it");
    drop(latch);
}

#[test]
fn a_forgotten_page_is_loaded_anew() {
    let pool = pool(2, 2);
    assert_eq!((read(&pool, 2), read(&pool, 1)), (Ok(0), Ok(0)));
    let mut page = pool.write(PageNumber(1)).expect("it is there");
    pool.below.note(PageNumber(1), page.rsn());
    page.contents_mut().fill(7);
    pool.forget(page);
    assert_eq!((read(&pool, 1), read(&pool, 2)), (Ok(0), Ok(0)));
}

/// Lets a page with news leave its frame, and returns whether somebody who came at the worst moment
/// would have loaded it without them.
fn is_missed_while_it_leaves() -> bool {
    let pool = pool(1, 2);
    add(&pool, &mut pool.write(PageNumber(1)).expect("there is a frame"));
    let (journal, missed) = (Arc::clone(&pool.below), Arc::new(AtomicBool::new(false)));
    let seen = Arc::clone(&missed);
    let hooked = canary::hook(move |point| {
        assert_eq!(point, Point::Evicting);
        let mut page = Page::zeroed();
        let loaded = journal.load(PageNumber(1), &mut page);
        let stale = loaded.is_err() || page.number() == PageNumber::NONE || count(&page) != 1;
        seen.store(stale, Ordering::Relaxed);
    });
    assert_eq!(read(&pool, 2), Ok(0));
    drop(hooked);
    missed.load(Ordering::Relaxed)
}

#[test]
fn a_page_that_leaves_is_noted_before_it_can_be_missed() {
    assert!(!is_missed_while_it_leaves());
    let off = canary::switch_off(Invariant::NotedBeforeEvicted);
    assert!(is_missed_while_it_leaves(), "the test would notice");
    drop(off);
}
