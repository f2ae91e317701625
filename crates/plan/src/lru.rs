//! Which page was used longest ago.
//!
//! Promise: an exact order, in constant time for each use, in a list that runs through an array:
//! nothing is allocated after it is made.
//! Never: knows what a page is, or how many there may be.

/// Neighbours of a page in the list.
#[derive(Clone, Copy, Debug)]
struct Link {
    newer: u32,
    older: u32,
}

/// Some of the pages `0..pages`, by the time of their last use.
///
/// One link more than there are pages closes the list to a ring: it is newer than the newest page
/// and older than the oldest, so that no page is a special case.
#[derive(Debug)]
pub(crate) struct Lru {
    links: Vec<Link>,
    listed: u32,
}

impl Lru {
    /// An empty list that any of so many pages may be put in.
    pub(crate) fn new(pages: u32) -> Lru {
        let links = vec![Link { newer: pages, older: pages }; pages as usize + 1];
        Lru { links, listed: 0 }
    }

    /// How many pages are in the list.
    pub(crate) fn len(&self) -> u32 {
        self.listed
    }

    /// Puts a page in front that is not in the list.
    pub(crate) fn push(&mut self, page: u32) {
        self.put_in_front(page);
        self.listed += 1;
    }

    /// Moves a page to the front that is in the list.
    #[inline]
    pub(crate) fn touch(&mut self, page: u32) {
        self.take_out(page);
        self.put_in_front(page);
    }

    /// Takes out the page that was used longest ago; `None` of an empty list.
    pub(crate) fn pop_oldest(&mut self) -> Option<u32> {
        let end = self.end();
        let oldest = self.links[end as usize].newer;
        if oldest == end {
            return None;
        }
        self.take_out(oldest);
        self.listed -= 1;
        Some(oldest)
    }

    fn end(&self) -> u32 {
        self.links.len() as u32 - 1
    }

    #[inline]
    fn take_out(&mut self, page: u32) {
        let Link { newer, older } = self.links[page as usize];
        self.links[newer as usize].older = older;
        self.links[older as usize].newer = newer;
    }

    #[inline]
    fn put_in_front(&mut self, page: u32) {
        let end = self.end();
        let second = self.links[end as usize].older;
        self.links[page as usize] = Link { newer: end, older: second };
        self.links[second as usize].newer = page;
        self.links[end as usize].older = page;
    }
}

#[cfg(test)]
mod tests;
