//! The keys of a program's logs.
//!
//! Promise: a key is wiped when its ring is dropped.
//! Never: shown, not even by `Debug`.

use std::collections::BTreeMap;
use std::fmt;

use zeroize::Zeroizing;

/// A ring of master keys, each of 32 random bytes and known by an id. New sets are sealed with the
/// current one; what an older one has sealed can be read while it is in the ring. An id is never
/// given to another key.
///
/// To change the key of a log, open it with a ring in which a new key is current and the old ones
/// still are. A key is needed until a checkpoint has passed the last set that it has sealed.
///
/// ```
/// use holdfast_wal::{Keys, Options};
///
/// let (old, new) = ([1; 32], [2; 32]); // from where the program keeps its secrets
/// let options = Options::new().with_keys(Keys::new((2, &new), &[(1, &old)])?);
/// assert!(!format!("{options:?}").contains("2, 2"));
/// # Ok::<(), holdfast_wal::KeysFault>(())
/// ```
pub struct Keys {
    current: u32,
    /// Each in a place of its own, where it is wiped: a map moves what it holds.
    ring: BTreeMap<u32, Box<Zeroizing<[u8; 32]>>>,
}

/// Why keys are no ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeysFault {
    /// Two keys have this id.
    #[error("two keys have the id {id}")]
    Twice {
        /// The id.
        id: u32,
    },
}

impl Keys {
    /// A ring of a current key and older ones, with their ids.
    ///
    /// # Errors
    /// See [`KeysFault`].
    pub fn new(current: (u32, &[u8; 32]), older: &[(u32, &[u8; 32])]) -> Result<Keys, KeysFault> {
        let mut keys = Keys { current: current.0, ring: BTreeMap::new() };
        keys.add(current)?;
        older.iter().try_for_each(|key| keys.add(*key))?;
        Ok(keys)
    }

    fn add(&mut self, (id, key): (u32, &[u8; 32])) -> Result<(), KeysFault> {
        let mut place = Box::new(Zeroizing::new([0; 32]));
        place.copy_from_slice(key);
        match self.ring.insert(id, place) {
            None => Ok(()),
            Some(_) => Err(KeysFault::Twice { id }),
        }
    }

    /// The key that seals, and its id.
    pub(crate) fn current(&self) -> (u32, &[u8; 32]) {
        let key = self.get(self.current).expect("the current key was the first in the ring");
        (self.current, key)
    }

    /// Whether there are keys besides the one with this id.
    pub(crate) fn has_others(&self, id: u32) -> bool {
        self.ring.keys().any(|other| *other != id)
    }

    /// The key with this id.
    pub(crate) fn get(&self, id: u32) -> Option<&[u8; 32]> {
        self.ring.get(&id).map(|key| &***key)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<_> = self.ring.keys().collect();
        out.debug_struct("Keys").field("current", &self.current).field("ids", &ids).finish()
    }
}
