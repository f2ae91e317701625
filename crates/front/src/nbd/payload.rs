//! A write whose bytes are still coming, and why a request was not carried out.
//!
//! Promise: what another process needs to go on in the middle of a write.
//! Never: holds the bytes.

use holdfast_io::BlocksError;

use super::wire::error;

/// Why a request was not carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The command is none of this server's, or was not agreed on.
    Command,
    /// A flag does not go with the command.
    Flag,
    /// The export may not be changed.
    ReadOnly,
    /// More bytes than a request may have.
    TooLong,
    /// A read, or a hint, behind the last byte.
    OutOfRange,
    /// A change behind the last byte.
    WriteOutOfRange,
    /// It is not known whether zeros are faster than a write.
    NotFast,
    /// The disk has no space left.
    NoSpace,
    /// The disk failed.
    Failed,
}

impl Refusal {
    pub(crate) const ALL: [Refusal; 9] = [
        Refusal::Command,
        Refusal::Flag,
        Refusal::ReadOnly,
        Refusal::TooLong,
        Refusal::OutOfRange,
        Refusal::WriteOutOfRange,
        Refusal::NotFast,
        Refusal::NoSpace,
        Refusal::Failed,
    ];

    pub(super) fn error(self) -> u32 {
        match self {
            Refusal::Command | Refusal::Flag | Refusal::TooLong | Refusal::OutOfRange => {
                error::EINVAL
            }
            Refusal::ReadOnly => error::EPERM,
            Refusal::WriteOutOfRange | Refusal::NoSpace => error::ENOSPC,
            Refusal::NotFast => error::ENOTSUP,
            Refusal::Failed => error::EIO,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Refusal::Command => "the command is unknown, or was not agreed on",
            Refusal::Flag => "a flag does not go with the command",
            Refusal::ReadOnly => "the export is read-only",
            Refusal::TooLong => "the request is longer than the server takes",
            Refusal::OutOfRange | Refusal::WriteOutOfRange => "the range ends behind the last byte",
            Refusal::NotFast => "zeros may be no faster than a write",
            Refusal::NoSpace => "no space is left",
            Refusal::Failed => "the disk failed",
        }
    }
}

impl From<&BlocksError> for Refusal {
    fn from(error: &BlocksError) -> Self {
        match error {
            BlocksError::OutOfRange => Refusal::OutOfRange,
            BlocksError::NoSpace => Refusal::NoSpace,
            _ => Refusal::Failed,
        }
    }
}

/// A write whose bytes are still coming.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) left_bytes: u32,
    pub(crate) is_durable: bool,
    /// The rest is thrown away; a client does not listen before it has sent all.
    pub(crate) refusal: Option<Refusal>,
}

impl Payload {
    /// Whether what is still coming has a place on a disk of so many bytes.
    pub(crate) fn fits(&self, size_bytes: u64) -> bool {
        let end = self.offset.checked_add(u64::from(self.left_bytes));
        self.refusal.is_some() || end.is_some_and(|end| end <= size_bytes)
    }
}
