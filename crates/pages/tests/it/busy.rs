//! Pages that are changed, fetched, archived and cleaned by several threads at once.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::thread;

use holdfast_io::Files;
use holdfast_io::fake::{Mood, Random};
use holdfast_pages::{Contents, Page, PageLink, PageNumber, Pages, Rsn, What, apply, parse};

use crate::support::RING_BYTES;
use crate::toy::{Counters, PAGES, Store};

/// Pages as a pool has them, each behind its latch.
struct Pool(Vec<Mutex<Page>>);

impl Pool {
    fn latch(&self, number: PageNumber) -> MutexGuard<'_, Page> {
        self.0[number.get() as usize].lock().expect("no other thread has failed")
    }

    /// Changes a page, and puts a record that says how.
    fn change(&self, pages: &Pages, number: PageNumber, random: &mut Random) {
        let mut page = self.latch(number);
        let (at, mut image) = (PageLink { page: number, before: page.rsn() }, Vec::new());
        let body = vec![1 + random.below(60) as u8; 20 + random.below(200) as usize];
        let what = if page.rsn() == Rsn::NONE {
            image.extend_from_slice(&[0; 64]);
            What::Image { at, bytes: &image }
        } else if page.since_image_bytes() > 4096 {
            Counters.image(&page, &mut image);
            What::Image { at, bytes: &image }
        } else {
            What::System { at, body: &body }
        };
        let (mut rsn, mut bytes) = (Rsn::NONE, Vec::new());
        pages.stream().append(&mut |group| rsn = group.put(&what)).expect("it fits");
        what.put(rsn, &mut bytes);
        apply(&mut page, &parse(rsn, &bytes).expect("it was put"), &Counters).expect("it follows");
    }

    /// Gives a page away and brings it again, if its records are stable.
    fn evict(&self, pages: &Pages, number: PageNumber) {
        let mut page = self.latch(number);
        if page.rsn() == Rsn::NONE || page.rsn() >= pages.stream().stable() {
            return;
        }
        pages.note(number, page.rsn());
        let mut again = Page::zeroed();
        let fetched = pages.load(number, &mut again).expect("its records are there");
        assert!(again.same_bytes(&page), "{again:?} is not {page:?}");
        assert_eq!(fetched.repaired, None, "nothing is wrong with page {number}");
        *page = again;
    }
}

fn work(store: &Store, pool: &Pool, seed: u64) {
    let mut random = Random::new(seed);
    while store.log.marks().tail.get() < 12 * RING_BYTES {
        let number = PageNumber(1 + random.below(PAGES));
        match random.below(12) {
            0 => {
                store.pages.stream().flush().expect("room is made");
            }
            1 => store.pages.stream().sync(store.pages.stream().next()).expect("room is made"),
            2..=4 => pool.evict(&store.pages, number),
            _ => pool.change(&store.pages, number, &mut random),
        }
    }
}

/// Does one of the services until all work is done.
fn serve(is_over: &AtomicBool, mut step: impl FnMut() -> bool) {
    while !is_over.load(Ordering::Relaxed) {
        if !step() {
            thread::yield_now();
        }
    }
}

/// Loses the page file every now and then.
fn lose_pages(store: &Store, is_over: &AtomicBool) {
    let mut at_bytes = 3 * RING_BYTES;
    serve(is_over, || {
        let is_time = store.log.marks().tail.get() > at_bytes;
        if is_time {
            store.files.remove_file(Path::new("pages")).expect("it is there");
            store.pages.restore().expect("the disk is sound");
            at_bytes += 3 * RING_BYTES;
        }
        is_time
    });
}

#[test]
fn pages_are_what_their_records_say_whoever_is_at_work() {
    let store = Store::new(1);
    let pool = Pool((0..=PAGES).map(|_| Mutex::new(Page::zeroed())).collect());
    let (pages, is_over) = (&store.pages, AtomicBool::new(false));
    thread::scope(|scope| {
        let services = [
            scope.spawn(|| serve(&is_over, || pages.follow().expect("the stream is sound"))),
            scope.spawn(|| serve(&is_over, || pages.checkpoint().expect("the stream is sound"))),
            scope.spawn(|| serve(&is_over, || pages.archive().expect("the disk is sound"))),
            scope.spawn(|| serve(&is_over, || pages.clean().expect("the disk is sound"))),
            scope.spawn(|| serve(&is_over, || pages.merge().expect("the disk is sound"))),
            scope.spawn(|| lose_pages(&store, &is_over)),
        ];
        let (store, pool) = (&store, &pool);
        let workers = [1, 2].map(|seed| scope.spawn(move || work(store, pool, seed)));
        let done = workers.map(thread::ScopedJoinHandle::join);
        is_over.store(true, Ordering::Relaxed);
        done.into_iter().for_each(|done| done.expect("a worker has failed"));
        services.into_iter().for_each(|service| service.join().expect("a service has failed"));
    });
    pages.stream().sync(pages.stream().next()).expect("there is room");
    let disk = store.files.after_power_cut_in(Mood::LoseAll, 1);
    let again = Store::open(&disk, store.model.clone()).expect("everything is there");
    for number in (1..=PAGES).map(PageNumber) {
        let mut page = Page::zeroed();
        again.pages.load(number, &mut page).expect("it is there");
        assert!(page.same_bytes(&pool.latch(number)), "page {number}");
    }
}
