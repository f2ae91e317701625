//! Answers as bytes for the kernel.
//!
//! Promise: what is encoded has exactly the length its header claims and never exceeds the buffer.
//! Never: knows a volume, allocates, or touches a descriptor.
//!
//! Every answer starts with 16 bytes: 0 length of all, 4 negated error number, 8 unique.
//! Layouts below are offsets from the start of the structure they describe.

#![expect(clippy::host_endian_bytes, reason = "the kernel speaks the machine's byte order")]

#[cfg(test)]
mod tests;

use std::time::Duration;

use super::wire;

/// Where an answer's data starts.
pub const HEADER_BYTES: usize = wire::OUT_HEADER_BYTES;
const ATTRIBUTES_BYTES: usize = 88;
const ENTRY_BYTES: usize = 40 + ATTRIBUTES_BYTES;
const DIRENT_BYTES: usize = 24;

/// One answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// The request has no answer.
    Nothing,
    /// An error number.
    Failed(i32),
    /// Success, and nothing to tell.
    Done,
    /// A name was found or made.
    Entry(Entry),
    /// Attributes.
    Attributes(Attributes, Duration),
    /// A file or directory is open.
    Opened(Opened),
    /// A file was made and is open.
    Created(Entry, Opened),
    /// Bytes were written.
    Written {
        /// How many.
        bytes: u32,
    },
    /// Where data or a hole begins.
    Found {
        /// How many bytes into the file.
        offset: u64,
    },
    /// Data that already lies behind the header in the answer's buffer.
    Data {
        /// How many bytes.
        bytes: usize,
    },
    /// How long an answer would be.
    Length {
        /// In bytes.
        bytes: u32,
    },
    /// Free and total space.
    Space(Space),
    /// The protocol agreed on.
    Started(Started),
}

/// Attributes as the kernel wants them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Inode number.
    pub inode: u64,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Allocated units of 512 bytes.
    pub blocks: u64,
    /// Last access, nanoseconds since 1970.
    pub accessed_ns: i128,
    /// Last change of the contents, nanoseconds since 1970.
    pub modified_ns: i128,
    /// Last change of the inode, nanoseconds since 1970.
    pub changed_ns: i128,
    /// Permission and type bits.
    pub mode: u32,
    /// Number of names.
    pub links: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Device number.
    pub rdev: u32,
}

/// A name and what it names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The node; 0 says that the name does not exist, which may be remembered too.
    pub node: u64,
    /// How long name and attributes may be remembered.
    pub remember_for: Duration,
    /// The attributes.
    pub attributes: Attributes,
}

/// How the kernel treats an open file (`FOPEN_` flags).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Opened {
    /// The flags.
    pub flags: u32,
}

/// What `statfs` tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Space {
    /// Size in blocks.
    pub blocks: u64,
    /// Free blocks.
    pub free_blocks: u64,
    /// Blocks free for an ordinary user.
    pub available_blocks: u64,
    /// Inodes in all.
    pub inodes: u64,
    /// Free inodes.
    pub free_inodes: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Longest name in bytes.
    pub name_bytes_max: u32,
}

/// The answer to INIT.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Started {
    /// Minor version spoken.
    pub minor: u32,
    /// Longest read ahead, in bytes.
    pub max_readahead_bytes: u32,
    /// Features accepted, the second word in the upper half.
    pub features: u64,
    /// Requests nobody waits for that may be under way.
    pub max_background: u16,
    /// Largest WRITE, in bytes.
    pub max_write_bytes: u32,
    /// Largest transfer, in pages.
    pub max_pages: u16,
}

/// Writes the answer to the front of `into`. Returns its length; 0 means that none is sent.
///
/// # Panics
/// If `into` cannot hold the answer: it is at least 4096 bytes, and data was put there before.
pub fn encode(reply: &Reply, unique: u64, into: &mut [u8]) -> usize {
    let (header, body) = into.split_at_mut(HEADER_BYTES);
    let (error, body_bytes) = match reply {
        Reply::Nothing => return 0,
        Reply::Failed(errno) => (-errno, 0),
        Reply::Done => (0, 0),
        Reply::Entry(entry) => (0, put_entry(entry, body)),
        Reply::Attributes(attributes, valid) => (0, put_valid_attributes(attributes, *valid, body)),
        Reply::Opened(opened) => (0, put_opened(*opened, body)),
        Reply::Created(entry, opened) => {
            let bytes = put_entry(entry, body);
            (0, bytes + put_opened(*opened, &mut body[bytes..]))
        }
        Reply::Written { bytes } | Reply::Length { bytes } => {
            (0, put(body).u32(*bytes).u32(0).used)
        }
        Reply::Found { offset } => (0, put(body).u64(*offset).used),
        Reply::Data { bytes } => (0, *bytes),
        Reply::Space(space) => (0, put_space(space, body)),
        Reply::Started(started) => (0, put_started(started, body)),
    };
    assert!(body_bytes <= body.len());
    let bytes = HEADER_BYTES + body_bytes;
    put(header).u32(bytes as u32).u32(error.cast_unsigned()).u64(unique);
    bytes
}

/// The notification that asks the kernel for every unanswered request again.
pub(crate) fn resend_notification() -> [u8; HEADER_BYTES] {
    let mut bytes = [0; HEADER_BYTES];
    put(&mut bytes).u32(HEADER_BYTES as u32).u32(wire::NOTIFY_RESEND.cast_unsigned()).u64(0);
    bytes
}

/// 0 node, 8 generation (nodes are never reused), 16 and 32 validity of the name, 24 and 36 of the
/// attributes (seconds, nanoseconds), 40 attributes.
fn put_entry(entry: &Entry, into: &mut [u8]) -> usize {
    let (seconds, nanoseconds) = split(entry.remember_for);
    let head = put(into).u64(entry.node).u64(0).u64(seconds).u64(seconds);
    let head = head.u32(nanoseconds).u32(nanoseconds).used;
    head + put_attributes(&entry.attributes, &mut into[head..])
}

/// 0 inode, 8 size, 16 blocks, 24 atime, 32 mtime, 40 ctime (seconds), 48, 52, 56 (nanoseconds),
/// 60 mode, 64 links, 68 uid, 72 gid, 76 device, 80 preferred transfer, 84 flags.
fn put_attributes(attributes: &Attributes, into: &mut [u8]) -> usize {
    const NS: i128 = 1_000_000_000;
    let times = [attributes.accessed_ns, attributes.modified_ns, attributes.changed_ns];
    let [atime, mtime, ctime] = times.map(|time| time.div_euclid(NS) as u64);
    let [atime_ns, mtime_ns, ctime_ns] = times.map(|time| time.rem_euclid(NS) as u32);
    put(into)
        .u64(attributes.inode)
        .u64(attributes.size_bytes)
        .u64(attributes.blocks)
        .u64(atime)
        .u64(mtime)
        .u64(ctime)
        .u32(atime_ns)
        .u32(mtime_ns)
        .u32(ctime_ns)
        .u32(attributes.mode)
        .u32(attributes.links)
        .u32(attributes.uid)
        .u32(attributes.gid)
        .u32(attributes.rdev)
        .u32(4096)
        .u32(0)
        .used
}

/// 0 and 8 validity (seconds, nanoseconds), 12 unused, 16 attributes.
fn put_valid_attributes(attributes: &Attributes, valid: Duration, into: &mut [u8]) -> usize {
    let (seconds, nanoseconds) = split(valid);
    let head = put(into).u64(seconds).u32(nanoseconds).u32(0).used;
    head + put_attributes(attributes, &mut into[head..])
}

/// 0 handle (unused: nodes say enough), 8 flags, 12 unused.
fn put_opened(opened: Opened, into: &mut [u8]) -> usize {
    put(into).u64(0).u32(opened.flags).u32(0).used
}

/// 0 blocks, 8 free, 16 available, 24 inodes, 32 free inodes, 40 block, 44 longest name,
/// 48 fragment, 52 unused.
fn put_space(space: &Space, into: &mut [u8]) -> usize {
    let counts = put(into).u64(space.blocks).u64(space.free_blocks).u64(space.available_blocks);
    let counts = counts.u64(space.inodes).u64(space.free_inodes);
    counts.u32(space.block_bytes).u32(space.name_bytes_max).u32(space.block_bytes).zeros(28).used
}

/// 0 major, 4 minor, 8 longest read ahead, 12 features, 16 background limit, 18 congestion limit,
/// 20 largest write, 24 resolution of times in nanoseconds, 28 pages, 30 unused, 32 more features,
/// 36 unused.
fn put_started(started: &Started, into: &mut [u8]) -> usize {
    let congestion = started.max_background / 4 * 3;
    put(into)
        .u32(7)
        .u32(started.minor)
        .u32(started.max_readahead_bytes)
        .u32(started.features as u32)
        .u16(started.max_background)
        .u16(congestion)
        .u32(started.max_write_bytes)
        .u32(1)
        .u16(started.max_pages)
        .u16(0)
        .u32((started.features >> 32) as u32)
        .zeros(28)
        .used
}

fn split(time: Duration) -> (u64, u32) {
    (time.as_secs(), time.subsec_nanos())
}

/// A listing being filled: entries are padded to 8 bytes and never split.
///
/// A plain entry is 0 inode, 8 offset of the next, 16 length of the name, 20 type, 24 name; in a
/// listing with attributes each is preceded by an entry as a lookup answers it.
#[derive(Debug)]
pub struct Listing<'b> {
    area: &'b mut [u8],
    used: usize,
}

impl<'b> Listing<'b> {
    /// Fills `area` from its start.
    pub fn new(area: &'b mut [u8]) -> Self {
        Self { area, used: 0 }
    }

    /// Bytes filled so far.
    pub fn used_bytes(&self) -> usize {
        self.used
    }

    /// Bytes that one entry with attributes takes.
    pub fn plus_bytes(name: &[u8]) -> usize {
        (ENTRY_BYTES + DIRENT_BYTES + name.len()).next_multiple_of(8)
    }

    /// Adds a name; false if it does not fit. `offset` is where the listing goes on behind it.
    pub fn add(&mut self, name: &[u8], inode: u64, kind: u32, offset: u64) -> bool {
        let bytes = (DIRENT_BYTES + name.len()).next_multiple_of(8);
        let Some(room) = self.area.get_mut(self.used..).and_then(|rest| rest.get_mut(..bytes))
        else {
            return false;
        };
        let length = name.len() as u32;
        put(room).u64(inode).u64(offset).u32(length).u32(kind).bytes(name).rest();
        self.used += bytes;
        true
    }

    /// Adds a name and what a lookup of it would tell; false if it does not fit.
    pub fn add_plus(
        &mut self,
        name: &[u8],
        entry: &Entry,
        inode: u64,
        kind: u32,
        offset: u64,
    ) -> bool {
        if self.area.len() - self.used < Self::plus_bytes(name) {
            return false;
        }
        self.used += put_entry(entry, &mut self.area[self.used..]);
        self.add(name, inode, kind, offset)
    }
}

/// Writes fields one behind the other.
struct Put<'b> {
    into: &'b mut [u8],
    used: usize,
}

fn put(into: &mut [u8]) -> Put<'_> {
    Put { into, used: 0 }
}

impl Put<'_> {
    fn bytes(mut self, bytes: &[u8]) -> Self {
        self.into[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
        self
    }

    fn u16(self, value: u16) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    fn u32(self, value: u32) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    fn u64(self, value: u64) -> Self {
        self.bytes(&value.to_ne_bytes())
    }

    fn zeros(mut self, count: usize) -> Self {
        self.into[self.used..self.used + count].fill(0);
        self.used += count;
        self
    }

    fn rest(self) {
        self.into[self.used..].fill(0);
    }
}
