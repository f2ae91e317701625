//! A file, directory or other node of a fake machine.
//!
//! Promise: what a program sees and what the platter holds stand side by side.
//! Never: moves anything from the one to the other by itself.

use std::collections::BTreeMap;

use super::contents::History;
use super::labels::Xattrs;
use super::names::Attributes;
use crate::{Change, Kind};

/// What a program does with a file that keeps others from opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hindrance {
    /// It runs it: nobody can open it for writing (`ETXTBSY`).
    Runs,
    /// It has a lease on it: nobody can open it without waiting (`EAGAIN`).
    Leases,
}

/// A file, directory or other node.
#[derive(Clone, Debug)]
pub(super) struct Inode {
    pub(super) kind: Kind,
    pub(super) rdev: u64,
    pub(super) immutable: bool,
    pub(super) append_only: bool,
    /// Who has it by another name than the home's keeps others from opening it.
    pub(super) hindered: Option<Hindrance>,
    /// Of a symbolic link.
    pub(super) target: Vec<u8>,
    pub(super) attributes: Attributes,
    pub(super) changed_ns: i128,
    /// Of a directory.
    pub(super) names: BTreeMap<Vec<u8>, u64>,
    /// The directories that hold its names, one for each name.
    pub(super) parents: Vec<u64>,
    /// Handles to it.
    pub(super) opens: u32,
    /// Those of them that may write.
    pub(super) writers: u32,
    pub(super) history: History,
    pub(super) durable_attributes: Attributes,
    pub(super) durable_names: BTreeMap<Vec<u8>, u64>,
    pub(super) durable_links: u32,
}

impl Inode {
    /// An inode without a name, on the platter as well as in the cache: nobody can find it there.
    pub(super) fn new(kind: Kind, mode: u32, now_ns: i64, page_bytes: u64) -> Inode {
        let attributes = Attributes {
            mode: mode & 0o7777,
            uid: 0,
            gid: 0,
            accessed_ns: now_ns.into(),
            modified_ns: now_ns.into(),
            xattrs: Xattrs::default(),
        };
        Inode {
            kind,
            rdev: 0,
            immutable: false,
            append_only: false,
            hindered: None,
            target: Vec::new(),
            attributes: attributes.clone(),
            changed_ns: now_ns.into(),
            names: BTreeMap::new(),
            parents: Vec::new(),
            opens: 0,
            writers: 0,
            history: History::new(page_bytes),
            durable_attributes: attributes,
            durable_names: BTreeMap::new(),
            durable_links: 0,
        }
    }

    /// The same inode as it is read from the platter.
    pub(super) fn found_again(
        &self,
        names: BTreeMap<Vec<u8>, u64>,
        attributes: Attributes,
        history: History,
    ) -> Inode {
        Inode {
            attributes: attributes.clone(),
            durable_attributes: attributes,
            names: names.clone(),
            durable_names: names,
            parents: Vec::new(),
            durable_links: 0,
            opens: 0,
            writers: 0,
            hindered: None,
            history,
            target: self.target.clone(),
            ..*self
        }
    }

    /// One more name on the platter and in the cache.
    pub(super) fn add_parent(&mut self, parent: Option<u64>) {
        self.parents.extend(parent);
        self.durable_links += u32::from(parent.is_some());
    }

    pub(super) fn is_dir(&self) -> bool {
        self.kind == Kind::Directory
    }

    /// Whether it still takes up space.
    pub(super) fn is_live(&self) -> bool {
        !self.parents.is_empty() || self.opens > 0
    }

    /// Contents were changed now.
    pub(super) fn touch(&mut self, now_ns: i64) {
        self.attributes.modified_ns = now_ns.into();
        self.changed_ns = now_ns.into();
    }
}

/// The attributes after a change.
pub(super) fn changed(mut now: Attributes, kind: Kind, change: &Change) -> Attributes {
    if kind == Kind::File && (change.uid.is_some() || change.gid.is_some()) {
        // As Linux does, whoever asks; the group bit means something else without execution.
        now.mode &= if now.mode & 0o010 == 0 { !0o4000 } else { !0o6000 };
    }
    if kind != Kind::Directory && (change.uid.is_some() || change.gid.is_some()) {
        now = now.without_capability();
    }
    now.uid = change.uid.unwrap_or(now.uid);
    now.gid = change.gid.unwrap_or(now.gid);
    now.mode = change.mode.map_or(now.mode, |mode| mode & 0o7777);
    now.accessed_ns = change.accessed_ns.unwrap_or(now.accessed_ns);
    now.modified_ns = change.modified_ns.unwrap_or(now.modified_ns);
    if change.mode.is_some() { now.mode_changed() } else { now }
}
