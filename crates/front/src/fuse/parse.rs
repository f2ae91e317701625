//! Bytes from the kernel as requests.
//!
//! Promise: every length is checked before it is used; whatever the bytes are, the result is a
//! request or a [`ParseFault`]; an operation that is not known here is a value.
//! Never: knows a volume, copies a payload, allocates, or panics.
//!
//! A message is a header followed by a body. Header (the machine's byte order):
//!
//! | offset | bytes | field |
//! |---|---|---|
//! | 0 | 4 | length of the whole message |
//! | 4 | 4 | opcode |
//! | 8 | 8 | unique (bit 63: sent again) |
//! | 16 | 8 | node |
//! | 24 | 4 | uid of the caller |
//! | 28 | 4 | gid of the caller |
//! | 32 | 4 | pid of the caller |
//! | 36 | 4 | length of extensions; none is negotiated |
//!
//! Bodies are documented where they are read, as offsets from their own start.

#![expect(clippy::host_endian_bytes, reason = "the kernel speaks the machine's byte order")]

#[cfg(test)]
mod tests;

use super::wire::{self, opcode, setattr};

/// One request of the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// Names the request in its answer, as received: the mark of a repeated request included.
    pub unique: u64,
    /// The kernel sent it before, to a process that did not answer. It may have been carried out.
    pub resent: bool,
    /// What it is about.
    pub node: u64,
    /// Who asks.
    pub uid: u32,
    /// The group of who asks.
    pub gid: u32,
    /// The process that asks, as this one sees it; 0 if it cannot.
    pub pid: u32,
    /// What is asked.
    pub operation: Operation<'a>,
}

/// What is asked. Names carry no NUL and no length limit beyond the message's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "fields are named as in the system call behind each operation")]
pub enum Operation<'a> {
    /// The first message of a mount.
    Init(Init),
    /// The last message of some mounts.
    Destroy,
    /// Find a name in the directory.
    Lookup { name: &'a [u8] },
    /// Take back remembrances. Has no answer.
    Forget { count: u64 },
    /// Take back remembrances of many nodes. Has no answer.
    BatchForget(Forgets<'a>),
    /// Tell the attributes.
    GetAttributes,
    /// Change attributes.
    SetAttributes(SetAttributes),
    /// Where a symbolic link leads.
    ReadLink,
    /// Make a symbolic link.
    Symlink { name: &'a [u8], target: &'a [u8] },
    /// Make anything but a directory or a symbolic link.
    MakeNode { name: &'a [u8], mode: u32, umask: u32, rdev: u32 },
    /// Make a directory.
    MakeDirectory { name: &'a [u8], mode: u32, umask: u32 },
    /// Remove a name that is not a directory.
    Unlink { name: &'a [u8] },
    /// Remove an empty directory.
    RemoveDirectory { name: &'a [u8] },
    /// Rename.
    Rename { name: &'a [u8], new_parent: u64, new_name: &'a [u8], flags: u32 },
    /// Give `node` a second name in the directory.
    Link { node: u64, name: &'a [u8] },
    /// Open a file.
    Open(Open),
    /// Make and open a file.
    Create { name: &'a [u8], mode: u32, umask: u32, open: Open },
    /// Make and open a file without a name.
    CreateUnnamed { mode: u32, umask: u32 },
    /// Read.
    Read { offset: u64, bytes: u32 },
    /// Write.
    Write(Write<'a>),
    /// Tell the space.
    StatFs,
    /// The last descriptor of one open was closed.
    Release,
    /// Make a file durable.
    Sync,
    /// Open a directory.
    OpenDirectory,
    /// List a directory.
    ReadDirectory { offset: u64, bytes: u32 },
    /// List a directory with attributes.
    ReadDirectoryPlus { offset: u64, bytes: u32 },
    /// Close a directory.
    ReleaseDirectory,
    /// Make a directory durable.
    SyncDirectory,
    /// A program wants its call to end early.
    Interrupt,
    /// Reserve, punch or zero a range.
    Allocate { offset: u64, bytes: u64, mode: u32 },
    /// Find the next data or hole.
    Seek { offset: u64, whence: u32 },
    /// Make the whole file system durable.
    SyncFileSystem,
    /// Tell the value of an extended attribute, or with no `bytes` how long it is.
    GetXattr { name: &'a [u8], bytes: u32 },
    /// Tell the names of all extended attributes, or with no `bytes` how long that is.
    ListXattr { bytes: u32 },
    /// Set an extended attribute.
    SetXattr(SetXattr<'a>),
    /// Remove an extended attribute.
    RemoveXattr { name: &'a [u8] },
    /// Something this front end does not do.
    Unknown { opcode: u32 },
}

/// Who asks, of a message that may be anything.
pub fn user_of(message: &[u8]) -> Option<u32> {
    message.get(USER_AT..USER_AT + 4).map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("4")))
}

/// Where a message says who asks.
const USER_AT: usize = 24;

/// True if the kernel lets nobody in the mount move a name from one directory to another before
/// this message, which may be anything, is answered: because it does that itself.
pub fn holds_others(message: &[u8]) -> bool {
    let opcode = message.get(4..8).map(|bytes| u32::from_ne_bytes(bytes.try_into().expect("4")));
    let parents = (message.get(NODE_AT..NODE_AT + 8), message.get(wire::IN_HEADER_BYTES..));
    let (Some(opcode::RENAME | opcode::RENAME2), (Some(from), Some(body))) = (opcode, parents)
    else {
        return false;
    };
    !body.starts_with(from)
}

/// Where a message says which node it is about.
const NODE_AT: usize = 16;

/// What the kernel offers when a mount starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Init {
    /// Major version of the protocol.
    pub major: u32,
    /// Minor version of the protocol.
    pub minor: u32,
    /// Longest read ahead, in bytes.
    pub max_readahead_bytes: u32,
    /// Features, the second word in the upper half.
    pub features: u64,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Open {
    /// Fail if the file exists (with create).
    pub exclusive: bool,
    /// Cut the file to nothing.
    pub truncate: bool,
    /// Truncation drops set-user-id and set-group-id bits.
    pub kill_privileges: bool,
}

/// What is written where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Write<'a> {
    /// Where, in bytes.
    pub offset: u64,
    /// What.
    pub data: &'a [u8],
    /// Set-user-id and set-group-id bits go.
    pub kill_privileges: bool,
    /// The descriptor was opened with `O_DSYNC` or `O_SYNC`, or the call asked for the same.
    pub synchronous: bool,
}

/// Which attributes change, and to what.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttributes {
    /// Permission bits, possibly with the type bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Length in bytes.
    pub size_bytes: Option<u64>,
    /// Last access.
    pub accessed: Option<When>,
    /// Last change of the contents.
    pub modified: Option<When>,
    /// Truncation drops set-user-id and set-group-id bits.
    pub kill_privileges: bool,
}

/// Which extended attribute becomes what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetXattr<'a> {
    /// Its name.
    pub name: &'a [u8],
    /// What it becomes.
    pub value: &'a [u8],
    /// `XATTR_` flags of the call.
    pub flags: u32,
    /// Flags of the kernel's own, in the longer form: the kernel then does what access control
    /// lists ask for.
    pub more: Option<u32>,
}

/// A time to be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Whatever the server's clock says.
    Now,
    /// Nanoseconds since 1970.
    At(i128),
}

/// The body of a batch of forgets: pairs of node and count, all present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Forgets<'a>(&'a [u8]);

impl Forgets<'_> {
    /// The pairs (node, count).
    pub fn pairs(&self) -> impl Iterator<Item = (u64, u64)> {
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
        self.0.as_chunks::<16>().0.iter().map(move |pair| (word(pair), word(&pair[8..])))
    }
}

/// Why bytes are not a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseFault {
    /// Shorter than a header: there is nothing to answer.
    Header {
        /// Bytes received.
        got_bytes: usize,
    },
    /// The header's length is not the message's.
    Length {
        /// The request to refuse.
        unique: u64,
        /// What the header says.
        claimed_bytes: u32,
        /// Bytes received.
        got_bytes: usize,
    },
    /// The body is too short for its operation, or a name in it has no end.
    Body {
        /// The request to refuse.
        unique: u64,
        /// The operation.
        opcode: u32,
    },
}

impl ParseFault {
    /// The request to refuse, if that much could be read.
    pub fn unique(&self) -> Option<u64> {
        match *self {
            Self::Header { .. } => None,
            Self::Length { unique, .. } | Self::Body { unique, .. } => Some(unique),
        }
    }
}

/// Reads one message.
pub fn parse(message: &[u8]) -> Result<Request<'_>, ParseFault> {
    let Some((header, body)) = message.split_at_checked(wire::IN_HEADER_BYTES) else {
        return Err(ParseFault::Header { got_bytes: message.len() });
    };
    let header = Body(header);
    let field = |offset| header.u32(offset).unwrap_or(0);
    let wide = |offset| header.u64(offset).unwrap_or(0);
    let (claimed_bytes, opcode, unique) = (field(0), field(4), wide(8));
    if claimed_bytes as usize != message.len() {
        return Err(ParseFault::Length { unique, claimed_bytes, got_bytes: message.len() });
    }
    let Some(operation) = operation(opcode, Body(body)) else {
        return Err(ParseFault::Body { unique, opcode });
    };
    Ok(Request {
        unique,
        resent: unique & wire::UNIQUE_RESENT != 0,
        node: wide(16),
        uid: field(24),
        gid: field(28),
        pid: field(32),
        operation,
    })
}

/// `None` is a body too short.
fn operation(opcode: u32, body: Body<'_>) -> Option<Operation<'_>> {
    Some(match opcode {
        opcode::INIT => Operation::Init(init(body)?),
        opcode::DESTROY => Operation::Destroy,
        opcode::LOOKUP => Operation::Lookup { name: body.name(0)? },
        opcode::FORGET => Operation::Forget { count: body.u64(0)? },
        opcode::BATCH_FORGET => Operation::BatchForget(forgets(body)?),
        opcode::GETATTR => Operation::GetAttributes,
        opcode::SETATTR => Operation::SetAttributes(set_attributes(body)?),
        opcode::READLINK => Operation::ReadLink,
        opcode::SYMLINK => symlink(body)?,
        opcode::MKNOD => make_node(body)?,
        opcode::MKDIR => make_directory(body)?,
        opcode::UNLINK => Operation::Unlink { name: body.name(0)? },
        opcode::RMDIR => Operation::RemoveDirectory { name: body.name(0)? },
        opcode::RENAME => rename(body, 0, 8)?,
        opcode::RENAME2 => rename(body, body.u32(8)?, 16)?,
        opcode::LINK => Operation::Link { node: body.u64(0)?, name: body.name(8)? },
        opcode::OPEN => Operation::Open(open(body.u32(0)?, body.u32(4)?)),
        opcode::CREATE => create(body)?,
        // As CREATE, with a name that means nothing.
        opcode::TMPFILE => Operation::CreateUnnamed { mode: body.u32(4)?, umask: body.u32(8)? },
        opcode::READ => Operation::Read { offset: body.u64(8)?, bytes: body.u32(16)? },
        opcode::WRITE => write(body)?,
        opcode::STATFS => Operation::StatFs,
        opcode::RELEASE => Operation::Release,
        opcode::FSYNC => Operation::Sync,
        opcode::OPENDIR => Operation::OpenDirectory,
        opcode::READDIR => Operation::ReadDirectory { offset: body.u64(8)?, bytes: body.u32(16)? },
        opcode::READDIRPLUS => {
            Operation::ReadDirectoryPlus { offset: body.u64(8)?, bytes: body.u32(16)? }
        }
        opcode::RELEASEDIR => Operation::ReleaseDirectory,
        opcode::FSYNCDIR => Operation::SyncDirectory,
        opcode::INTERRUPT => Operation::Interrupt,
        opcode::FALLOCATE => {
            Operation::Allocate { offset: body.u64(8)?, bytes: body.u64(16)?, mode: body.u32(24)? }
        }
        // 0 handle, 8 offset, 16 whence.
        opcode::LSEEK => Operation::Seek { offset: body.u64(8)?, whence: body.u32(16)? },
        opcode::SYNCFS => Operation::SyncFileSystem,
        opcode::GETXATTR => Operation::GetXattr { name: body.name(8)?, bytes: body.u32(0)? },
        opcode::LISTXATTR => Operation::ListXattr { bytes: body.u32(0)? },
        opcode::SETXATTR => Operation::SetXattr(set_xattr(body, 16).or(set_xattr(body, 8))?),
        opcode::REMOVEXATTR => Operation::RemoveXattr { name: body.name(0)? },
        opcode => Operation::Unknown { opcode },
    })
}

/// 0 major, 4 minor, 8 longest read ahead, 12 features, 16 more features (from version 7.36 on).
fn init(body: Body<'_>) -> Option<Init> {
    let low = u64::from(body.u32(12)?);
    let high = u64::from(body.u32(16).unwrap_or(0));
    Some(Init {
        major: body.u32(0)?,
        minor: body.u32(4)?,
        max_readahead_bytes: body.u32(8)?,
        features: if low & wire::init::INIT_EXT != 0 { low | high << 32 } else { low },
    })
}

/// 0 count, 4 unused, 8 pairs of (node, count), 16 bytes each.
fn forgets(body: Body<'_>) -> Option<Forgets<'_>> {
    let count = body.u32(0)? as usize;
    let pairs = body.0.get(8..)?;
    pairs.get(..count.checked_mul(16)?).map(Forgets)
}

/// 0 valid, 8 handle, 16 size, 24 lock owner, 32 atime, 40 mtime, 48 ctime (seconds),
/// 56 atime, 60 mtime, 64 ctime (nanoseconds), 68 mode, 76 uid, 80 gid.
fn set_attributes(body: Body<'_>) -> Option<SetAttributes> {
    body.0.get(..88)?;
    let valid = body.u32(0)?;
    let has = |bit: u32| valid & bit != 0;
    let time = |now: u32, seconds, nanoseconds| {
        if has(now) {
            return Some(When::Now);
        }
        let whole = i128::from(body.u64(seconds)?.cast_signed()) * 1_000_000_000;
        Some(When::At(whole + i128::from(body.u32(nanoseconds)?)))
    };
    Some(SetAttributes {
        mode: body.u32(68).filter(|_| has(setattr::MODE)),
        uid: body.u32(76).filter(|_| has(setattr::UID)),
        gid: body.u32(80).filter(|_| has(setattr::GID)),
        size_bytes: body.u64(16).filter(|_| has(setattr::SIZE)),
        accessed: time(setattr::ATIME_NOW, 32, 56).filter(|_| has(setattr::ATIME)),
        modified: time(setattr::MTIME_NOW, 40, 60).filter(|_| has(setattr::MTIME)),
        kill_privileges: has(setattr::KILL_SUIDGID),
    })
}

/// Name, NUL, target, NUL.
fn symlink(body: Body<'_>) -> Option<Operation<'_>> {
    let name = body.name(0)?;
    Some(Operation::Symlink { name, target: body.name(name.len() + 1)? })
}

/// 0 mode, 4 device, 8 umask, 12 unused, 16 name.
fn make_node(body: Body<'_>) -> Option<Operation<'_>> {
    Some(Operation::MakeNode {
        name: body.name(16)?,
        mode: body.u32(0)?,
        umask: body.u32(8)?,
        rdev: body.u32(4)?,
    })
}

/// 0 mode, 4 umask, 8 name.
fn make_directory(body: Body<'_>) -> Option<Operation<'_>> {
    let (mode, umask) = (body.u32(0)?, body.u32(4)?);
    Some(Operation::MakeDirectory { name: body.name(8)?, mode, umask })
}

/// 0 new parent, then flags in the newer form, then at `names` the old and the new name.
fn rename(body: Body<'_>, flags: u32, names: usize) -> Option<Operation<'_>> {
    let name = body.name(names)?;
    let new_name = body.name(names + name.len() + 1)?;
    Some(Operation::Rename { name, new_parent: body.u64(0)?, new_name, flags })
}

fn open(flags: u32, more: u32) -> Open {
    Open {
        exclusive: flags & wire::O_EXCL != 0,
        truncate: flags & wire::O_TRUNC != 0,
        kill_privileges: more & wire::OPEN_KILL_SUIDGID != 0,
    }
}

/// 0 flags, 4 mode, 8 umask, 12 more flags, 16 name.
fn create(body: Body<'_>) -> Option<Operation<'_>> {
    Some(Operation::Create {
        name: body.name(16)?,
        mode: body.u32(4)?,
        umask: body.u32(8)?,
        open: open(body.u32(0)?, body.u32(12)?),
    })
}

/// 0 handle, 8 offset, 16 bytes, 20 flags, 24 lock owner, 32 open flags, 36 unused, 40 data.
fn write(body: Body<'_>) -> Option<Operation<'_>> {
    let bytes = body.u32(16)? as usize;
    Some(Operation::Write(Write {
        offset: body.u64(8)?,
        data: body.0.get(40..)?.get(..bytes)?,
        kill_privileges: body.u32(20)? & wire::WRITE_KILL_SUIDGID != 0,
        synchronous: body.u32(32)? & wire::O_DSYNC != 0,
    }))
}

/// 0 bytes of the value, 4 flags, in the longer form 8 more flags and 12 zeros, then at `names` the
/// name and the value. Which form it is, the zeros and the length of all tell.
fn set_xattr(body: Body<'_>, names: usize) -> Option<SetXattr<'_>> {
    let name = body.name(names)?;
    let value = body.0.get(names + name.len() + 1..)?;
    let more = if names > 8 { Some(body.u32(8)?) } else { None };
    // Names have a prefix of four letters or more, so that in the short form no zeros stand here.
    let is_padded = more.is_none() || body.u32(12)? == 0;
    let is_whole = is_padded && value.len() == body.u32(0)? as usize && !name.is_empty();
    is_whole.then_some(SetXattr { name, value, flags: body.u32(4)?, more })
}

/// Bytes whose every access is checked.
#[derive(Clone, Copy)]
struct Body<'a>(&'a [u8]);

impl<'a> Body<'a> {
    fn u32(self, offset: usize) -> Option<u32> {
        Some(u32::from_ne_bytes(*self.0.get(offset..)?.first_chunk()?))
    }

    fn u64(self, offset: usize) -> Option<u64> {
        Some(u64::from_ne_bytes(*self.0.get(offset..)?.first_chunk()?))
    }

    /// The bytes from `offset` up to a NUL that must be there.
    fn name(self, offset: usize) -> Option<&'a [u8]> {
        let rest = self.0.get(offset..)?;
        rest.iter().position(|&byte| byte == 0).map(|end| &rest[..end])
    }
}
