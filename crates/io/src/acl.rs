//! POSIX access control lists: their bytes, and what Linux does to them and to a mode.
//!
//! A list is the value of one of two extended attributes: [`ACCESS`] says who may use a node,
//! [`DEFAULT`] what is handed down to what is made in a directory. An access list and the mode tell
//! the same of owner, others and of the group class, which is the mask's where there is one.
//!
//! Promise: lists and modes change as they do on a file system of Linux; a test compares both.
//! Never: asks a file system.

/// The attribute that says who may use a node.
pub const ACCESS: &[u8] = b"system.posix_acl_access";
/// The attribute of a directory that is handed down.
pub const DEFAULT: &[u8] = b"system.posix_acl_default";

/// The one version of the bytes.
const VERSION: u32 = 2;
const HEAD_BYTES: usize = 4;
const ENTRY_BYTES: usize = 8;
/// Of an entry that speaks of nobody by number.
const NOBODY: u32 = u32::MAX;

const OWNER: u16 = 0x01;
const USER: u16 = 0x02;
const OWNING_GROUP: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHERS: u16 = 0x20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    tag: u16,
    permissions: u16,
    id: u32,
}

/// A list that makes sense: one entry each for owner, owning group and others, and a mask where
/// somebody else is named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acl {
    entries: Vec<Entry>,
}

impl Acl {
    /// The list with these bytes; none if they are not a list that makes sense.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Acl> {
        let (head, entries) = bytes.split_at_checked(HEAD_BYTES)?;
        let (entries, rest) = entries.as_chunks::<ENTRY_BYTES>();
        let is_whole = head == VERSION.to_le_bytes() && rest.is_empty();
        let entries = entries.iter().map(decode_entry).collect::<Option<_>>()?;
        let acl = Acl { entries };
        (is_whole && acl.makes_sense()).then_some(acl)
    }

    /// Its bytes, as a file system tells them.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = VERSION.to_le_bytes().to_vec();
        for entry in &self.entries {
            bytes.extend_from_slice(&entry.tag.to_le_bytes());
            bytes.extend_from_slice(&entry.permissions.to_le_bytes());
            bytes.extend_from_slice(&entry.id.to_le_bytes());
        }
        bytes
    }

    /// In the order of the tags, each of the three that a mode has once, a mask if it is needed.
    fn makes_sense(&self) -> bool {
        let count = |tag: u16| self.entries.iter().filter(|entry| entry.tag == tag).count();
        let needs_mask = count(USER) + count(GROUP) > 0;
        self.entries.is_sorted_by_key(|entry| entry.tag)
            && [OWNER, OWNING_GROUP, OTHERS].iter().all(|tag| count(*tag) == 1)
            && count(MASK) <= 1
            && (count(MASK) == 1 || !needs_mask)
    }

    /// The nine permission bits that go with the list.
    #[must_use]
    pub fn mode(&self) -> u32 {
        self.permissions(OWNER) << 6
            | self.permissions(self.group_class()) << 3
            | self.permissions(OTHERS)
    }

    /// True if the mode alone says as much, so that no file system keeps the list.
    #[must_use]
    pub fn is_mode(&self) -> bool {
        self.entries.len() == 3
    }

    /// The mode becomes this one.
    pub fn set_mode(&mut self, mode: u32) {
        let group_class = self.group_class();
        for entry in &mut self.entries {
            let shift = match entry.tag {
                OWNER => 6,
                OTHERS => 0,
                tag if tag == group_class => 3,
                _ => continue,
            };
            entry.permissions = (mode >> shift & 7) as u16;
        }
    }

    /// The list where the mode has become this one.
    #[must_use]
    pub fn with_mode(&self, mode: u32) -> Acl {
        let mut acl = self.clone();
        acl.set_mode(mode);
        acl
    }

    /// What a node made with `mode` gets below a directory that hands this list down, and its mode.
    #[must_use]
    pub fn handed_down(&self, mode: u32) -> (Acl, u32) {
        let allowed = mode & self.mode();
        (self.with_mode(allowed), mode & !0o777 | allowed)
    }

    /// The entry that the group bits of a mode stand for.
    fn group_class(&self) -> u16 {
        let has_mask = self.entries.iter().any(|entry| entry.tag == MASK);
        if has_mask { MASK } else { OWNING_GROUP }
    }

    fn permissions(&self, tag: u16) -> u32 {
        let found = self.entries.iter().find(|entry| entry.tag == tag);
        found.map_or(0, |entry| entry.permissions.into())
    }
}

/// 0 tag, 2 permissions, 4 user or group; little endian.
fn decode_entry(bytes: &[u8; ENTRY_BYTES]) -> Option<Entry> {
    let (tag, rest) = bytes.split_first_chunk()?;
    let (permissions, rest) = rest.split_first_chunk()?;
    let tag = u16::from_le_bytes(*tag);
    let permissions = u16::from_le_bytes(*permissions);
    let named = u32::from_le_bytes(*rest.first_chunk()?);
    let id = match tag {
        USER | GROUP if named != NOBODY => named,
        OWNER | OWNING_GROUP | MASK | OTHERS => NOBODY,
        _ => return None,
    };
    (permissions <= 7).then_some(Entry { tag, permissions, id })
}

#[cfg(test)]
mod tests;
