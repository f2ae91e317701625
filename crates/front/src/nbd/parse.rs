//! Bytes from a client as options and requests.
//!
//! Promise: every length is checked before it is used; whatever the bytes are, the result is a
//! message or a fault; an option or command that is not known here is a value.
//! Never: knows a disk, copies a payload, allocates, or panics.
//!
//! Layouts are offsets from the start of the structure; every number is big-endian.

#[cfg(test)]
mod tests;

use super::wire::{self, command, option};

/// Why what a client sent is not the protocol. Where its next message starts cannot be told, so
/// the connection ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Fault {
    /// The client's flags have bits that nobody offered.
    #[error("its flags are {0:#x}")]
    ClientFlags(u32),
    /// No option starts with this.
    #[error("an option starts with {0:#x}")]
    OptionMagic(u64),
    /// No request starts with this.
    #[error("a request starts with {0:#x}")]
    RequestMagic(u32),
    /// EXPORT_NAME named no export; that option has no answer for it.
    #[error("it asked for an export that is not here")]
    NoSuchExport,
    /// EXPORT_NAME, which cannot be refused, came before TLS was started.
    #[error("it chose an export without TLS")]
    NotSecure,
}

/// What the client says to the greeting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientFlags {
    /// The zeros behind the answer to EXPORT_NAME are left out.
    pub no_zeroes: bool,
}

/// Reads the client's flags.
pub fn client_flags(bytes: [u8; wire::CLIENT_FLAGS_BYTES]) -> Result<ClientFlags, Fault> {
    const KNOWN: u16 = wire::handshake::FIXED_NEWSTYLE | wire::handshake::NO_ZEROES;
    let flags = u32::from_be_bytes(bytes);
    if flags & !u32::from(KNOWN) != 0 {
        return Err(Fault::ClientFlags(flags));
    }
    Ok(ClientFlags { no_zeroes: flags & u32::from(wire::handshake::NO_ZEROES) != 0 })
}

/// What stands in front of an option's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OptionHead {
    /// Which option.
    pub option: u32,
    /// Bytes of its data.
    pub data_bytes: u32,
}

/// 0 magic, 8 option, 12 length of the data.
pub fn option_head(bytes: &[u8; wire::OPTION_HEAD_BYTES]) -> Result<OptionHead, Fault> {
    let field = |at| u32_at(bytes, at).unwrap_or(0);
    let magic = u64_at(bytes, 0).unwrap_or(0);
    if magic != wire::OPTION_MAGIC {
        return Err(Fault::OptionMagic(magic));
    }
    Ok(OptionHead { option: field(8), data_bytes: field(12) })
}

/// One option of the client. Names may be any bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionRequest<'a> {
    /// Use this export, and answer without saying why not.
    ExportName(&'a [u8]),
    /// Part as friends.
    Abort,
    /// Name all exports.
    List,
    /// Speak TLS from here on.
    StartTls,
    /// Tell about an export; with `go`, use it.
    Info {
        /// The export; an empty name means the only one.
        name: &'a [u8],
        /// The client wants to go on to requests.
        go: bool,
        /// What else it wants to be told.
        wants: Wants,
    },
    /// Answer reads in chunks.
    StructuredReply,
    /// Tell which contexts of an export there are; with `set`, select them.
    MetaContext {
        /// The export.
        name: &'a [u8],
        /// The client wants to use what matches.
        set: bool,
        /// What it asks for.
        queries: Queries<'a>,
    },
    /// Something that this server does not do.
    Unknown,
}

/// What a client wants to be told of an export, beside its size and flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wants {
    /// The name.
    pub name: bool,
    /// The sizes of requests.
    pub block_size: bool,
}

/// Which contexts the queries of one option match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Queries<'a> {
    count: u32,
    /// All there: each a length and so many bytes.
    bytes: &'a [u8],
}

impl<'a> Queries<'a> {
    /// The queries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &'a [u8]> {
        let mut rest = self.bytes;
        (0..self.count).map_while(move |_| {
            let (query, behind) = counted(rest)?;
            rest = behind;
            Some(query)
        })
    }
}

/// Reads an option whose data are all there. `None` is one whose data break its own rules.
pub fn option_request(option: u32, data: &[u8]) -> Option<OptionRequest<'_>> {
    let without_data = |haggle| data.is_empty().then_some(haggle);
    match option {
        option::EXPORT_NAME => Some(OptionRequest::ExportName(data)),
        option::ABORT => Some(OptionRequest::Abort),
        option::LIST => without_data(OptionRequest::List),
        option::STARTTLS => without_data(OptionRequest::StartTls),
        option::INFO => info(data, false),
        option::GO => info(data, true),
        option::STRUCTURED_REPLY => without_data(OptionRequest::StructuredReply),
        option::LIST_META_CONTEXT => meta_context(data, false),
        option::SET_META_CONTEXT => meta_context(data, true),
        _ => Some(OptionRequest::Unknown),
    }
}

/// 0 length of the name, 4 name, then the number of wants (16 bits) and the wants (16 bits each).
fn info(data: &[u8], go: bool) -> Option<OptionRequest<'_>> {
    let (name, rest) = counted(data)?;
    let (count, list) = rest.split_first_chunk()?;
    let count = usize::from(u16::from_be_bytes(*count));
    if list.len() != count * 2 {
        return None;
    }
    let mut wants = Wants::default();
    for want in list.as_chunks().0 {
        match u16::from_be_bytes(*want) {
            wire::info::NAME => wants.name = true,
            wire::info::BLOCK_SIZE => wants.block_size = true,
            _ => {}
        }
    }
    Some(OptionRequest::Info { name, go, wants })
}

/// 0 length of the name, 4 name, then the number of queries, and each with its length in front.
fn meta_context(data: &[u8], set: bool) -> Option<OptionRequest<'_>> {
    let (name, rest) = counted(data)?;
    let (count, bytes) = rest.split_first_chunk()?;
    let count = u32::from_be_bytes(*count);
    let mut behind = bytes;
    for _ in 0..count {
        behind = counted(behind)?.1;
    }
    let queries = Queries { count, bytes };
    behind.is_empty().then_some(OptionRequest::MetaContext { name, set, queries })
}

/// A string with its length in front, and what follows it.
fn counted(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (count, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_be_bytes(*count) as usize)
}

/// One request of the client, as it stands on the wire; whether it makes sense is not said yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// What to do.
    pub command: Command,
    /// How.
    pub flags: u16,
    /// Names the request in its reply.
    pub cookie: u64,
    /// Where. Means nothing in a flush.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u32,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Send bytes.
    Read,
    /// Take bytes, which follow the request.
    Write,
    /// Go away. Has no reply.
    Disconnect,
    /// Make durable what was acknowledged.
    Flush,
    /// Forget a range.
    Trim,
    /// A range will be wanted soon.
    Cache,
    /// Make a range zeros.
    WriteZeroes,
    /// Tell what a range holds.
    BlockStatus,
    /// Something that this server does not do.
    Unknown(u16),
}

impl Request {
    /// Bytes that follow the request: whatever becomes of it, they are no request.
    pub fn payload_bytes(&self) -> u32 {
        if self.command == Command::Write { self.bytes } else { 0 }
    }
}

/// 0 magic, 4 flags, 6 command, 8 cookie, 16 offset, 24 length.
pub fn request(bytes: &[u8; wire::REQUEST_BYTES]) -> Result<Request, Fault> {
    let magic = u32_at(bytes, 0).unwrap_or(0);
    if magic != wire::REQUEST_MAGIC {
        return Err(Fault::RequestMagic(magic));
    }
    Ok(Request {
        command: match u16::from_be_bytes([bytes[6], bytes[7]]) {
            command::READ => Command::Read,
            command::WRITE => Command::Write,
            command::DISC => Command::Disconnect,
            command::FLUSH => Command::Flush,
            command::TRIM => Command::Trim,
            command::CACHE => Command::Cache,
            command::WRITE_ZEROES => Command::WriteZeroes,
            command::BLOCK_STATUS => Command::BlockStatus,
            other => Command::Unknown(other),
        },
        flags: u16::from_be_bytes([bytes[4], bytes[5]]),
        cookie: u64_at(bytes, 8).unwrap_or(0),
        offset: u64_at(bytes, 16).unwrap_or(0),
        bytes: u32_at(bytes, 24).unwrap_or(0),
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(*bytes.get(at..)?.first_chunk()?))
}
