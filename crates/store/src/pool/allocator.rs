//! Which page begins next, and which ones are still to be freed.
//!
//! Promise: a number is given once, until its page is freed; what could not be freed is told to
//! whoever tries again, and so is where a leaf may have ghosts or too little in it.
//! Never: makes the page; what the records say of pages that begin and are freed is the truth, and
//! an allocator is made from that.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard};

use holdfast_pages::PageNumber;

use crate::pool::unfreed::{PutOff, Unfreed};

/// Leaves that are noted to be looked at again, at most; with keys of the largest size that is less
/// than a MiB. What is beyond that is found by whoever reads there, and by
/// [`crate::Store::reclaim`].
const UNTIDY_MAX: usize = 1024;

/// The numbers of pages that may begin.
#[derive(Debug)]
pub(crate) struct Allocator(Mutex<Numbers>, Mutex<Untidy>, AtomicBool, Mutex<()>);

/// Keys of leaves that are to be looked at, by the roots of their trees.
#[derive(Debug, Default)]
struct Untidy {
    in_order: VecDeque<Place>,
    all: BTreeSet<Place>,
}

/// A key of the tree with this root.
pub(crate) type Place = (PageNumber, Vec<u8>);

#[derive(Debug)]
struct Numbers {
    next: PageNumber,
    free: Vec<PageNumber>,
    put_off: Unfreed,
    /// Nodes that became one with a neighbour.
    merged: u64,
    /// Roots of trees that are to go or are gone, which somebody may have kept.
    dropped: BTreeSet<PageNumber>,
    /// Roots of trees that have no name yet, since they are being made.
    loading: BTreeSet<PageNumber>,
}

impl Allocator {
    /// Gives the free ones, from the last to the first, then `next` and those behind it.
    #[must_use]
    pub(crate) fn new(next: PageNumber, free: Vec<PageNumber>) -> Allocator {
        let (put_off, dropped, loading) = (Unfreed::default(), BTreeSet::new(), BTreeSet::new());
        let numbers = Numbers { next, free, put_off, merged: 0, dropped, loading };
        Allocator(Mutex::new(numbers), Mutex::default(), AtomicBool::new(false), Mutex::default())
    }

    /// A number that no page has.
    pub(crate) fn take(&self) -> PageNumber {
        let mut numbers = self.lock();
        if let Some(number) = numbers.free.pop() {
            return number;
        }
        let number = numbers.next;
        numbers.next = PageNumber(number.get() + 1);
        number
    }

    /// [`Allocator::take`], of a number that no tree ever had that was dropped since the store was
    /// opened.
    pub(crate) fn take_root(&self) -> PageNumber {
        let mut numbers = self.lock();
        let may_be = |number: &PageNumber| !numbers.dropped.contains(number);
        if let Some(at) = numbers.free.iter().rposition(may_be) {
            return numbers.free.remove(at);
        }
        let number = numbers.next;
        numbers.next = PageNumber(number.get() + 1);
        number
    }

    /// Remembers that the tree with this root is to go.
    pub(crate) fn drop_tree(&self, root: PageNumber) {
        self.lock().dropped.insert(root);
        // EDGE tree-dropped: whoever sees this finds the root among those dropped.
        self.2.store(true, Ordering::Release);
    }

    /// Whether the tree with this root was dropped since the store was opened.
    #[inline]
    pub(crate) fn is_dropped(&self, root: PageNumber) -> bool {
        // EDGE tree-dropped: the root was noted before.
        self.2.load(Ordering::Acquire) && self.lock().dropped.contains(&root)
    }

    /// Remembers that the tree with this root is being made.
    pub(crate) fn begin_loading(&self, root: PageNumber) {
        self.lock().loading.insert(root);
    }

    /// Forgets that again.
    pub(crate) fn end_loading(&self, root: PageNumber) {
        self.lock().loading.remove(&root);
    }

    /// Whether the tree with this root is being made.
    pub(crate) fn is_loading(&self, root: PageNumber) -> bool {
        self.lock().loading.contains(&root)
    }

    /// The next number that was never given, and those that were and are free.
    #[must_use]
    pub(crate) fn unused(&self) -> (PageNumber, Vec<PageNumber>) {
        let numbers = self.lock();
        (numbers.next, numbers.free.clone())
    }

    /// Whether a number was given and is free.
    pub(crate) fn may_give(&self, number: PageNumber) -> bool {
        self.lock().free.contains(&number)
    }

    /// Takes a number back whose page has not begun.
    pub(crate) fn give_back(&self, number: PageNumber) {
        self.lock().free.push(number);
    }

    /// [`Allocator::give_back`], of a node whose neighbour has all that it had.
    pub(crate) fn give_back_merged(&self, number: PageNumber) {
        let mut numbers = self.lock();
        numbers.free.push(number);
        numbers.merged += 1;
    }

    /// How many nodes became one with a neighbour.
    pub(crate) fn merged(&self) -> u64 {
        self.lock().merged
    }

    /// Remembers pages that are to be freed later.
    pub(crate) fn put_off(&self, pages: PutOff) {
        self.lock().put_off.push(pages);
    }

    /// Pages that are to be freed now, if there are some.
    pub(crate) fn take_put_off(&self) -> Option<PutOff> {
        self.lock().put_off.pop()
    }

    /// How many pages are to be freed later.
    pub(crate) fn put_off_pages(&self) -> u64 {
        self.lock().put_off.pages()
    }

    /// Held by whoever frees pages that waited for that, so that none is in nobody's hands.
    pub(crate) fn freeing(&self) -> MutexGuard<'_, ()> {
        self.3.lock().expect("nothing panics that frees pages")
    }

    /// Remembers that the leaf of a key is to be looked at.
    pub(crate) fn note_untidy(&self, tree: PageNumber, key: &[u8]) {
        let mut untidy = self.untidy();
        if untidy.all.len() < UNTIDY_MAX && untidy.all.insert((tree, key.to_vec())) {
            untidy.in_order.push_back((tree, key.to_vec()));
        }
    }

    /// How many leaves are to be looked at.
    pub(crate) fn untidy_count(&self) -> usize {
        self.untidy().all.len()
    }

    /// A leaf that is to be looked at, if there is one; the one that was noted first.
    pub(crate) fn take_untidy(&self) -> Option<Place> {
        let mut untidy = self.untidy();
        let place = untidy.in_order.pop_front()?;
        untidy.all.remove(&place);
        Some(place)
    }

    fn untidy(&self) -> MutexGuard<'_, Untidy> {
        self.1.lock().expect("nothing panics with what is noted")
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().expect("nothing panics with the numbers")
    }
}
