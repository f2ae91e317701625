//! Records: one change of a file tree as bytes.
//!
//! Promise: what [`Record::encode`] wrote, [`decode`] gives back; anything else is a
//! [`RecordFault`], never a panic. A record names its node by number, for a process that goes on
//! after a crash, and by path, for a machine that starts from the disk alone. The path is the one
//! the node had at that moment of the log, so a home that has everything before the record has
//! the path too.
//! Never: touches a file, or says what a change means.
//!
//! The bytes are told in FORMAT.md of this crate; a test compares it with this file.

use holdfast_io::{Change, Kind};

use holdfast_io::tree::NodeId;

/// Bytes before the path.
pub(crate) const HEAD_BYTES: usize = 48;

/// One change. `at_ns` is the time it was acknowledged, nanoseconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub(crate) node: NodeId,
    /// The directory of the name that the record makes, or else of `path`.
    pub(crate) parent: NodeId,
    pub(crate) path: &'a [u8],
    /// Which inode the node is, if the change is no name's.
    pub(crate) at_home: AtHome,
    pub(crate) at_ns: i64,
    pub(crate) op: Op<'a>,
}

/// Which inode of a home a node is; all zeros if that is not known, or there is none yet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AtHome {
    /// Its number there.
    pub(crate) inode: u64,
    /// Tells this home from others, copies of it above all, where the number means another.
    pub(crate) home: u16,
}

/// Bytes of the two.
const AT_HOME_BYTES: usize = 10;

impl AtHome {
    pub(crate) fn encode(self) -> [u8; AT_HOME_BYTES] {
        let mut bytes = [0; AT_HOME_BYTES];
        bytes[..8].copy_from_slice(&self.inode.to_le_bytes());
        bytes[8..].copy_from_slice(&self.home.to_le_bytes());
        bytes
    }

    pub(crate) fn decode(mut bytes: &[u8]) -> Option<AtHome> {
        let (inode, home) = (take_u64(&mut bytes)?, take_u16(&mut bytes)?);
        bytes.is_empty().then_some(AtHome { inode, home })
    }
}

/// What is done to the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Op<'a> {
    /// The bytes behind the record replace the range.
    Write { offset: u64, bytes: u64 },
    /// The range reads as zeros; a `hole` gives its room back.
    Zero { offset: u64, bytes: u64, hole: bool },
    /// The file ends here.
    SetSize { size_bytes: u64 },
    /// The range has room on the home.
    Reserve { offset: u64, bytes: u64 },
    /// Attributes change.
    Change { change: Change },
    /// The node comes to be, empty, under `path`.
    Make { kind: Kind, mode: u32, uid: u32, gid: u32, rdev: u64, target: &'a [u8] },
    /// The node gets a second name.
    Link { to: &'a [u8] },
    /// The name goes. `survivor` is another name of the same node, if one is known.
    Remove { survivor: &'a [u8], last: bool },
    /// The empty directory goes.
    RemoveDir,
    /// The name moves, and replaces the node that stood there (0 for none).
    Rename { to: &'a [u8], replaced: NodeId },
    /// The name and `to`, which stands for the node `other`, change places. `from_parent` is the
    /// directory of the record's path.
    Exchange { to: &'a [u8], other: NodeId, from_parent: NodeId },
    /// The node has the extended attribute, with this value.
    SetXattr { name: &'a [u8], value: &'a [u8] },
    /// The extended attribute goes.
    RemoveXattr { name: &'a [u8] },
}

/// The most that one record counts as: of more zeros the home makes what it does not write.
const UNLOGGED_BYTES_MAX: u64 = 1 << 20;

impl Op<'_> {
    /// Bytes of work for the home that are no bytes of the log.
    pub(crate) fn unlogged_bytes(&self) -> u64 {
        match self {
            Op::Zero { bytes, .. } | Op::Reserve { bytes, .. } => unlogged(*bytes),
            // Two names of their own are some syncs of directories, and perhaps a window.
            Op::Exchange { .. } => UNLOGGED_BYTES_MAX,
            _ => 0,
        }
    }
}

/// What so many bytes of a file count as that the home zeroes, gives room, or takes it from.
pub(crate) fn unlogged(bytes: u64) -> u64 {
    bytes.min(UNLOGGED_BYTES_MAX)
}

/// Why bytes are not a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecordFault {
    /// The payload ends inside a record.
    Short,
    /// No operation has this number.
    UnknownOp(u8),
    /// No kind of node has this number.
    UnknownKind(u8),
}

const OP_WRITE: u8 = 1;
const OP_ZERO: u8 = 2;
const OP_SET_SIZE: u8 = 3;
const OP_RESERVE: u8 = 4;
const OP_CHANGE: u8 = 5;
const OP_MAKE: u8 = 6;
const OP_LINK: u8 = 7;
const OP_REMOVE: u8 = 8;
const OP_REMOVE_DIR: u8 = 9;
const OP_RENAME: u8 = 10;
const OP_SET_XATTR: u8 = 11;
const OP_REMOVE_XATTR: u8 = 12;
const OP_EXCHANGE: u8 = 13;

const SET_MODE: u16 = 1;
const SET_UID: u16 = 2;
const SET_GID: u16 = 4;
const SET_ACCESSED: u16 = 8;
const SET_MODIFIED: u16 = 16;
/// A time lies outside the years 1677 to 2262, so that both take 16 bytes.
const WIDE_TIMES: u16 = 32;

/// The fixed part of a record, as stored.
#[derive(Default)]
struct Head {
    op: u8,
    detail: u8,
    mask: u16,
    first: u64,
    second: u64,
}

impl Record<'_> {
    /// True if a name comes, goes or moves by it.
    pub(crate) fn changes_names(&self) -> bool {
        matches!(
            self.op,
            Op::Make { .. }
                | Op::Link { .. }
                | Op::Remove { .. }
                | Op::RemoveDir
                | Op::Rename { .. }
                | Op::Exchange { .. }
        )
    }

    /// Appends the record, without the data of a `Write`, to `out`.
    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        let (mut head, mut other) = self.op.head();
        let at_home = self.at_home.encode();
        match inode_field(head.op) {
            Some(InodeField::Other) if self.at_home.inode != 0 => other = &at_home,
            Some(InodeField::Head) => {
                (head.second, head.mask) = (self.at_home.inode, self.at_home.home);
            }
            _ => {}
        }
        out.reserve(HEAD_BYTES + self.path.len() + other.len());
        out.extend_from_slice(&[head.op, head.detail]);
        out.extend_from_slice(&length_u16(self.path));
        out.extend_from_slice(&length_u16(other));
        out.extend_from_slice(&head.mask.to_le_bytes());
        out.extend_from_slice(&self.node.0.to_le_bytes());
        out.extend_from_slice(&self.at_ns.to_le_bytes());
        out.extend_from_slice(&head.first.to_le_bytes());
        out.extend_from_slice(&head.second.to_le_bytes());
        out.extend_from_slice(&self.parent.0.to_le_bytes());
        out.extend_from_slice(self.path);
        out.extend_from_slice(other);
        match &self.op {
            Op::Change { change } => encode_times(change, out),
            Op::SetXattr { value, .. } => out.extend_from_slice(value),
            _ => {}
        }
    }
}

/// Where a record says which inode the node is.
enum InodeField {
    /// In the place of another path.
    Other,
    /// In the second field, and the mask.
    Head,
}

/// Records of names have no field for it.
fn inode_field(op: u8) -> Option<InodeField> {
    match op {
        OP_WRITE | OP_ZERO | OP_SET_SIZE | OP_RESERVE | OP_CHANGE => Some(InodeField::Other),
        OP_SET_XATTR | OP_REMOVE_XATTR => Some(InodeField::Head),
        _ => None,
    }
}

/// An older version says nothing.
fn at_home_of(head: &Head, other: &[u8]) -> AtHome {
    match inode_field(head.op) {
        Some(InodeField::Other) => AtHome::decode(other).unwrap_or_default(),
        Some(InodeField::Head) => AtHome { inode: head.second, home: head.mask },
        None => AtHome::default(),
    }
}

/// The two times of a `Change` stand behind its path.
fn encode_times(change: &Change, out: &mut Vec<u8>) {
    for time_ns in times(change) {
        match i64::try_from(time_ns) {
            Ok(narrow) if !has_wide_times(change) => out.extend_from_slice(&narrow.to_le_bytes()),
            _ => out.extend_from_slice(&time_ns.to_le_bytes()),
        }
    }
}

fn times(change: &Change) -> [i128; 2] {
    [change.accessed_ns, change.modified_ns].map(Option::unwrap_or_default)
}

fn has_wide_times(change: &Change) -> bool {
    times(change).iter().any(|time_ns| i64::try_from(*time_ns).is_err())
}

fn length_u16(bytes: &[u8]) -> [u8; 2] {
    let length = u16::try_from(bytes.len()).expect("the tree refuses paths of 64 KiB and more");
    length.to_le_bytes()
}

impl<'a> Op<'a> {
    /// The fixed part, and the other path. FORMAT.md tells which field holds what.
    fn head(&self) -> (Head, &'a [u8]) {
        let head = |op| Head { op, ..Head::default() };
        match *self {
            Op::Write { offset, bytes } => {
                (Head { first: offset, second: bytes, ..head(OP_WRITE) }, &[])
            }
            Op::Zero { offset, bytes, hole } => {
                let detail = u8::from(hole);
                (Head { detail, first: offset, second: bytes, ..head(OP_ZERO) }, &[])
            }
            Op::SetSize { size_bytes } => (Head { first: size_bytes, ..head(OP_SET_SIZE) }, &[]),
            Op::Reserve { offset, bytes } => {
                (Head { first: offset, second: bytes, ..head(OP_RESERVE) }, &[])
            }
            Op::Change { change } => (change_head(&change), &[]),
            Op::Make { kind, mode, uid, gid, rdev, target } => {
                let first = u64::from(mode) | rdev << 32;
                let second = u64::from(uid) | u64::from(gid) << 32;
                (Head { detail: kind_number(kind), first, second, ..head(OP_MAKE) }, target)
            }
            Op::Link { to } => (head(OP_LINK), to),
            Op::Remove { survivor, last } => {
                (Head { detail: u8::from(last), ..head(OP_REMOVE) }, survivor)
            }
            Op::RemoveDir => (head(OP_REMOVE_DIR), &[]),
            Op::Rename { to, replaced } => (Head { first: replaced.0, ..head(OP_RENAME) }, to),
            Op::SetXattr { name, value } => {
                (Head { first: value.len() as u64, ..head(OP_SET_XATTR) }, name)
            }
            Op::RemoveXattr { name } => (head(OP_REMOVE_XATTR), name),
            Op::Exchange { to, other, from_parent } => {
                (Head { first: other.0, second: from_parent.0, ..head(OP_EXCHANGE) }, to)
            }
        }
    }
}

fn change_head(change: &Change) -> Head {
    let bit = |set: bool, bit: u16| if set { bit } else { 0 };
    Head {
        op: OP_CHANGE,
        mask: bit(change.mode.is_some(), SET_MODE)
            | bit(change.uid.is_some(), SET_UID)
            | bit(change.gid.is_some(), SET_GID)
            | bit(change.accessed_ns.is_some(), SET_ACCESSED)
            | bit(change.modified_ns.is_some(), SET_MODIFIED)
            | bit(has_wide_times(change), WIDE_TIMES),
        first: u64::from(change.mode.unwrap_or(0)),
        second: u64::from(change.uid.unwrap_or(0)) | u64::from(change.gid.unwrap_or(0)) << 32,
        ..Head::default()
    }
}

/// The number of a kind of node in records.
pub(crate) fn kind_number(kind: Kind) -> u8 {
    match kind {
        Kind::File => 1,
        Kind::Directory => 2,
        Kind::Symlink => 3,
        Kind::Fifo => 4,
        Kind::Socket => 5,
        Kind::CharDevice => 6,
        Kind::BlockDevice => 7,
    }
}

/// The kind of node with this number in records.
pub(crate) fn kind_from(number: u8) -> Option<Kind> {
    Some(match number {
        1 => Kind::File,
        2 => Kind::Directory,
        3 => Kind::Symlink,
        4 => Kind::Fifo,
        5 => Kind::Socket,
        6 => Kind::CharDevice,
        7 => Kind::BlockDevice,
        _ => return None,
    })
}

/// Takes `count` bytes off the front.
pub(crate) fn take<'a>(bytes: &mut &'a [u8], count: usize) -> Option<&'a [u8]> {
    let (front, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(front)
}

pub(crate) fn take_u16(bytes: &mut &[u8]) -> Option<u16> {
    Some(u16::from_le_bytes(take(bytes, 2)?.try_into().ok()?))
}

pub(crate) fn take_u64(bytes: &mut &[u8]) -> Option<u64> {
    Some(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?))
}

/// A decoded record and where the data of a `Write` starts in the payload.
pub(crate) type Decoded<'a> = (Record<'a>, usize);

/// Decodes all records of a frame's payload.
pub(crate) fn decode(payload: &[u8]) -> impl Iterator<Item = Result<Decoded<'_>, RecordFault>> {
    let mut rest = payload;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let decoded = decode_one(&mut rest, payload.len());
        if decoded.is_err() {
            rest = &[];
        }
        Some(decoded)
    })
}

/// Takes one record off the front. Every length is checked before it is used.
fn decode_one<'a>(rest: &mut &'a [u8], total: usize) -> Result<Decoded<'a>, RecordFault> {
    let short = RecordFault::Short;
    let head = take(rest, 2).ok_or(short)?;
    let (op, detail) = (head[0], head[1]);
    let path_bytes = usize::from(take_u16(rest).ok_or(short)?);
    let other_bytes = usize::from(take_u16(rest).ok_or(short)?);
    let mask = take_u16(rest).ok_or(short)?;
    let node = NodeId(take_u64(rest).ok_or(short)?);
    let at_ns = take_u64(rest).ok_or(short)?.cast_signed();
    let first = take_u64(rest).ok_or(short)?;
    let second = take_u64(rest).ok_or(short)?;
    let parent = NodeId(take_u64(rest).ok_or(short)?);
    let path = take(rest, path_bytes).ok_or(short)?;
    let other = take(rest, other_bytes).ok_or(short)?;
    let head = Head { op, detail, mask, first, second };
    let at_home = at_home_of(&head, other);
    let op = decode_op(&head, other, rest)?;
    let data_at = total - rest.len();
    if let Op::Write { bytes, .. } = op {
        let bytes = usize::try_from(bytes).map_err(|_| short)?;
        take(rest, bytes).ok_or(short)?;
    }
    Ok((Record { node, parent, path, at_home, at_ns, op }, data_at))
}

fn decode_op<'a>(head: &Head, other: &'a [u8], rest: &mut &'a [u8]) -> Result<Op<'a>, RecordFault> {
    let (first, second) = (head.first, head.second);
    Ok(match head.op {
        OP_WRITE => Op::Write { offset: first, bytes: second },
        OP_ZERO => Op::Zero { offset: first, bytes: second, hole: head.detail != 0 },
        OP_SET_SIZE => Op::SetSize { size_bytes: first },
        OP_RESERVE => Op::Reserve { offset: first, bytes: second },
        OP_CHANGE => Op::Change { change: decode_change(head, rest).ok_or(RecordFault::Short)? },
        OP_MAKE => Op::Make {
            kind: kind_from(head.detail).ok_or(RecordFault::UnknownKind(head.detail))?,
            mode: first as u32,
            rdev: first >> 32,
            uid: second as u32,
            gid: (second >> 32) as u32,
            target: other,
        },
        OP_LINK => Op::Link { to: other },
        OP_REMOVE => Op::Remove { survivor: other, last: head.detail != 0 },
        OP_REMOVE_DIR => Op::RemoveDir,
        OP_RENAME => Op::Rename { to: other, replaced: NodeId(first) },
        OP_SET_XATTR => {
            let bytes = usize::try_from(first).map_err(|_| RecordFault::Short)?;
            Op::SetXattr { name: other, value: take(rest, bytes).ok_or(RecordFault::Short)? }
        }
        OP_REMOVE_XATTR => Op::RemoveXattr { name: other },
        OP_EXCHANGE => {
            Op::Exchange { to: other, other: NodeId(first), from_parent: NodeId(second) }
        }
        op => return Err(RecordFault::UnknownOp(op)),
    })
}

fn decode_change(head: &Head, rest: &mut &[u8]) -> Option<Change> {
    let has = |bit: u16| head.mask & bit != 0;
    let mut time = || match has(WIDE_TIMES) {
        true => take(rest, 16)?.try_into().ok().map(i128::from_le_bytes),
        false => take_u64(rest).map(|narrow| narrow.cast_signed().into()),
    };
    let (accessed_ns, modified_ns) = (time()?, time()?);
    Some(Change {
        mode: has(SET_MODE).then_some(head.first as u32),
        uid: has(SET_UID).then_some(head.second as u32),
        gid: has(SET_GID).then_some((head.second >> 32) as u32),
        accessed_ns: has(SET_ACCESSED).then_some(accessed_ns),
        modified_ns: has(SET_MODIFIED).then_some(modified_ns),
    })
}

#[cfg(test)]
mod tests;
