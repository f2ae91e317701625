//! Faults that a test asks for.
//!
//! Promise: a fault strikes the call it was set for, once, and tells whether it did.
//! Never: strikes by chance.

/// The kinds of calls, as in [`crate::Files`] and [`crate::OpenFile`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// `Files::open`.
    Open,
    /// `metadata` of a name or an open file.
    Metadata,
    /// `Files::read_dir`.
    ReadDir,
    /// `Files::read_link`.
    ReadLink,
    /// `Files::make_dir`.
    MakeDir,
    /// `Files::make_symlink`.
    MakeSymlink,
    /// `Files::make_node`.
    MakeNode,
    /// `Files::link`.
    Link,
    /// `Files::rename`.
    Rename,
    /// `Files::exchange`.
    Exchange,
    /// `Files::remove_file`.
    RemoveFile,
    /// `Files::remove_dir`.
    RemoveDir,
    /// `change` of a name or an open file.
    Change,
    /// `Files::sync_dir`.
    SyncDir,
    /// `Files::xattr` and `Files::xattr_names`.
    Xattr,
    /// `Files::set_xattr`.
    SetXattr,
    /// `Files::remove_xattr`.
    RemoveXattr,
    /// `Files::sync_all`.
    SyncAll,
    /// `space` of a root or an open file.
    Space,
    /// `Files::limits`.
    Limits,
    /// `OpenFile::seek`.
    Seek,
    /// `OpenFile::read_at`.
    Read,
    /// `OpenFile::write_at`.
    Write,
    /// `OpenFile::sync_data`.
    SyncData,
    /// `OpenFile::set_len`.
    SetLen,
    /// `OpenFile::reserve`.
    Reserve,
    /// `OpenFile::punch`.
    Punch,
}

impl Operation {
    /// All of them.
    pub const ALL: [Operation; 27] = {
        use Operation::*;
        [
            Open,
            Metadata,
            ReadDir,
            ReadLink,
            MakeDir,
            MakeSymlink,
            MakeNode,
            Link,
            Rename,
            Exchange,
            RemoveFile,
            RemoveDir,
            Change,
            SyncDir,
            Xattr,
            SetXattr,
            RemoveXattr,
            SyncAll,
            Space,
            Limits,
            Seek,
            Read,
            Write,
            SyncData,
            SetLen,
            Reserve,
            Punch,
        ]
    };

    /// Whether a power cut can be told to happen at it. Creating by `open` is one more.
    pub(super) fn changes_state(self) -> bool {
        use Operation::{Limits, Metadata, Open, Read, ReadDir, ReadLink, Seek, Space, Xattr};
        !matches!(self, Open | Metadata | ReadDir | ReadLink | Space | Limits | Seek | Read | Xattr)
    }

    /// Whether a file system mounted read-only refuses it.
    pub(super) fn writes(self) -> bool {
        use Operation::{SyncAll, SyncData, SyncDir};
        self.changes_state() && !matches!(self, SyncDir | SyncData | SyncAll)
    }
}

/// What goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The call does nothing and fails with this error number, such as [`EIO`].
    Errno(i32),
    /// Only a part is transferred, at least one byte (one block of 4096 for direct files); a call
    /// too short to be cut is left whole. For [`Operation::Read`] and [`Operation::Write`].
    Short,
    /// The sync fails with [`EIO`] and the dirty data is forgotten, so the next sync succeeds and
    /// means nothing. For [`Operation::SyncData`].
    DropsDirty,
    /// The write is acknowledged and never reaches the disk. For [`Operation::Write`].
    LostWrite,
    /// The write is acknowledged and reaches another place of the same file. For
    /// [`Operation::Write`].
    MisdirectedWrite,
}

/// Interrupted by a signal; nothing was done.
pub const EINTR: i32 = 4;
/// The device failed.
pub const EIO: i32 = 5;
/// No space left.
pub const ENOSPC: i32 = 28;

/// One thing that goes wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The kind of call it strikes.
    pub operation: Operation,
    /// Which call of that kind, counted from now: 0 is the next one.
    pub skip: u64,
    /// What goes wrong.
    pub effect: Effect,
}

/// Faults not struck yet.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    waiting: Vec<Fault>,
    fired: u64,
}

impl Faults {
    pub(super) fn add(&mut self, fault: Fault) {
        self.waiting.push(fault);
    }

    pub(super) fn fired(&self) -> u64 {
        self.fired
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    pub(super) fn forget(&mut self) {
        self.waiting.clear();
    }

    /// Counts a call, and says what goes wrong with it. If several faults meet at one call, the
    /// oldest strikes and the others wait for the next.
    pub(super) fn strike(&mut self, operation: Operation) -> Option<Effect> {
        let mut struck = None;
        for (index, fault) in self.waiting.iter_mut().enumerate() {
            if fault.operation != operation {
                continue;
            }
            if fault.skip > 0 {
                fault.skip -= 1;
            } else if struck.is_none() {
                struck = Some(index);
            }
        }
        self.fired += u64::from(struck.is_some());
        struck.map(|index| self.waiting.remove(index).effect)
    }
}
