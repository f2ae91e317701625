//! Numbers of the NBD protocol, fixed newstyle, as in its specification (`doc/proto.md` of
//! NetworkBlockDevice/nbd). Every field on the wire is big-endian.
//!
//! Promise: every number of the protocol that this crate uses is named here once.
//! Never: computes.

/// First word of the greeting.
pub(crate) const GREETING_MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second word of the greeting, and first of every option.
pub(crate) const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// First word of every reply to an option.
pub(crate) const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
/// First word of every request.
pub(crate) const REQUEST_MAGIC: u32 = 0x2560_9513;
/// First word of a simple reply.
pub(crate) const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// First word of each chunk of a structured reply.
pub(crate) const CHUNK_MAGIC: u32 = 0x668e_33ef;

/// Bytes of the client's flags.
pub(crate) const CLIENT_FLAGS_BYTES: usize = 4;
/// Bytes in front of an option's data.
pub(crate) const OPTION_HEAD_BYTES: usize = 16;
/// Bytes of a request, without its payload.
pub(crate) const REQUEST_BYTES: usize = 28;

/// Most bytes of one READ or WRITE: what clients may count on without asking.
pub(crate) const PAYLOAD_BYTES_MAX: u32 = 32 << 20;
/// Smallest and best unit of a request.
pub(crate) const BLOCK_BYTES_MIN: u32 = 1;
pub(crate) const BLOCK_BYTES_PREFERRED: u32 = 4096;
/// Most bytes of an option's data that are looked at. A name has at most 4096.
pub(crate) const OPTION_BYTES_MAX: u32 = 64 << 10;
/// Zeros that end the answer to EXPORT_NAME, unless the client does without.
pub(crate) const EXPORT_NAME_PADDING_BYTES: usize = 124;

/// Flags of the greeting and of the client's answer to it.
pub(crate) mod handshake {
    pub(crate) const FIXED_NEWSTYLE: u16 = 1 << 0;
    pub(crate) const NO_ZEROES: u16 = 1 << 1;
}

/// What an export can do.
pub(crate) mod transmission {
    pub(crate) const HAS_FLAGS: u16 = 1 << 0;
    pub(crate) const READ_ONLY: u16 = 1 << 1;
    pub(crate) const SEND_FLUSH: u16 = 1 << 2;
    pub(crate) const SEND_FUA: u16 = 1 << 3;
    pub(crate) const SEND_TRIM: u16 = 1 << 5;
    pub(crate) const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub(crate) const SEND_DF: u16 = 1 << 7;
    pub(crate) const CAN_MULTI_CONN: u16 = 1 << 8;
    pub(crate) const SEND_CACHE: u16 = 1 << 10;
    pub(crate) const SEND_FAST_ZERO: u16 = 1 << 11;
}

/// Options.
pub(crate) mod option {
    pub(crate) const EXPORT_NAME: u32 = 1;
    pub(crate) const ABORT: u32 = 2;
    pub(crate) const LIST: u32 = 3;
    pub(crate) const STARTTLS: u32 = 5;
    pub(crate) const INFO: u32 = 6;
    pub(crate) const GO: u32 = 7;
    pub(crate) const STRUCTURED_REPLY: u32 = 8;
    pub(crate) const LIST_META_CONTEXT: u32 = 9;
    pub(crate) const SET_META_CONTEXT: u32 = 10;
}

/// Kinds of replies to an option; errors have the highest bit.
pub(crate) mod option_reply {
    const ERROR: u32 = 1 << 31;
    pub(crate) const ACK: u32 = 1;
    pub(crate) const SERVER: u32 = 2;
    pub(crate) const INFO: u32 = 3;
    pub(crate) const META_CONTEXT: u32 = 4;
    pub(crate) const ERR_UNSUP: u32 = ERROR | 1;
    pub(crate) const ERR_INVALID: u32 = ERROR | 3;
    pub(crate) const ERR_TLS_REQD: u32 = ERROR | 5;
    pub(crate) const ERR_UNKNOWN: u32 = ERROR | 6;
    pub(crate) const ERR_TOO_BIG: u32 = ERROR | 9;
}

/// What INFO and GO may ask and tell.
pub(crate) mod info {
    pub(crate) const EXPORT: u16 = 0;
    pub(crate) const NAME: u16 = 1;
    pub(crate) const BLOCK_SIZE: u16 = 3;
}

/// The one context of this server, and the number that stands for it.
pub(crate) const ALLOCATION: &[u8] = b"base:allocation";
/// A query for all contexts of the specification's own.
pub(crate) const BASE: &[u8] = b"base:";
pub(crate) const ALLOCATION_ID: u32 = 1;

/// Commands.
pub(crate) mod command {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Flags of a command.
pub(crate) mod command_flag {
    pub(crate) const FUA: u16 = 1 << 0;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
}

/// What a stretch is in the one context: both of what has no room, neither of what has.
pub(crate) const HOLE_AND_ZERO: u32 = 1 << 0 | 1 << 1;

/// Set in the last chunk of a structured reply.
pub(crate) const CHUNK_DONE: u16 = 1 << 0;

/// Kinds of chunks; errors have the highest bit.
pub(crate) mod chunk {
    pub(crate) const NONE: u16 = 0;
    pub(crate) const OFFSET_DATA: u16 = 1;
    pub(crate) const BLOCK_STATUS: u16 = 5;
    pub(crate) const ERROR: u16 = 1 << 15 | 1;
    pub(crate) const ERROR_OFFSET: u16 = 1 << 15 | 2;
}

/// Error numbers of replies.
pub(crate) mod error {
    pub(crate) const EPERM: u32 = 1;
    pub(crate) const EIO: u32 = 5;
    pub(crate) const EINVAL: u32 = 22;
    pub(crate) const ENOSPC: u32 = 28;
    pub(crate) const ENOTSUP: u32 = 95;
}
