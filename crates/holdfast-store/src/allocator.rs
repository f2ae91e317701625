//! Which page begins next.
//!
//! Promise: a number is given once, until its page is freed.
//! Never: makes the page; what the records say of pages that begin and are freed is the truth, and
//! an allocator is made from that.

use std::sync::Mutex;

use holdfast_pages::PageNumber;

/// The numbers of pages that may begin.
#[derive(Debug)]
pub(crate) struct Allocator(Mutex<Numbers>);

#[derive(Debug)]
struct Numbers {
    next: PageNumber,
    free: Vec<PageNumber>,
}

impl Allocator {
    /// Gives the free ones, from the last to the first, then `next` and those behind it.
    #[must_use]
    pub(crate) fn new(next: PageNumber, free: Vec<PageNumber>) -> Allocator {
        Allocator(Mutex::new(Numbers { next, free }))
    }

    /// A number that no page has.
    pub(crate) fn take(&self) -> PageNumber {
        let mut numbers = self.0.lock().expect("nothing panics with the numbers");
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
        let numbers = self.0.lock().expect("nothing panics with the numbers");
        (numbers.next, numbers.free.clone())
    }

    /// Takes a number back whose page has not begun.
    pub(crate) fn give_back(&self, number: PageNumber) {
        self.0.lock().expect("nothing panics with the numbers").free.push(number);
    }
}
