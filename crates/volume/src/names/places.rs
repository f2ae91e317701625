//! The names of one node.
//!
//! Nearly every node has one name, and there may be millions of nodes: those of one with few are a
//! list, which is searched. Of one with many names each is found by what it is, and by when it
//! came, so that no name costs more because there are others.
//!
//! Promise: they keep the order in which they came, and each is there once.
//! Never: says what a name stands for.

use std::collections::BTreeMap;

use super::place::{ORPHANS, Place};
use holdfast_io::tree::NodeId;

/// So many names are a list. One with half of them is a list again.
pub(crate) const LISTED_MAX: usize = 16;

/// The names of one node, in the order in which they came.
#[derive(Clone, Debug)]
pub(crate) enum Places {
    Few(Vec<Place>),
    Many(Box<Many>),
}

/// More than a list is good for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Many {
    by_order: BTreeMap<u64, Place>,
    /// When each came: by name, and then by directory.
    orders: BTreeMap<Place, u64>,
    /// Those among the orphans, of which a node has one at the most, or hardly more.
    orphans: Vec<u64>,
    next: u64,
}

impl Many {
    fn put(&mut self, place: Place) {
        if self.orders.contains_key(&place) {
            return;
        }
        if place.parent == ORPHANS {
            self.orphans.push(self.next);
        }
        self.orders.insert(place.clone(), self.next);
        self.by_order.insert(self.next, place);
        self.next += 1;
    }

    fn remove(&mut self, place: &Place) -> bool {
        let Some(order) = self.orders.remove(place) else { return false };
        self.by_order.remove(&order);
        self.orphans.retain(|other| *other != order);
        true
    }
}

impl Places {
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Places::Few(list) => list.len(),
            Places::Many(many) => many.orders.len(),
        }
    }

    /// The one that came first.
    pub(crate) fn first(&self) -> Option<&Place> {
        match self {
            Places::Few(list) => list.first(),
            Places::Many(many) => many.by_order.values().next(),
        }
    }

    pub(crate) fn contains(&self, place: &Place) -> bool {
        match self {
            Places::Few(list) => list.contains(place),
            Places::Many(many) => many.orders.contains_key(place),
        }
    }

    /// Whether the name in the directory is among them.
    pub(crate) fn has(&self, parent: NodeId, name: &[u8]) -> bool {
        match self {
            Places::Few(list) => list.iter().any(|is| is.parent == parent && *is.name == *name),
            Places::Many(_) => self.contains(&Place { parent, name: name.into() }),
        }
    }

    /// All of them.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Place> {
        let (few, many) = self.parts();
        few.iter().chain(many.into_iter().flat_map(|many| many.by_order.values()))
    }

    /// Those that are called so, in whatever directory.
    pub(crate) fn named<'p>(&'p self, name: &'p [u8]) -> impl Iterator<Item = &'p Place> {
        let (few, many) = self.parts();
        let listed = few.iter().filter(move |place| *place.name == *name);
        let found = many.into_iter().flat_map(move |many| {
            let from = Place { parent: NodeId(0), name: name.into() };
            let behind = many.orders.range(from..).map(|(place, _)| place);
            behind.take_while(move |place| *place.name == *name)
        });
        listed.chain(found)
    }

    /// The first one among the orphans.
    pub(crate) fn orphan(&self) -> Option<&Place> {
        match self {
            Places::Few(list) => list.iter().find(|place| place.parent == ORPHANS),
            Places::Many(many) => many.by_order.get(many.orphans.first()?),
        }
    }

    /// Adds a name, unless it is there.
    pub(crate) fn put(&mut self, place: Place) {
        match self {
            Places::Few(list) if list.contains(&place) => {}
            Places::Few(list) if list.len() < LISTED_MAX => list.push(place),
            Places::Few(list) => {
                let mut many = Many::default();
                std::mem::take(list).into_iter().for_each(|place| many.put(place));
                many.put(place);
                *self = Places::Many(Box::new(many));
            }
            Places::Many(many) => many.put(place),
        }
    }

    /// Takes a name away. False if it was not there.
    pub(crate) fn remove(&mut self, place: &Place) -> bool {
        match self {
            Places::Few(list) => {
                let before = list.len();
                list.retain(|other| other != place);
                list.len() < before
            }
            Places::Many(many) => {
                let is_removed = many.remove(place);
                if many.orders.len() <= LISTED_MAX / 2 {
                    let list = std::mem::take(&mut many.by_order).into_values().collect();
                    *self = Places::Few(list);
                }
                is_removed
            }
        }
    }

    fn parts(&self) -> (&[Place], Option<&Many>) {
        match self {
            Places::Few(list) => (list, None),
            Places::Many(many) => (&[], Some(many)),
        }
    }
}

impl Default for Places {
    fn default() -> Places {
        Places::Few(Vec::new())
    }
}

impl PartialEq for Places {
    fn eq(&self, other: &Places) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl Eq for Places {}

impl FromIterator<Place> for Places {
    fn from_iter<I: IntoIterator<Item = Place>>(places: I) -> Places {
        let mut all = Places::default();
        places.into_iter().for_each(|place| all.put(place));
        all
    }
}

#[cfg(test)]
mod tests;
