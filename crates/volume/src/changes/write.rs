//! Changing what a file holds, and its attributes.
//!
//! Promise: each change is one frame, so it is there wholly or not at all; only what differs from
//! the file's last bytes is logged, and only once the home's file, if any, is open for writing.
//! Never: writes the home.

use holdfast_io::acl::ACCESS;
use holdfast_io::{Change, InodeNumbers, Kind};

use crate::changes::xattr::{CAPABILITY, Value};
use crate::error::Stop;
use crate::frame::{Frame, Spot};
use crate::home::space::{Charge, Cost};
use crate::names::Names;
use crate::node::Body;
use crate::overlay::extents::{Piece, Source};
use crate::record::{Op, unlogged};
use crate::volume::DirectoryVolume;
use crate::words;
use holdfast_io::tree::{Allocate, Attributes, Errno, NodeId, SetAttributes};

/// No file grows beyond the largest signed offset.
pub(crate) const SIZE_BYTES_MAX: u64 = i64::MAX as u64;
/// A run of zeros at the end of a write that is worth a record of its own.
const ZEROS_WORTH_A_RECORD: usize = 256;
/// Set-user-id and set-group-id.
const PRIVILEGES: u32 = 0o6000;
const GROUP_EXECUTE: u32 = 0o010;

impl Frame<'_> {
    /// Contents or owner change: what they were trusted with goes. True if it was there.
    fn distrust(&mut self, body: &Body) -> bool {
        let trusted = body.xattrs.has(CAPABILITY);
        if trusted {
            self.add(Op::RemoveXattr { name: CAPABILITY });
        }
        trusted
    }
}

impl DirectoryVolume {
    /// Repeats `attempt` on a node, under the locks that order its effects, until the log has room.
    fn change<T>(
        &self,
        id: NodeId,
        mut attempt: impl FnMut(Spot<'_>, &mut Body) -> Result<T, Stop>,
    ) -> Result<T, Errno> {
        self.change_named(id, |_, spot, body| attempt(spot, body))
    }

    /// The same for who needs the names too.
    pub(crate) fn change_named<T>(
        &self,
        id: NodeId,
        mut attempt: impl FnMut(&Names, Spot<'_>, &mut Body) -> Result<T, Stop>,
    ) -> Result<T, Errno> {
        self.with_room(|| {
            let names = self.names_with(id)?;
            let node = &names.entry(id).ok_or(Errno::STALE)?.node;
            let (parent, path) = (names.parent(id), names.path(id)?);
            let mut body = node.body_mut();
            body.require_loose()?;
            self.require_one_name(&body)?;
            self.know_xattrs(&names, id, &mut body)?;
            let spot = Spot { node: id, parent, path: &path, at_home: names.lasting_home(id) };
            attempt(&names, spot, &mut body)
        })
    }

    /// The same for a change of what the node holds.
    fn change_contents<T>(
        &self,
        id: NodeId,
        mut attempt: impl FnMut(Spot<'_>, &mut Body) -> Result<T, Stop>,
    ) -> Result<T, Errno> {
        self.know_allocated(&self.node(id)?)?;
        self.change_named(id, |names, spot, body| {
            self.open_for_writing(names, id, body)?;
            let changed = attempt(spot, body);
            if changed.is_err() {
                // No window closes a file that the log has nothing for.
                body.let_go(self.log.marks().released);
            }
            changed
        })
    }

    /// Opens what the home has of a file for writing, before a change of what it holds is logged.
    /// Where a file gets another number when it is first changed, this would be that change.
    pub(crate) fn open_for_writing(
        &self,
        names: &Names,
        node: NodeId,
        body: &mut Body,
    ) -> Result<(), Stop> {
        let renumbers = || self.home.inode_numbers() == InodeNumbers::KeptUntilChanged;
        if body.writing.is_some() || body.attributes.kind != Kind::File || renumbers() {
            return Ok(());
        }
        let held = names.hold(&*self.home, node).map_err(|error| Stop::Refused(error.into()))?;
        if let Some(held) = held {
            body.writing = Some(self.writing.open(&*held)?);
        }
        Ok(())
    }

    /// The same for all files that the log has something for, as an earlier process had them. One
    /// that somebody hinders now the cleaner has to wait for.
    pub(crate) fn open_again_for_writing(&self) {
        let names = self.names();
        for node in names.nodes() {
            let mut body = node.body_mut();
            if !body.is_applied(self.log.marks().released) {
                let _ = self.open_for_writing(&names, node.id, &mut body);
            }
        }
    }

    /// Writes `data` at `offset`, growing the file if need be. One frame, whatever its size.
    pub(crate) fn write_bytes(
        &self,
        id: NodeId,
        data: &[u8],
        offset: u64,
        clear_privileges: bool,
    ) -> Result<(), Errno> {
        if data.is_empty() {
            // Nothing is written, and nothing changes: neither size nor times.
            return require_file(&self.node(id)?.body());
        }
        let end = offset.checked_add(data.len() as u64).ok_or(Errno::FBIG)?;
        if end > SIZE_BYTES_MAX {
            return Err(Errno::FBIG);
        }
        self.change_contents(id, |spot, body| {
            self.write_once(spot, body, data, offset, clear_privileges)
        })
    }

    /// One attempt, under the locks that order it. Nothing has changed if the log has no room.
    pub(crate) fn write_once(
        &self,
        spot: Spot<'_>,
        body: &mut Body,
        data: &[u8],
        offset: u64,
        clear_privileges: bool,
    ) -> Result<(), Stop> {
        require_file(body)?;
        let end = offset + data.len() as u64;
        let charge = self.admit_bytes(body, offset, data.len() as u64)?;
        let at_ns = self.clock.utc_ns();
        let mut frame = Frame::new(spot, at_ns);
        let change = privileges_cleared(body, clear_privileges);
        if let Some(change) = change {
            frame.add(Op::Change { change });
        }
        let distrusted = frame.distrust(body);
        let part = body.recent.differing(data, offset);
        let (part_offset, part_data) = (offset + part.start as u64, &data[part.clone()]);
        let (front, zeros) = part_data.split_at(part_data.len() - zeros_at_the_end(part_data));
        let zeros_offset = part_offset + front.len() as u64;
        if !zeros.is_empty() {
            let bytes = zeros.len() as u64;
            frame.add(Op::Zero { offset: zeros_offset, bytes, hole: false });
        }
        frame.add(Op::Write { offset: part_offset, bytes: front.len() as u64 });
        let appended = self.log_contents(&frame, front)?;
        let at = appended.payload.advance(frame.payload.len() as u64);
        charge.placed(appended.lsn);
        let (lsn, front_bytes, zero_bytes) = (appended.lsn, front.len() as u64, zeros.len() as u64);
        let extents = &mut body.extents;
        extents.insert(Piece { offset: part_offset, bytes: front_bytes, at, source: Source::Log });
        let zeros =
            Piece { offset: zeros_offset, bytes: zero_bytes, at: lsn, source: Source::Zeros };
        extents.insert(zeros);
        body.recent.written(data, offset, part);
        body.allocate(|allocated| allocated.insert(offset, data.len() as u64));
        body.attributes.size_bytes = body.attributes.size_bytes.max(end);
        if let Some(change) = change {
            body.change(&change, at_ns, lsn);
        }
        if distrusted {
            body.xattrs.set(CAPABILITY, None, lsn);
        }
        body.touch(at_ns, lsn);
        self.log.add_to_word(words::CHANGES, 1);
        Ok(())
    }

    /// Asks the home for room for the bytes of a range.
    fn admit_bytes(&self, body: &Body, offset: u64, bytes: u64) -> Result<Charge<'_>, Stop> {
        self.check_size(body, offset + bytes)?;
        self.admit(self.space.cost_of_bytes(&*self.home, body, offset, bytes))
    }

    /// The same for those blocks of a range that have none yet.
    fn admit_room(&self, body: &Body, offset: u64, bytes: u64) -> Result<Charge<'_>, Stop> {
        self.check_size(body, offset + bytes)?;
        let cost = Cost::of_blocks(body.unallocated_bytes(offset, bytes), self.space.unit);
        self.admit(cost)
    }

    /// `EFBIG` if the home has no files that end there.
    fn check_size(&self, body: &Body, end: u64) -> Result<(), Errno> {
        if end <= body.attributes.size_bytes {
            return Ok(());
        }
        let limits = self.space.limits(&*self.home)?;
        if end <= limits.file_bytes_max { Ok(()) } else { Err(Errno::FBIG) }
    }

    /// Changes what `set` names, size included, in one frame.
    pub(crate) fn set_attributes_of(
        &self,
        id: NodeId,
        set: &SetAttributes,
    ) -> Result<Attributes, Errno> {
        if set.size_bytes.is_some_and(|bytes| bytes > SIZE_BYTES_MAX) {
            return Err(Errno::FBIG);
        }
        let attempt = |spot: Spot<'_>, body: &mut Body| {
            self.set_once(spot, body, set)?;
            Ok(body.attributes)
        };
        if set.size_bytes.is_some() {
            return self.change_contents(id, attempt);
        }
        match self.set_nameless(id, set)? {
            Some(attributes) => Ok(attributes),
            None => self.change(id, attempt),
        }
    }

    /// Changes attributes of a node that has no name any more. Only those see it who have it open;
    /// after a death nobody asks for it, so nothing is logged.
    fn set_nameless(&self, id: NodeId, set: &SetAttributes) -> Result<Option<Attributes>, Errno> {
        let names = self.names_with(id)?;
        if names.is_reachable(id) {
            return Ok(None);
        }
        let mut body = names.entry(id).ok_or(Errno::STALE)?.node.body_mut();
        let SetAttributes { mode, uid, gid, accessed_ns, modified_ns, .. } = *set;
        let last = body.last;
        let change = Change { mode, uid, gid, accessed_ns, modified_ns };
        body.change(&change, self.clock.utc_ns(), last);
        Ok(Some(body.attributes))
    }

    /// One attempt, as [`Self::write_once`].
    pub(crate) fn set_once(
        &self,
        spot: Spot<'_>,
        body: &mut Body,
        set: &SetAttributes,
    ) -> Result<(), Stop> {
        if set.mode.is_some() && body.attributes.kind == Kind::Symlink {
            return Err(Errno::NOTSUP.into());
        }
        let at_ns = self.clock.utc_ns();
        // A change of owner clears the set-id bits of the home's file, so the mode goes with it.
        let owned = set.uid.is_some() || set.gid.is_some();
        let kept = Some(body.attributes.mode).filter(|mode| owned && mode & PRIVILEGES != 0);
        let mut change = Change {
            mode: set.mode.or(kept),
            uid: set.uid,
            gid: set.gid,
            accessed_ns: set.accessed_ns,
            modified_ns: set.modified_ns,
        };
        let mut frame = Frame::new(spot, at_ns);
        if let Some(size_bytes) = set.size_bytes {
            require_file(body)?;
            self.check_size(body, size_bytes)?;
            change.modified_ns = change.modified_ns.or(Some(at_ns.into()));
            frame.add(Op::SetSize { size_bytes });
            let less_bytes = body.attributes.size_bytes.saturating_sub(size_bytes);
            // Holes have no room that the home would have to take back.
            frame.unlogged_bytes += unlogged(less_bytes.min(body.attributes.allocated_bytes));
        }
        if change != Change::default() {
            frame.add(Op::Change { change });
        }
        if frame.records == 0 {
            return Ok(());
        }
        if owned {
            let Attributes { uid, gid, .. } = body.attributes;
            let owner = (set.uid.unwrap_or(uid), set.gid.unwrap_or(gid));
            self.tried.admit_owner(&*self.home, owner)?;
        }
        let charge = self.admit(Cost::NONE)?;
        let list = set.mode.and_then(|mode| list_with(body, mode));
        if let Some(list) = &list {
            frame.add(Op::SetXattr { name: ACCESS, value: list });
        }
        // As everywhere, a directory's new owner changes nothing about its attributes.
        let disowned = owned && body.attributes.kind != Kind::Directory;
        let distrusted = (disowned || set.size_bytes.is_some()) && frame.distrust(body);
        let appended = self.log_contents(&frame, &[])?;
        charge.placed(appended.lsn);
        if let Some(size_bytes) = set.size_bytes {
            body.resize(size_bytes, appended.lsn);
        }
        if list.is_some() {
            body.xattrs.set(ACCESS, list, appended.lsn);
        }
        if distrusted {
            body.xattrs.set(CAPABILITY, None, appended.lsn);
        }
        body.change(&change, at_ns, appended.lsn);
        self.log.add_to_word(words::CHANGES, 1);
        Ok(())
    }

    /// Gives room to a range, or takes it back, in one frame.
    pub(crate) fn allocate_range(
        &self,
        id: NodeId,
        how: Allocate,
        offset: u64,
        bytes: u64,
    ) -> Result<(), Errno> {
        let end = offset.checked_add(bytes).filter(|end| *end <= SIZE_BYTES_MAX);
        let end = end.ok_or(Errno::FBIG)?;
        if bytes == 0 {
            return Err(Errno::INVAL);
        }
        self.check_allocation(how)?;
        self.change_contents(id, |spot, body| self.allocate_once(spot, body, how, offset, end))
    }

    /// `EOPNOTSUPP`, as from the home itself, if its file system does not know how.
    fn check_allocation(&self, how: Allocate) -> Result<(), Errno> {
        let home = self.space.allocation(&*self.home)?;
        let can = match how {
            Allocate::Reserve { .. } => home.reserves,
            Allocate::PunchHole => home.gives_back,
            Allocate::ZeroRange { .. } => home.reserves && home.gives_back,
        };
        if can { Ok(()) } else { Err(Errno::NOTSUP) }
    }

    /// One attempt, as [`Self::write_once`]. Zeros and holes come to be whatever the home does:
    /// where it does not make them, the cleaner writes them.
    pub(crate) fn allocate_once(
        &self,
        spot: Spot<'_>,
        body: &mut Body,
        how: Allocate,
        offset: u64,
        end: u64,
    ) -> Result<(), Stop> {
        require_file(body)?;
        let size_bytes = body.attributes.size_bytes;
        let (keep_size, zeroes, hole) = match how {
            Allocate::Reserve { keep_size } => (keep_size, false, false),
            Allocate::PunchHole => (true, true, true),
            Allocate::ZeroRange { keep_size } => (keep_size, true, false),
        };
        let charge = match how {
            Allocate::PunchHole => {
                self.admit(self.space.cost_of_hole(&*self.home, body, offset, end - offset)?)?
            }
            Allocate::ZeroRange { .. } => self.admit_bytes(body, offset, end - offset)?,
            Allocate::Reserve { .. } => self.admit_room(body, offset, end - offset)?,
        };
        let at_ns = self.clock.utc_ns();
        let mut frame = Frame::new(spot, at_ns);
        let grown = if keep_size { size_bytes } else { size_bytes.max(end) };
        let zeros_offset = match zeroes {
            true => offset,
            // A file that grows without losing what is reserved behind it has its last byte
            // written: a change of size would take that.
            false if grown > size_bytes => grown - 1,
            false => grown,
        };
        let zeros = grown.min(end).saturating_sub(zeros_offset);
        if zeros > 0 {
            frame.add(Op::Zero { offset: zeros_offset, bytes: zeros, hole });
        }
        // Zeros that are written have their room.
        if !hole && self.space.allocation(&*self.home)?.reserves {
            frame.add(Op::Reserve { offset, bytes: end - offset });
        }
        if frame.records == 0 {
            // A hole behind the end changes the times, as everywhere.
            let modified_ns = Some(at_ns.into());
            frame.add(Op::Change { change: Change { modified_ns, ..Change::default() } });
        }
        let distrusted = frame.distrust(body);
        let appended = self.log_contents(&frame, &[])?;
        charge.placed(appended.lsn);
        if distrusted {
            body.xattrs.set(CAPABILITY, None, appended.lsn);
        }
        body.attributes.size_bytes = grown;
        match hole {
            true => self.space.punched(&*self.home, body, offset, end),
            false => body.allocate(|allocated| allocated.insert(offset, end - offset)),
        }
        if zeros > 0 {
            let (offset, at) = (zeros_offset, appended.lsn);
            let source = if hole { Source::Hole } else { Source::Zeros };
            body.extents.insert(Piece { offset, bytes: zeros, at, source });
            body.recent.forget();
        }
        body.touch(at_ns, appended.lsn);
        self.log.add_to_word(words::CHANGES, 1);
        Ok(())
    }
}

/// An error unless the node is an ordinary file.
fn require_file(body: &Body) -> Result<(), Errno> {
    match body.attributes.kind {
        Kind::File => Ok(()),
        Kind::Directory => Err(Errno::ISDIR),
        _ => Err(Errno::INVAL),
    }
}

/// The list of access that goes with the mode, if the node has one.
fn list_with(body: &Body, mode: u32) -> Option<Value> {
    let mut acl = body.xattrs.acl(ACCESS)?;
    acl.set_mode(mode);
    Some(acl.encode().into())
}

/// The mode without set-user-id and set-group-id, if a write must clear them.
fn privileges_cleared(body: &Body, asked: bool) -> Option<Change> {
    let mode = body.attributes.mode;
    let group_runs = mode & GROUP_EXECUTE != 0;
    let drops = if group_runs { PRIVILEGES } else { PRIVILEGES & 0o4000 };
    let cleared = mode & !drops;
    (asked && cleared != mode).then(|| Change { mode: Some(cleared), ..Change::default() })
}

/// How many zeros end the data, if enough to be worth a record.
fn zeros_at_the_end(data: &[u8]) -> usize {
    const BLOCK: usize = 256;
    let zero_blocks = data.rchunks(BLOCK).take_while(|block| **block == [0; BLOCK][..block.len()]);
    let zeros = zero_blocks.map(<[u8]>::len).sum();
    if zeros >= ZEROS_WORTH_A_RECORD { zeros } else { 0 }
}
