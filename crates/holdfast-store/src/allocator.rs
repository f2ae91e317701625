//! Which page begins next, and which ones are still to be freed.
//!
//! Promise: a number is given once, until its page is freed; what could not be freed is told to
//! whoever tries again.
//! Never: makes the page; what the records say of pages that begin and are freed is the truth, and
//! an allocator is made from that.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};

use holdfast_pages::PageNumber;

/// The numbers of pages that may begin.
#[derive(Debug)]
pub(crate) struct Allocator(Mutex<Numbers>);

#[derive(Debug)]
struct Numbers {
    next: PageNumber,
    free: Vec<PageNumber>,
    put_off: VecDeque<PutOff>,
}

/// Pages of a large value that nobody reaches, and that could not be freed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PutOff {
    /// The root of the tree whose value it was.
    pub(crate) tree: PageNumber,
    /// The first page that is left.
    pub(crate) first: PageNumber,
}

impl Allocator {
    /// Gives the free ones, from the last to the first, then `next` and those behind it.
    #[must_use]
    pub(crate) fn new(next: PageNumber, free: Vec<PageNumber>) -> Allocator {
        Allocator(Mutex::new(Numbers { next, free, put_off: VecDeque::new() }))
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

    /// The next number that was never given, and those that were and are free.
    #[must_use]
    pub(crate) fn unused(&self) -> (PageNumber, Vec<PageNumber>) {
        let numbers = self.lock();
        (numbers.next, numbers.free.clone())
    }

    /// Takes a number back whose page has not begun.
    pub(crate) fn give_back(&self, number: PageNumber) {
        self.lock().free.push(number);
    }

    /// Remembers pages that are to be freed later.
    pub(crate) fn put_off(&self, pages: PutOff) {
        self.lock().put_off.push_back(pages);
    }

    /// Pages that are to be freed now, if there are some.
    pub(crate) fn take_put_off(&self) -> Option<PutOff> {
        self.lock().put_off.pop_front()
    }

    fn lock(&self) -> MutexGuard<'_, Numbers> {
        self.0.lock().expect("nothing panics with the numbers")
    }
}
