//! Places that peers hold.
//!
//! Promise: never more are held than there are; a place is free again when its guard is dropped,
//! and no sooner. Where it is known who may come, everyone of those finds a place, whoever has the
//! rest; where anybody may, nobody takes more than are left.
//! Never: takes a place back.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::Peer;

/// So many places, shared by clones.
#[derive(Clone, Debug)]
pub struct Places(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    most: u32,
    /// Those of whom each finds a place; `None` if anybody may come.
    expected: Option<BTreeSet<Peer>>,
    held: Mutex<BTreeMap<Peer, u32>>,
}

/// One place, held until this is dropped: let whatever takes it up own this.
#[derive(Debug)]
#[must_use]
pub struct Place {
    places: Places,
    peer: Peer,
}

impl Places {
    /// Places for these, each of whom finds one as long as there are as many places as peers.
    #[must_use]
    pub fn for_each_of(expected: impl IntoIterator<Item = Peer>, most: u32) -> Places {
        Places::new(Some(expected.into_iter().collect()), most)
    }

    /// Places for anybody: a peer takes one more only while it holds fewer than are free, so one
    /// alone never has more than half, and it takes many peers to have all.
    #[must_use]
    pub fn for_anybody(most: u32) -> Places {
        Places::new(None, most)
    }

    fn new(expected: Option<BTreeSet<Peer>>, most: u32) -> Places {
        Places(Arc::new(Shared { most, expected, held: Mutex::default() }))
    }

    /// How many there are.
    #[must_use]
    pub fn most(&self) -> u32 {
        self.0.most
    }

    /// A place, if the peer may have one more.
    pub fn take(&self, peer: Peer) -> Option<Place> {
        let mut held = self.lock();
        if !self.0.may_take(&held, peer) {
            return None;
        }
        *held.entry(peer).or_default() += 1;
        Some(Place { places: self.clone(), peer })
    }

    /// A place for one that had it before, of which it is not asked again whether it may. `None`:
    /// all are held.
    pub fn keep(&self, peer: Peer) -> Option<Place> {
        let mut held = self.lock();
        if held.values().sum::<u32>() >= self.0.most {
            return None;
        }
        *held.entry(peer).or_default() += 1;
        Some(Place { places: self.clone(), peer })
    }

    /// How many are held.
    #[must_use]
    pub fn held(&self) -> u32 {
        self.lock().values().sum()
    }

    /// How many this peer holds.
    #[must_use]
    pub fn held_by(&self, peer: Peer) -> u32 {
        self.lock().get(&peer).copied().unwrap_or(0)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Peer, u32>> {
        self.0.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Shared {
    fn may_take(&self, held: &BTreeMap<Peer, u32>, peer: Peer) -> bool {
        let free = self.most - held.values().sum::<u32>();
        let own = held.get(&peer).copied().unwrap_or(0);
        match &self.expected {
            None => own < free,
            Some(expected) if own == 0 && expected.contains(&peer) => free > 0,
            Some(expected) => {
                let absent = expected.iter().filter(|other| !held.contains_key(other));
                free as usize > absent.count()
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut held = self.places.lock();
        let own = held.get_mut(&self.peer).expect("a place that is held is counted");
        *own -= 1;
        if *own == 0 {
            held.remove(&self.peer);
        }
    }
}
