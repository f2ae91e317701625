//! What is known of the attributes that an inode of the home takes, by what one took once.
//!
//! An inode has its attributes in two places at most, and what does not fit into one goes into the
//! other. If one attribute of some length fits besides all that are there, then none that is not
//! longer is ever refused, whatever came first: it would find no room in either place, so that one
//! and all the others would be longer than both. So an inode that took spare ones besides what was
//! asked for tells of all that are no longer, in any order.
//!
//! Promise: says yes only to what the home takes, in each of the orders in which it may be given
//! it; or to just what was asked for before.
//! Never: asks the home, but while it learns.

use std::collections::BTreeMap;

use holdfast_io::Held;

use crate::changes::xattr::overlay::{ENTRY_BYTES, Named, bytes, is_acl, space_of};

/// What rounding may add to an attribute, and not to a spare one.
const SLACK_BYTES: usize = 8;

/// All that one inode took, together.
pub(super) struct Taken {
    /// How long the value of each was.
    lengths: BTreeMap<Box<[u8]>, usize>,
    /// It took one as long as this besides; 0 if it did not.
    longest_bytes: usize,
    /// And so many as long as `spare_bytes`.
    pub(super) spares: usize,
    spare_bytes: usize,
}

impl Taken {
    /// `held` has all of `wanted`. It is given others besides, in vain or not: at most as many
    /// bytes again. They are as long as the first, of which more are likely to come.
    pub(super) fn learn(held: &dyn Held, wanted: &[Named]) -> Taken {
        let lengths = wanted.iter().map(|(name, value)| (name.clone(), value.len())).collect();
        let mut taken = Taken { lengths, longest_bytes: 0, spares: 0, spare_bytes: 0 };
        let space = wanted.iter().find(|(name, _)| !is_acl(name));
        let Some(Ok(space)) = space.map(|(name, _)| space_of(name)) else { return taken };
        let mut names = (0..)
            .map(|number: u32| [space, number.to_string().as_bytes()].concat())
            .filter(|name| wanted.iter().all(|(other, _)| **other != **name));
        let mut takes_one = |bytes: usize| {
            let name = names.next().expect("numbers do not end");
            held.set_xattr(&name, &vec![0; bytes + SLACK_BYTES]).is_ok()
        };
        let longest_bytes = wanted.iter().map(length).max().unwrap_or(0);
        if takes_one(longest_bytes) {
            let spare_bytes = wanted.first().map_or(0, length);
            let spares_max = bytes(wanted) / (ENTRY_BYTES + spare_bytes);
            taken.spares = (0..spares_max).take_while(|_| takes_one(spare_bytes)).count();
            (taken.longest_bytes, taken.spare_bytes) = (longest_bytes, spare_bytes);
        }
        taken
    }

    /// True if the home takes these, by what it took.
    pub(super) fn tells_of(&self, wanted: &[Named]) -> bool {
        let length_of = |name: &[u8]| self.lengths.get(name).copied();
        if wanted.len() == self.lengths.len()
            && wanted.iter().all(|(name, value)| length_of(name) == Some(value.len()))
        {
            return true;
        }
        let is_more = |(name, value): &&Named| length_of(name).is_none_or(|it| it < value.len());
        let mut more = 0;
        wanted.iter().all(|one| length(one) <= self.longest_bytes)
            && wanted.iter().filter(is_more).all(|one| {
                more += 1;
                more <= self.spares && length(one) <= self.spare_bytes
            })
    }
}

/// A spare one that is said to be as long has the same in its value alone.
fn length((name, value): &Named) -> usize {
    name.len() + value.len()
}
