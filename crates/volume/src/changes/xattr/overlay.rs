//! What an extended attribute is, and those of one node as memory has them.
//!
//! Promise: what was acknowledged last, over the names that the home has.
//! Never: asks the home.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use holdfast_io::XATTR_NAME_BYTES_MAX;
use holdfast_io::acl::{ACCESS, Acl, DEFAULT};
use holdfast_io::tree::Errno;
use holdfast_log::Lsn;

/// A value, shared with whoever is being told of it.
pub(crate) type Value = Arc<[u8]>;

/// An attribute's name, and its value.
pub(crate) type Named = (Box<[u8]>, Value);

pub(super) const USER: &[u8] = b"user.";
const TRUSTED: &[u8] = b"trusted.";
const SECURITY: &[u8] = b"security.";
/// Stands for both lists, which a home has or has not.
pub(super) const LISTS: &[u8] = b"system.posix_acl_";
/// What an attribute takes besides its name and value.
pub(super) const ENTRY_BYTES: usize = 32;

/// What a file's contents are trusted with. Any change of them takes it away.
pub(crate) const CAPABILITY: &[u8] = b"security.capability";

/// By these names XFS shows both lists a second time. What is written to one of them replaces the
/// list.
const SHADOWS: [&[u8]; 2] = [b"trusted.SGI_ACL_FILE", b"trusted.SGI_ACL_DEFAULT"];

/// True for an attribute that is another one's second name.
pub(crate) fn is_shadow(name: &[u8]) -> bool {
    SHADOWS.contains(&name)
}

/// True for the two attributes whose value the tree itself goes by.
pub(crate) fn is_acl(name: &[u8]) -> bool {
    name == ACCESS || name == DEFAULT
}

/// The namespace of a name that some node can have.
pub(super) fn space_of(name: &[u8]) -> Result<&'static [u8], Errno> {
    if name.is_empty() || name.len() > XATTR_NAME_BYTES_MAX {
        return Err(Errno::RANGE);
    }
    if is_acl(name) {
        return Ok(LISTS);
    }
    let space = [USER, TRUSTED, SECURITY].into_iter().find(|space| name.starts_with(space));
    match space.ok_or(Errno::NOTSUP)? {
        space if space.len() == name.len() => Err(Errno::INVAL),
        space => Ok(space),
    }
}

pub(super) fn bytes(wanted: &[Named]) -> usize {
    wanted.iter().map(|(name, value)| ENTRY_BYTES + name.len() + value.len()).sum()
}

/// Where a value is.
pub(crate) enum Found {
    /// Here.
    Here(Value),
    /// On the home.
    AtHome,
    /// There is none.
    Nowhere,
}

/// What the log says of an attribute, and the home may not have.
struct Changed {
    at: Lsn,
    /// None if it was removed.
    value: Option<Value>,
}

/// See the file's head.
#[derive(Default)]
pub(crate) struct Xattrs {
    /// The names on the home, with the values of lists; none before somebody wanted to know.
    home: Option<BTreeMap<Box<[u8]>, Option<Value>>>,
    changed: BTreeMap<Box<[u8]>, Changed>,
}

impl Xattrs {
    /// Those of a node that the home does not have.
    pub(crate) fn none_at_home() -> Xattrs {
        Xattrs { home: Some(BTreeMap::new()), changed: BTreeMap::new() }
    }

    /// True if the names on the home are known.
    pub(crate) fn is_known(&self) -> bool {
        self.home.is_some()
    }

    /// The home has these, and no others. Values of lists are there.
    pub(crate) fn told(&mut self, home: BTreeMap<Box<[u8]>, Option<Value>>) {
        self.home = Some(home);
    }

    pub(crate) fn find(&self, name: &[u8]) -> Found {
        if let Some(changed) = self.changed.get(name) {
            return changed.value.clone().map_or(Found::Nowhere, Found::Here);
        }
        match self.home.as_ref().and_then(|home| home.get(name)) {
            Some(Some(value)) => Found::Here(value.clone()),
            Some(None) => Found::AtHome,
            None => Found::Nowhere,
        }
    }

    /// True if the node has such an attribute.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        !matches!(self.find(name), Found::Nowhere)
    }

    /// The list of that name, if the node has one.
    pub(crate) fn acl(&self, name: &[u8]) -> Option<Acl> {
        match self.find(name) {
            Found::Here(value) => Acl::decode(&value),
            _ => None,
        }
    }

    /// All names, sorted.
    pub(crate) fn names(&self) -> Vec<Box<[u8]>> {
        let home = self.home.iter().flat_map(BTreeMap::keys);
        let names: BTreeSet<_> = home.chain(self.changed.keys()).cloned().collect();
        names.into_iter().filter(|name| self.has(name)).collect()
    }

    /// The record at `at` gives the attribute this value, or takes it away.
    pub(crate) fn set(&mut self, name: &[u8], value: Option<Value>, at: Lsn) {
        self.changed.insert(name.into(), Changed { at, value });
    }

    /// The home has everything below `upto`.
    pub(crate) fn applied(&mut self, upto: Lsn) {
        if self.changed.is_empty() {
            return;
        }
        let changed = std::mem::take(&mut self.changed);
        for (name, changed) in changed {
            match &mut self.home {
                _ if changed.at >= upto => drop(self.changed.insert(name, changed)),
                Some(home) => match changed.value {
                    Some(value) => {
                        let kept = is_acl(&name).then_some(value);
                        home.insert(name, kept);
                    }
                    None => drop(home.remove(&name)),
                },
                None => {}
            }
        }
    }

    /// True if the home has all of them.
    pub(crate) fn is_applied(&self) -> bool {
        self.changed.is_empty()
    }
}

#[cfg(test)]
mod tests;
