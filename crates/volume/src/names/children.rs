//! The names in one directory, in the order in which they are listed.
//!
//! Names are listed by a hash of the name, and the hash is the cookie to go on from. So a listing
//! that is interrupted goes on at the right place although names came and went, in another process
//! too.
//!
//! Promise: a name that stays is listed exactly once.
//! Never: reads a directory.

use std::collections::BTreeMap;

use holdfast_io::Kind;

use holdfast_io::tree::NodeId;

/// The smallest cookie: front ends number `.` and `..` themselves.
const COOKIE_MIN: u64 = 16;

/// One name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    pub(crate) name: Box<[u8]>,
    pub(crate) kind: Kind,
    pub(crate) node: NodeId,
}

/// All names; names of one hash share a bucket.
#[derive(Debug, Default)]
pub(crate) struct Children {
    by_cookie: BTreeMap<u64, Vec<Child>>,
    count: usize,
}

impl Children {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The child of that name.
    pub(crate) fn get(&self, name: &[u8]) -> Option<&Child> {
        self.by_cookie.get(&cookie(name))?.iter().find(|child| *child.name == *name)
    }

    /// Adds the name or gives it another node.
    pub(crate) fn put(&mut self, child: Child) {
        let bucket = self.by_cookie.entry(cookie(&child.name)).or_default();
        match bucket.iter_mut().find(|other| other.name == child.name) {
            Some(other) => *other = child,
            None => {
                bucket.push(child);
                self.count += 1;
            }
        }
    }

    /// Takes the name away.
    pub(crate) fn remove(&mut self, name: &[u8]) -> Option<Child> {
        let cookie = cookie(name);
        let bucket = self.by_cookie.get_mut(&cookie)?;
        let index = bucket.iter().position(|child| *child.name == *name)?;
        let child = bucket.swap_remove(index);
        if bucket.is_empty() {
            self.by_cookie.remove(&cookie);
        }
        self.count -= 1;
        Some(child)
    }

    /// The names behind a cookie, each with its own.
    pub(crate) fn behind(&self, cookie: u64) -> impl Iterator<Item = (u64, &Child)> {
        self.by_cookie
            .range(cookie + 1..)
            .flat_map(|(cookie, bucket)| bucket.iter().map(move |child| (*cookie, child)))
    }
}

/// FNV-1a with a final mix, in the range that a signed directory offset can carry.
fn cookie(name: &[u8]) -> u64 {
    let hash = name.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = (hash ^ hash >> 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 1).max(COOKIE_MIN)
}

#[cfg(test)]
mod tests;
