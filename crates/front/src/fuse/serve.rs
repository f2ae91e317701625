//! Requests answered from a tree.
//!
//! Promise: one request in, one answer out; a request that the kernel sends again after the death
//! of a front end gets the answer it would have got the first time.
//! Never: knows a descriptor, needs anything that an earlier request told, or allocates on the
//! write path. What INIT agreed is known to one process only, and saves requests; but for whether
//! pages are kept, which the tree tells all.
//!
//! # Requests that come twice
//!
//! Reads, writes and attribute changes name absolute values, so carrying them out twice is
//! carrying them out once. Operations on names are not so: the second `mkdir` finds the first.
//! The kernel holds the directory's lock from before its own lookup until the answer, and nobody
//! else changes the tree, so the name was missing (or there) when the request was first sent; the
//! error of a repeated request is then its success, and is reported as such. The exchange of two
//! names, which a second time would undo the first, tells the tree its number. So do removing an
//! attribute and making a new one: for those the kernel looks nothing up before.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use holdfast_io::tree::SetAttributes as Change;
use holdfast_io::tree::{
    Allocate, Asked, Attributes, Errno, Kind, Listed, NewNode, NodeId, ROOT, RenameHow, Seek,
    SetXattr, Tree,
};

use super::cache::Cache;
use super::negotiate::{can_do_without_opens, negotiate};
use super::parse::{self, Init, Open, Operation, Request, SetAttributes, When, Write};
use super::reply::{self, Entry, Listing, Opened, Reply, Space};
use super::{callers, wire};

/// Answers requests from one tree.
pub struct Server<'t> {
    tree: &'t dyn Tree,
    /// Of a mount that begins.
    cache: Cache,
    /// Of the mount that there is.
    keeps_pages: AtomicBool,
    utc_ns: fn() -> i64,
    /// The kernel was told in INIT that opens count for nothing. Whoever has not seen INIT does not
    /// know, and answers an open as ever.
    without_opens: AtomicBool,
    /// Whose thread last took a capability away, as root, and of which node.
    took_capability: Mutex<Option<(u32, u64)>>,
}

impl<'t> Server<'t> {
    /// `cache` is that of a mount which begins; one that there is goes on as it began: pages for
    /// some opens of a file and none for others would show what is no longer true. `utc_ns` tells
    /// nanoseconds since 1970 where a program asks for "now".
    pub fn new(tree: &'t dyn Tree, cache: Cache, utc_ns: fn() -> i64) -> Self {
        let keeps_pages = tree.mount_keeps_pages().unwrap_or(cache == Cache::WriteThrough);
        let (keeps_pages, without_opens) = (keeps_pages.into(), AtomicBool::new(false));
        let took_capability = Mutex::default();
        Self { tree, cache, keeps_pages, utc_ns, without_opens, took_capability }
    }

    fn cache(&self) -> Cache {
        match self.keeps_pages.load(Ordering::Relaxed) {
            true => Cache::WriteThrough,
            false => Cache::Direct,
        }
    }

    /// Answers one request. `data` takes what [`Reply::Data`] speaks of.
    pub fn serve(&self, request: &Request<'_>, data: &mut [u8]) -> Reply {
        self.answer(request, data).unwrap_or_else(|Errno(errno)| Reply::Failed(errno))
    }

    fn answer(&self, request: &Request<'_>, data: &mut [u8]) -> Result<Reply, Errno> {
        let node = NodeId(request.node);
        match request.operation {
            Operation::Write(write) => self.write(request, &write),
            Operation::Read { offset, bytes } => self.read(node, offset, bytes, data),
            Operation::Sync | Operation::SyncDirectory => self.sync(node),
            Operation::SyncFileSystem => self.sync(ROOT),
            Operation::Lookup { name } => self.lookup(node, name),
            Operation::GetAttributes => self.tree.attributes(node).map(|found| self.told(&found)),
            Operation::SetAttributes(set) => self.set_attributes(request, &set),
            Operation::ReadLink => put_data(&self.tree.read_link(node)?, data),
            Operation::Symlink { .. }
            | Operation::MakeNode { .. }
            | Operation::MakeDirectory { .. } => self.make(request),
            Operation::Create { name, mode, umask, open } => {
                self.create(request, name, (mode, umask), open)
            }
            Operation::CreateUnnamed { mode, umask } => self.create_unnamed(request, (mode, umask)),
            Operation::GetXattr { .. }
            | Operation::ListXattr { .. }
            | Operation::SetXattr(_)
            | Operation::RemoveXattr { .. } => self.xattr(request, data),
            Operation::Unlink { name } => done_before(request, self.tree.remove_file(node, name)),
            Operation::RemoveDirectory { name } => {
                done_before(request, self.tree.remove_dir(node, name))
            }
            Operation::Rename { .. } => self.rename(request),
            Operation::Link { node: linked, name } => self.link(request, NodeId(linked), name),
            Operation::Open(open) => self.open(request, open),
            Operation::Release => {
                self.tree.closed(node);
                Ok(Reply::Done)
            }
            Operation::OpenDirectory => self.open_directory(),
            Operation::ReadDirectory { offset, bytes } => {
                self.list(node, offset, area(data, bytes))
            }
            Operation::ReadDirectoryPlus { offset, bytes } => {
                self.list_plus(node, offset, area(data, bytes))
            }
            Operation::ReleaseDirectory | Operation::Destroy => Ok(Reply::Done),
            Operation::StatFs => self.space(),
            Operation::Allocate { offset, bytes, mode } => {
                let how = allocate_how(mode)?;
                self.drop_privileges(request)?;
                self.tree.allocate(node, how, offset, bytes).map(|()| Reply::Done)
            }
            Operation::Seek { offset, whence } => {
                let offset = self.tree.seek(node, offset, seek_what(whence)?)?;
                Ok(Reply::Found { offset })
            }
            Operation::Forget { count } => {
                self.tree.forget(node, count);
                Ok(Reply::Nothing)
            }
            Operation::BatchForget(forgets) => {
                forgets.pairs().for_each(|(node, count)| self.tree.forget(NodeId(node), count));
                Ok(Reply::Nothing)
            }
            Operation::Init(offer) => self.start(&offer),
            // The kernel takes this answer, here too, as "never ask again". An interrupt is of no
            // use: what a program waits for is the tree's next free byte, and that comes.
            Operation::Interrupt | Operation::Unknown { .. } => Err(Errno(wire::ENOSYS)),
        }
    }

    fn start(&self, offer: &Init) -> Result<Reply, Errno> {
        let keeps_pages = self.cache == Cache::WriteThrough;
        self.tree.mount_begins(keeps_pages)?;
        self.keeps_pages.store(keeps_pages, Ordering::Relaxed);
        let opens = self.tree.counts_opens() || !can_do_without_opens(offer, self.cache);
        self.without_opens.store(!opens, Ordering::Relaxed);
        negotiate(offer, self.cache, opens).map(Reply::Started).map_err(Errno)
    }

    /// The kernel takes this as "never ask again", for files and directories apart.
    fn unless_without_opens(&self) -> Result<(), Errno> {
        match self.without_opens.load(Ordering::Relaxed) {
            true => Err(Errno(wire::ENOSYS)),
            false => Ok(()),
        }
    }

    fn read(&self, node: NodeId, offset: u64, bytes: u32, data: &mut [u8]) -> Result<Reply, Errno> {
        let bytes = self.tree.read(node, area(data, bytes), offset)?;
        Ok(Reply::Data { bytes })
    }

    /// With pages in between, the kernel asks for a sync of its own after a synchronous write.
    /// Without them it does not: the write itself has to be one.
    fn write(&self, request: &Request<'_>, write: &Write<'_>) -> Result<Reply, Errno> {
        let node = NodeId(request.node);
        if write.kill_privileges {
            self.drop_group_id(request)?;
        }
        self.tree.write(node, write.data, write.offset, write.kill_privileges)?;
        let sync = write.synchronous && self.cache() == Cache::Direct;
        if sync && self.tree.sync_is_needed() {
            self.tree.sync(node)?;
        }
        Ok(Reply::Written { bytes: write.data.len() as u32 })
    }

    /// "Not implemented" is remembered by the kernel for the whole mount: a program's `fsync` then
    /// costs nothing, because every change was as durable as promised when it was acknowledged.
    fn sync(&self, node: NodeId) -> Result<Reply, Errno> {
        if !self.tree.sync_is_needed() {
            return Err(Errno(wire::ENOSYS));
        }
        self.tree.sync(node).map(|()| Reply::Done)
    }

    /// A missing name is an answer of its own, so that the kernel remembers it as missing.
    fn lookup(&self, parent: NodeId, name: &[u8]) -> Result<Reply, Errno> {
        match self.tree.lookup(parent, name) {
            Ok(found) => Ok(Reply::Entry(self.entry(&found))),
            Err(Errno(wire::ENOENT)) => {
                let remember_for = self.tree.remember_for();
                Ok(Reply::Entry(Entry { remember_for, ..Entry::default() }))
            }
            Err(error) => Err(error),
        }
    }

    fn set_attributes(&self, request: &Request<'_>, set: &SetAttributes) -> Result<Reply, Errno> {
        let node = NodeId(request.node);
        if asks_for_nothing(set) {
            let found = self.tree.attributes(node)?;
            let may_not = request.uid != 0 && request.uid != found.uid;
            if may_not || self.has_taken_a_capability(request) {
                // The write that follows changes the mode, and its answer has no room for it.
                return Ok(Reply::Attributes(attributes(&found), Duration::ZERO));
            }
        }
        let time = |when| match when {
            When::Now => (self.utc_ns)().into(),
            When::At(time_ns) => time_ns,
        };
        let change = Change {
            mode: match set.mode {
                Some(mode) => Some(mode & 0o7777),
                None => self.mode_without_privileges(request, set)?,
            },
            uid: set.uid,
            gid: set.gid,
            size_bytes: set.size_bytes,
            accessed_ns: set.accessed.map(time),
            modified_ns: set.modified.map(time),
        };
        self.tree.set_attributes(node, &change).map(|changed| self.told(&changed))
    }

    /// A new owner, or a truncation by somebody without the right, takes set-user-id away, and
    /// set-group-id with it. The kernel leaves this to the server, and asks for nothing when a
    /// program gives a file to the owner and group that it has, and before a write that takes bits
    /// away. If somebody asks who may not change the mode, it is a write, whose own request says
    /// that it does, or it is in vain: so nothing is done then.
    fn mode_without_privileges(
        &self,
        request: &Request<'_>,
        set: &SetAttributes,
    ) -> Result<Option<u32>, Errno> {
        let owner = set.uid.is_some() || set.gid.is_some();
        let truncated = set.size_bytes.is_some() && set.kill_privileges;
        if !owner && !truncated && !asks_for_nothing(set) {
            return Ok(None);
        }
        let old = self.tree.attributes(NodeId(request.node))?;
        let new = without_privileges(&old, request);
        Ok((old.kind != Kind::Directory && new != old.mode).then_some(new))
    }

    /// Whoever is not root takes set-user-id and set-group-id away by changing what a file holds.
    /// The kernel leaves that to the server, and does not say whether the caller may keep them.
    fn drop_privileges(&self, request: &Request<'_>) -> Result<(), Errno> {
        let node = NodeId(request.node);
        let old = self.tree.attributes(node)?;
        let new = without_privileges(&old, request);
        if request.uid == 0 || old.kind != Kind::File || new == old.mode {
            return Ok(());
        }
        let change = Change { mode: Some(new), ..Change::default() };
        self.tree.set_attributes(node, &change).map(drop)
    }

    /// A write that takes bits away takes set-group-id with it too where the group may not execute,
    /// unless its caller is of that group. The tree takes the others with the write.
    fn drop_group_id(&self, request: &Request<'_>) -> Result<(), Errno> {
        let node = NodeId(request.node);
        let old = self.tree.attributes(node)?;
        if old.kind != Kind::File || !loses_group_id(&old, request) {
            return Ok(());
        }
        let change = Change { mode: Some(old.mode & !wire::S_ISGID), ..Change::default() };
        self.tree.set_attributes(node, &change).map(drop)
    }

    fn make(&self, request: &Request<'_>) -> Result<Reply, Errno> {
        let parent = NodeId(request.node);
        let (name, kind, mode, rdev, target): (_, _, _, _, &[u8]) = match request.operation {
            Operation::Symlink { name, target } => (name, Kind::Symlink, (0o777, 0), 0, target),
            Operation::MakeDirectory { name, mode, umask } => {
                (name, Kind::Directory, (mode, umask), 0, &[])
            }
            Operation::MakeNode { name, mode, umask, rdev } => {
                (name, kind_of(mode)?, (mode, umask), rdev, &[])
            }
            _ => return Err(Errno(wire::EINVAL)),
        };
        let new = NewNode { rdev: u64::from(rdev), target, ..self.new_node(request, kind, mode)? };
        let made = match self.tree.make(parent, name, &new) {
            Err(Errno(wire::EEXIST)) if request.resent => self.tree.lookup(parent, name)?,
            made => made?,
        };
        Ok(Reply::Entry(self.entry(&made)))
    }

    /// A directory with set-group-id hands its group down, and the bit to directories.
    fn new_node(
        &self,
        request: &Request<'_>,
        kind: Kind,
        (mode, umask): (u32, u32),
    ) -> Result<NewNode<'static>, Errno> {
        let parent = self.tree.attributes(NodeId(request.node))?;
        let inherits = parent.mode & wire::S_ISGID != 0;
        let bit = if inherits && kind == Kind::Directory { wire::S_ISGID } else { 0 };
        Ok(NewNode {
            kind,
            mode: mode & 0o7777 | bit,
            umask: umask & 0o777,
            uid: request.uid,
            gid: if inherits { parent.gid } else { request.gid },
            rdev: 0,
            target: &[],
        })
    }

    fn create(
        &self,
        request: &Request<'_>,
        name: &[u8],
        mode: (u32, u32),
        open: Open,
    ) -> Result<Reply, Errno> {
        // The kernel then makes the file by MKNOD, and has nothing to close.
        self.unless_without_opens()?;
        let parent = NodeId(request.node);
        let new = self.new_node(request, Kind::File, mode)?;
        let found = match self.tree.make(parent, name, &new) {
            Err(Errno(wire::EEXIST)) if !open.exclusive || request.resent => {
                let found = self.tree.lookup(parent, name)?;
                let found_again = Request { node: found.node.0, ..*request };
                let truncated = self.truncate_on_open(&found_again, open);
                self.or_untold(found.node, truncated)?.unwrap_or(found)
            }
            made => made?,
        };
        self.or_untold(found.node, self.tree.opened(found.node))?;
        Ok(Reply::Created(self.entry(&found), self.opened_file()))
    }

    /// Takes the finding of a node back if the kernel is not told of it: it never will.
    fn or_untold<T>(&self, node: NodeId, done: Result<T, Errno>) -> Result<T, Errno> {
        done.inspect_err(|_| self.tree.forget(node, 1))
    }

    /// Sent again it makes another file, and the first, which nobody knows, stays until the volume
    /// is detached.
    fn create_unnamed(&self, request: &Request<'_>, mode: (u32, u32)) -> Result<Reply, Errno> {
        let new = self.new_node(request, Kind::File, mode)?;
        let made = self.tree.make_unnamed(NodeId(request.node), &new)?;
        self.or_untold(made.node, self.tree.opened(made.node))?;
        Ok(Reply::Created(self.entry(&made), self.opened_file()))
    }

    fn open_directory(&self) -> Result<Reply, Errno> {
        self.unless_without_opens()?;
        Ok(Reply::Opened(Opened::default()))
    }

    fn open(&self, request: &Request<'_>, open: Open) -> Result<Reply, Errno> {
        self.unless_without_opens()?;
        self.truncate_on_open(request, open)?;
        self.tree.opened(NodeId(request.node))?;
        Ok(Reply::Opened(self.opened_file()))
    }

    fn truncate_on_open(
        &self,
        request: &Request<'_>,
        open: Open,
    ) -> Result<Option<Attributes>, Errno> {
        if !open.truncate {
            return Ok(None);
        }
        let kill_privileges = open.kill_privileges;
        let set = SetAttributes { size_bytes: Some(0), kill_privileges, ..Default::default() };
        let mode = self.mode_without_privileges(request, &set)?;
        let change = Change { mode, size_bytes: Some(0), ..Change::default() };
        self.tree.set_attributes(NodeId(request.node), &change).map(Some)
    }

    fn opened_file(&self) -> Opened {
        Opened { flags: self.cache().open_flags() }
    }

    fn link(&self, request: &Request<'_>, node: NodeId, name: &[u8]) -> Result<Reply, Errno> {
        let parent = NodeId(request.node);
        self.protect_from_links(request, node)?;
        let linked = match self.tree.link(node, parent, name) {
            Err(Errno(wire::EEXIST)) if request.resent => {
                let found = self.tree.lookup(parent, name)?;
                let is_linked = found.node == node;
                let linked = is_linked.then_some(found).ok_or(Errno(wire::EEXIST));
                self.or_untold(found.node, linked)?
            }
            linked => linked?,
        };
        Ok(Reply::Entry(self.entry(&linked)))
    }

    /// The kernel keeps strangers from linking what runs as somebody else, by the mode that it was
    /// told last. A list of access changes the mode, and it asks for nothing before a link.
    fn protect_from_links(&self, request: &Request<'_>, node: NodeId) -> Result<(), Errno> {
        let found = self.tree.attributes(node)?;
        let both = wire::S_ISGID | wire::S_IXGRP;
        let runs = found.mode & wire::S_ISUID != 0 || found.mode & both == both;
        let is_own = request.uid == 0 || request.uid == found.uid;
        match runs && !is_own && callers::links_are_protected_from(request.pid) {
            true => Err(Errno(wire::EPERM)),
            false => Ok(()),
        }
    }

    fn rename(&self, request: &Request<'_>) -> Result<Reply, Errno> {
        let Operation::Rename { name, new_parent, new_name, flags } = request.operation else {
            return Err(Errno(wire::EINVAL));
        };
        let how = match flags {
            0 => RenameHow::Replace,
            wire::RENAME_NOREPLACE => RenameHow::KeepTarget,
            wire::RENAME_EXCHANGE => RenameHow::Exchange(asked(request)),
            _ => return Err(Errno(wire::EINVAL)),
        };
        let (from, to) = ((NodeId(request.node), name), (NodeId(new_parent), new_name));
        if let RenameHow::Exchange(_) = how {
            return self.tree.rename(from, to, how).map(|()| Reply::Done);
        }
        done_before(request, self.tree.rename(from, to, how))
    }

    /// Listing offsets: 0 is the start, 1 follows `.`, 2 follows `..`, and `cookie + 2` follows
    /// the name with that cookie.
    fn list(&self, directory: NodeId, offset: u64, area: &mut [u8]) -> Result<Reply, Errno> {
        let mut listing = Listing::new(area);
        if list_dots(&mut listing, directory, offset) {
            self.tree.list(directory, offset.saturating_sub(2), &mut |listed: Listed<'_>| {
                let kind = type_bits(listed.kind) >> 12;
                listing.add(listed.name, listed.inode, kind, listed.cookie + 2)
            })?;
        }
        Ok(Reply::Data { bytes: listing.used_bytes() })
    }

    /// Names are gathered first: the tree may hold a lock while it lists.
    fn list_plus(&self, directory: NodeId, offset: u64, area: &mut [u8]) -> Result<Reply, Errno> {
        let area_bytes = area.len();
        let mut listing = Listing::new(area);
        if !list_dots_plus(&mut listing, directory, offset) {
            return Ok(Reply::Data { bytes: listing.used_bytes() });
        }
        let mut names = Vec::new();
        let mut planned_bytes = listing.used_bytes();
        self.tree.list(directory, offset.saturating_sub(2), &mut |listed| {
            planned_bytes += Listing::plus_bytes(listed.name);
            let fits = planned_bytes <= area_bytes;
            if fits {
                names.push((listed.name.to_vec(), listed.kind, listed.cookie));
            }
            fits
        })?;
        for (name, kind, cookie) in names {
            // A name that went away in between is listed without a node; a later lookup tells.
            let entry = self.tree.lookup(directory, &name).map(|found| self.entry(&found));
            let entry = entry.unwrap_or_default();
            let inode = entry.attributes.inode.max(1);
            listing.add_plus(&name, &entry, inode, type_bits(kind) >> 12, cookie + 2);
        }
        Ok(Reply::Data { bytes: listing.used_bytes() })
    }

    /// Extended attributes. Setting one again is setting it once, unless it must be new.
    fn xattr(&self, request: &Request<'_>, data: &mut [u8]) -> Result<Reply, Errno> {
        let node = NodeId(request.node);
        match request.operation {
            Operation::GetXattr { name, bytes } => {
                put_measured(&self.tree.xattr(node, name)?, bytes, data)
            }
            Operation::ListXattr { bytes } => {
                put_measured(&self.xattr_names(node, request.uid)?, bytes, data)
            }
            Operation::SetXattr(set) => self.set_xattr(request, node, &set),
            Operation::RemoveXattr { name } => {
                if !self.is_for_a_write(request, name)? {
                    self.tree.remove_xattr(node, name, asked(request))?;
                    self.note_removal(request, name);
                }
                Ok(Reply::Done)
            }
            _ => Err(Errno(wire::EINVAL)),
        }
    }

    /// Before a write that takes bits away from a file with a capability, and before a `chown` that
    /// would, the kernel has the capability taken away by its caller, whoever he is. Who may not
    /// change the mode may not take it away either: if a write follows, that does.
    fn is_for_a_write(&self, request: &Request<'_>, name: &[u8]) -> Result<bool, Errno> {
        if request.uid == 0 || name != b"security.capability" {
            return Ok(false);
        }
        let found = self.tree.attributes(NodeId(request.node))?;
        let takes_bits = without_privileges(&found, request) != found.mode;
        let may = request.uid == found.uid || callers::may_set_capabilities(request.pid);
        Ok(takes_bits && !may)
    }

    fn note_removal(&self, request: &Request<'_>, name: &[u8]) {
        if request.uid == 0 && name == b"security.capability" {
            *self.took_capability.lock().unwrap_or_else(PoisonError::into_inner) =
                Some((request.pid, request.node));
        }
    }

    /// Before root writes to a file with a capability, the kernel takes that away and then asks for
    /// nothing: other bits stay, as root may keep them. Of a `chown` to the owner that a file has,
    /// which takes them away, it differs by the capability.
    fn has_taken_a_capability(&self, request: &Request<'_>) -> bool {
        let mut took = self.took_capability.lock().unwrap_or_else(PoisonError::into_inner);
        took.take_if(|took| *took == (request.pid, request.node)).is_some()
    }

    /// Each with a NUL behind it. Trusted ones are shown to root alone.
    fn xattr_names(&self, node: NodeId, uid: u32) -> Result<Vec<u8>, Errno> {
        let names = self.tree.xattr_names(node)?;
        let shown = names.iter().filter(|name| uid == 0 || !name.starts_with(b"trusted."));
        Ok(shown.flat_map(|name| name.iter().copied().chain([0])).collect())
    }

    /// A kernel that was told nothing of lists at the mount's start would store one and not go by
    /// it: to such it is refused.
    fn set_xattr(
        &self,
        request: &Request<'_>,
        node: NodeId,
        set: &parse::SetXattr<'_>,
    ) -> Result<Reply, Errno> {
        if set.more.is_none() && set.name.starts_with(b"system.posix_acl_") {
            return Err(Errno(wire::EOPNOTSUPP));
        }
        let how = SetXattr {
            create: (set.flags & wire::XATTR_CREATE != 0).then(|| asked(request)),
            replace: set.flags & wire::XATTR_REPLACE != 0,
            clear_group_id: set.more.unwrap_or(0) & wire::SETXATTR_ACL_KILL_SGID != 0,
        };
        self.tree.set_xattr(node, set.name, set.value, &how).map(|()| Reply::Done)
    }

    fn space(&self) -> Result<Reply, Errno> {
        let space = self.tree.space()?;
        let block_bytes = space.block_bytes.max(512);
        let blocks = |bytes: u64| bytes / u64::from(block_bytes);
        Ok(Reply::Space(Space {
            blocks: blocks(space.total_bytes),
            free_blocks: blocks(space.free_bytes),
            available_blocks: blocks(space.available_bytes),
            inodes: space.total_inodes,
            free_inodes: space.free_inodes,
            block_bytes,
            name_bytes_max: space.name_bytes_max,
        }))
    }

    fn entry(&self, found: &Attributes) -> Entry {
        let remember_for = self.tree.remember_for();
        Entry { node: found.node.0, remember_for, attributes: attributes(found) }
    }

    fn told(&self, found: &Attributes) -> Reply {
        Reply::Attributes(attributes(found), self.tree.remember_for())
    }
}

/// The part of the answer's data that the kernel has room for.
fn area(data: &mut [u8], bytes: u32) -> &mut [u8] {
    let bytes = (bytes as usize).min(data.len());
    &mut data[..bytes]
}

fn put_data(from: &[u8], data: &mut [u8]) -> Result<Reply, Errno> {
    let room = data.get_mut(..from.len()).ok_or(Errno(wire::EIO))?;
    room.copy_from_slice(from);
    Ok(Reply::Data { bytes: from.len() })
}

/// The answer to who has room for `bytes`; with none it is asked how many there are.
fn put_measured(from: &[u8], bytes: u32, data: &mut [u8]) -> Result<Reply, Errno> {
    match bytes as usize {
        0 => Ok(Reply::Length { bytes: from.len() as u32 }),
        room if room < from.len() => Err(Errno(wire::ERANGE)),
        _ => put_data(from, data),
    }
}

fn asked(request: &Request<'_>) -> Asked {
    Asked { request: request.unique & !wire::UNIQUE_RESENT, again: request.resent }
}

/// A name that a repeated request does not find any more is one that it took away itself.
fn done_before(request: &Request<'_>, result: Result<(), Errno>) -> Result<Reply, Errno> {
    match result {
        Err(Errno(wire::ENOENT)) if request.resent => Ok(Reply::Done),
        result => result.map(|()| Reply::Done),
    }
}

fn list_dots(listing: &mut Listing<'_>, directory: NodeId, offset: u64) -> bool {
    let kind = type_bits(Kind::Directory) >> 12;
    (offset > 0 || listing.add(b".", directory.0, kind, 1))
        && (offset > 1 || listing.add(b"..", ROOT.0, kind, 2))
}

/// The kernel looks nothing up for the two dots, so they carry no node.
fn list_dots_plus(listing: &mut Listing<'_>, directory: NodeId, offset: u64) -> bool {
    let kind = type_bits(Kind::Directory) >> 12;
    let none = Entry::default();
    (offset > 0 || listing.add_plus(b".", &none, directory.0, kind, 1))
        && (offset > 1 || listing.add_plus(b"..", &none, ROOT.0, kind, 2))
}

fn allocate_how(mode: u32) -> Result<Allocate, Errno> {
    const KEEP: u32 = wire::FALLOCATE_KEEP_SIZE;
    const PUNCH_KEEP: u32 = wire::FALLOCATE_PUNCH_HOLE | KEEP;
    const ZERO: u32 = wire::FALLOCATE_ZERO_RANGE;
    const ZERO_KEEP: u32 = ZERO | KEEP;
    Ok(match mode {
        0 => Allocate::Reserve { keep_size: false },
        KEEP => Allocate::Reserve { keep_size: true },
        PUNCH_KEEP => Allocate::PunchHole,
        ZERO => Allocate::ZeroRange { keep_size: false },
        ZERO_KEEP => Allocate::ZeroRange { keep_size: true },
        _ => return Err(Errno(wire::EOPNOTSUPP)),
    })
}

fn seek_what(whence: u32) -> Result<Seek, Errno> {
    match whence {
        wire::SEEK_DATA => Ok(Seek::Data),
        wire::SEEK_HOLE => Ok(Seek::Hole),
        _ => Err(Errno(wire::EINVAL)),
    }
}

fn asks_for_nothing(set: &SetAttributes) -> bool {
    *set == SetAttributes { kill_privileges: set.kill_privileges, ..SetAttributes::default() }
}

/// The mode that a file has left once this caller has changed what it holds, or whose it is.
fn without_privileges(found: &Attributes, caller: &Request<'_>) -> u32 {
    let runs = found.mode & wire::S_IXGRP != 0;
    let group = if runs || loses_group_id(found, caller) { wire::S_ISGID } else { 0 };
    found.mode & !(wire::S_ISUID | group)
}

/// Set-group-id where the group may not execute stays if the caller is of the group, as on the
/// kernel's own file systems.
fn loses_group_id(found: &Attributes, caller: &Request<'_>) -> bool {
    found.mode & (wire::S_ISGID | wire::S_IXGRP) == wire::S_ISGID
        && caller.uid != 0
        && caller.gid != found.gid
        && !callers::is_in_group(caller.pid, found.gid)
}

fn attributes(found: &Attributes) -> reply::Attributes {
    reply::Attributes {
        inode: found.node.0,
        size_bytes: found.size_bytes,
        blocks: found.allocated_bytes.div_ceil(512),
        accessed_ns: found.accessed_ns,
        modified_ns: found.modified_ns,
        changed_ns: found.changed_ns,
        mode: found.mode & 0o7777 | type_bits(found.kind),
        links: found.links,
        uid: found.uid,
        gid: found.gid,
        rdev: found.rdev as u32,
    }
}

fn type_bits(kind: Kind) -> u32 {
    match kind {
        Kind::Fifo => 0o010_000,
        Kind::CharDevice => 0o020_000,
        Kind::Directory => 0o040_000,
        Kind::BlockDevice => 0o060_000,
        Kind::File => 0o100_000,
        Kind::Symlink => 0o120_000,
        Kind::Socket => 0o140_000,
    }
}

fn kind_of(mode: u32) -> Result<Kind, Errno> {
    let kinds = [Kind::File, Kind::Fifo, Kind::CharDevice, Kind::BlockDevice, Kind::Socket];
    let found = kinds.into_iter().find(|&kind| type_bits(kind) == mode & 0o170_000);
    found.ok_or(Errno(wire::EINVAL))
}
