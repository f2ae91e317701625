//! What passes between client and server: a hello, a reply, then requests in a queue.
//!
//! A client connects to the server's socket and sends a [`Hello`]. The [`Reply`] brings, if it is
//! good, the descriptor of the session's memory: a queue page, then buffers of equal size. From
//! then on the socket carries nothing but [`LEAVING`]; its end tells each side of the other's. All
//! integers are little endian. The first eight bytes of hello and reply, and what the reply says
//! there and in its status, are the same in every version.
//!
//! Promise: any bytes at all are parsed into a value or a fault.
//! Never: trusts a length, a name or a number that it has not looked at.

use std::fmt;

/// The one version of this protocol.
pub const VERSION: u32 = 1;
/// First field of hello and reply: "HFC1".
pub const MAGIC: u32 = 0x3143_4648;
/// Bytes of a hello.
pub const HELLO_BYTES: usize = 104;
/// Bytes of a reply.
pub const REPLY_BYTES: usize = 72;
/// The last byte of a client that has all its answers and will not connect again.
pub const LEAVING: u8 = b'L';
/// Longest full name of a service.
pub const NAME_BYTES_MAX: usize = 64;
/// What precedes the name of a log in the full name of its service.
pub const LOG_PREFIX: &str = "log/";
/// What precedes the name of a volume in the full name of the service that is its log.
pub const VOLUME_PREFIX: &str = "volume/";
/// What precedes the name of a disk in the full name of its service.
pub const DISK_PREFIX: &str = "disk/";
/// What precedes the name of tables in the full name of their service.
pub const TABLE_PREFIX: &str = "table/";
/// What precedes the name of snapshots in the full name of their service.
pub const SNAPSHOT_PREFIX: &str = "snapshot/";
/// How far a sequence number may be above the oldest one whose answer its client has not seen.
pub const WINDOW: u64 = 1024;
/// Most bytes of one payload; a log with small segments takes less.
pub const PAYLOAD_BYTES_MAX: u64 = (1 << 20) + (64 << 10);
/// Most bytes that one request reads from a disk or writes to it; a disk that writes less at once
/// takes less.
pub const TRANSFER_BYTES_MAX: u64 = 1 << 20;
/// Most bytes of a disk that one request makes zeros.
pub const ZEROES_BYTES_MAX: u64 = 256 << 20;
/// Room in a buffer beside a largest payload: what describes a frame that is read back.
pub const BUFFER_ROOM_BYTES: u64 = 4096;

const NAME_AT: usize = 40;
const _: () = assert!(NAME_AT + NAME_BYTES_MAX == HELLO_BYTES);

/// Who a session belongs to: drawn at random by each client, kept across reconnects. A log puts the
/// number of the client's user in the place of the last four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientId(pub [u8; 16]);

/// The first and only thing that a client sends over the socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// The protocol that the client speaks.
    pub version: u32,
    /// Who it is.
    pub client: ClientId,
    /// The oldest sequence number it still wants an answer to; 0 if it never had a session.
    pub oldest: u64,
    /// The service it wants, by its full name.
    pub service: String,
}

/// What the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The protocol that the server speaks.
    pub version: u32,
    /// [`Status::Done`], or why there is no session. The rest counts for `Done` alone.
    pub status: Status,
    /// What requests to the service carry.
    pub handle: u32,
    /// And the value that proves they mean it.
    pub check: u32,
    /// How many buffers follow the queue page.
    pub buffers: u32,
    /// How many bytes each has.
    pub buffer_bytes: u32,
    /// How many clients the service takes at a time, this one among them.
    pub clients_max: u32,
    /// The longest payload of one request.
    pub payload_bytes_max: u64,
    /// The highest sequence number that the server knows of this client; 0 for none.
    pub last_sequence: u64,
    /// Of a log its marks: released, durable, tail. Of a disk its bytes, and the most bytes of one
    /// write that are there wholly or not at all.
    pub facts: [u64; 3],
}

/// What is wrong with a hello or a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HelloFault {
    /// Fewer bytes than a version has to have.
    Short,
    /// It begins as something else does.
    Magic,
    /// Another version of the protocol.
    Version {
        /// Which.
        found: u32,
    },
    /// The name's length or its bytes cannot be.
    Name,
    /// A status that this version does not know.
    Status {
        /// Which.
        found: u32,
    },
}

/// How a request or a hello went. Numbers are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
#[non_exhaustive]
pub enum Status {
    /// As asked.
    Done = 0,
    /// No room in the ring, or too much is dirty: wait for room, then try again.
    Full = 1,
    /// The payload is longer than one frame of this log takes.
    TooLarge = 2,
    /// A write or sync of the log failed for good; the value is its error number.
    Poisoned = 3,
    /// No segment could be made, most often for want of space; the value is the error number.
    Unprepared = 4,
    /// Not the handle of this session's service, or not its check value.
    BadHandle = 5,
    /// No such operation.
    BadOperation = 6,
    /// Not a buffer of this session, longer than one, or used twice at a time.
    BadBuffer = 7,
    /// A position that the ring does not have, or that is no boundary of frames.
    BadPosition = 8,
    /// A sequence number outside the client's window.
    BadSequence = 9,
    /// A word that is not the reader's.
    BadWord = 10,
    /// The notes have no room for it.
    NotesFull = 11,
    /// A note is damaged; the value is where.
    NotesDamaged = 12,
    /// This user may not use this service.
    NotAllowed = 13,
    /// The service, or the server, has as many clients as it takes.
    TooManyClients = 14,
    /// No service has this name.
    NoService = 15,
    /// The other side speaks another version of the protocol.
    OtherVersion = 16,
    /// The hello cannot be read.
    BadHello = 17,
    /// A session of this client is still open. It ends soon, or somebody else claims to be it.
    InUse = 18,
    /// The server no longer knows what came of this client's last requests.
    Forgotten = 19,
    /// The server could not make the session's memory; the value is the error number.
    NoMemory = 20,
    /// The range ends behind the disk's last byte.
    OutOfRange = 21,
    /// What keeps the disk has no space left.
    NoSpace = 22,
    /// What keeps the service's state failed; the value is the error number.
    Failed = 23,
    /// The bytes are no request of this service.
    Malformed = 24,
    /// Memory has damaged a frame that the log's disk does not have whole; the value is its
    /// position.
    Damaged = 25,
}

/// What a request asks of a service: up to [`Operation::ReplaceNotes`] and [`Operation::Verify`] of
/// a log, then of a disk, [`Operation::Respond`] of a responder. Positions and sizes are in the
/// request's two arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Operation {
    /// Append the buffer; `argument[0]` is the oldest unanswered sequence number. Answers position
    /// and end, and in `bytes` how far the payload lies behind the position.
    Append = 1,
    /// Answer when everything below `argument[0]` is durable.
    Commit = 2,
    /// Answer when a payload of `argument[0]` bytes has room; that the log is full, if there is
    /// none after `argument[1]` milliseconds. 0 are for ever.
    Room = 3,
    /// Put released, durable and tail into the buffer.
    Marks = 4,
    /// Put frames of `[argument[0], argument[1])` into the buffer; answers where it stopped.
    Read = 5,
    /// Put `bytes` bytes from position `argument[0]` into the buffer.
    Copy = 6,
    /// Log that the reader is done below `argument[0]`.
    Mark = 7,
    /// Give the ring below `argument[0]` back.
    Release = 8,
    /// Answer the reader's word `argument[0]`.
    Word = 9,
    /// Set the reader's word `argument[0]` to `argument[1]`.
    SetWord = 10,
    /// Add to it.
    AddToWord = 11,
    /// Raise it.
    RaiseWord = 12,
    /// Add the buffer to the notes.
    Note = 13,
    /// Put notes into the buffer, from number `argument[0]` on; answers how many.
    Notes = 14,
    /// Collect the notes in the buffer for a replacement, after dropping `argument[0] == 0` what
    /// was collected before.
    CollectNotes = 15,
    /// Replace all notes by what was collected.
    ReplaceNotes = 16,
    /// Put `bytes` bytes of the disk from byte `argument[0]` on into the buffer.
    ReadBlocks = 17,
    /// Write the buffer to the disk from byte `argument[0]` on.
    WriteBlocks = 18,
    /// Make `argument[1]` bytes from byte `argument[0]` on zeros; their space stays reserved.
    WriteZeroes = 19,
    /// The same, and give their space back where that is possible.
    Discard = 20,
    /// Answer when everything acknowledged is as durable as the disk promises.
    Flush = 21,
    /// Do the request in the buffer once, and put the answer into the buffer; `argument[0]` is the
    /// oldest unanswered sequence number.
    Respond = 22,
    /// Check every frame of `[argument[0], argument[1])` of a log; answers in how many frames
    /// memory has been found damaged.
    Verify = 23,
}

impl Operation {
    const ALL: [Operation; 23] = [
        Operation::Append,
        Operation::Commit,
        Operation::Room,
        Operation::Marks,
        Operation::Read,
        Operation::Copy,
        Operation::Mark,
        Operation::Release,
        Operation::Word,
        Operation::SetWord,
        Operation::AddToWord,
        Operation::RaiseWord,
        Operation::Note,
        Operation::Notes,
        Operation::CollectNotes,
        Operation::ReplaceNotes,
        Operation::ReadBlocks,
        Operation::WriteBlocks,
        Operation::WriteZeroes,
        Operation::Discard,
        Operation::Flush,
        Operation::Respond,
        Operation::Verify,
    ];

    /// The operation of this number.
    #[must_use]
    pub fn from_number(number: u16) -> Option<Operation> {
        Operation::ALL.into_iter().find(|operation| *operation as u16 == number)
    }
}

impl Status {
    const ALL: [Status; 26] = [
        Status::Done,
        Status::Full,
        Status::TooLarge,
        Status::Poisoned,
        Status::Unprepared,
        Status::BadHandle,
        Status::BadOperation,
        Status::BadBuffer,
        Status::BadPosition,
        Status::BadSequence,
        Status::BadWord,
        Status::NotesFull,
        Status::NotesDamaged,
        Status::NotAllowed,
        Status::TooManyClients,
        Status::NoService,
        Status::OtherVersion,
        Status::BadHello,
        Status::InUse,
        Status::Forgotten,
        Status::NoMemory,
        Status::OutOfRange,
        Status::NoSpace,
        Status::Failed,
        Status::Malformed,
        Status::Damaged,
    ];

    /// The status of this number.
    #[must_use]
    pub fn from_number(number: u32) -> Option<Status> {
        Status::ALL.into_iter().find(|status| *status as u32 == number)
    }

    /// Whether only a client that does not keep to the protocol gets this answer.
    #[must_use]
    pub fn is_misuse(self) -> bool {
        matches!(
            self,
            Status::BadHandle
                | Status::BadOperation
                | Status::BadBuffer
                | Status::BadPosition
                | Status::BadSequence
                | Status::BadWord
                | Status::BadHello
                | Status::OutOfRange
                | Status::Malformed
        )
    }
}

impl Hello {
    /// As it goes over the socket. A name that is too long is cut, and then refused by the server.
    #[must_use]
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        let name = self.service.as_bytes();
        let name = &name[..name.len().min(NAME_BYTES_MAX)];
        put(&mut bytes, 0, &MAGIC.to_le_bytes());
        put(&mut bytes, 4, &self.version.to_le_bytes());
        put(&mut bytes, 8, &self.client.0);
        put(&mut bytes, 24, &self.oldest.to_le_bytes());
        put(&mut bytes, 32, &(name.len() as u32).to_le_bytes());
        put(&mut bytes, NAME_AT, name);
        bytes
    }

    /// Reads what came over the socket.
    ///
    /// # Errors
    /// See [`HelloFault`].
    pub fn parse(bytes: &[u8]) -> Result<Hello, HelloFault> {
        let version = parse_head(bytes)?;
        let bytes: &[u8; HELLO_BYTES] = bytes.first_chunk().ok_or(HelloFault::Short)?;
        let name_bytes = u32_at(bytes, 32) as usize;
        let name = bytes[NAME_AT..].get(..name_bytes).ok_or(HelloFault::Name)?;
        let service = std::str::from_utf8(name).map_err(|_| HelloFault::Name)?;
        if service.is_empty() || !service.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(HelloFault::Name);
        }
        let client = *bytes[8..].first_chunk().expect("a hello has these bytes");
        let (client, oldest) = (ClientId(client), u64_at(bytes, 24));
        Ok(Hello { version, client, oldest, service: service.to_owned() })
    }
}

impl Reply {
    /// A refusal.
    #[must_use]
    pub fn refusal(status: Status) -> Reply {
        Reply {
            version: VERSION,
            status,
            handle: 0,
            check: 0,
            buffers: 0,
            buffer_bytes: 0,
            clients_max: 0,
            payload_bytes_max: 0,
            last_sequence: 0,
            facts: [0; 3],
        }
    }

    /// As it goes over the socket.
    #[must_use]
    pub fn encode(&self) -> [u8; REPLY_BYTES] {
        let mut bytes = [0; REPLY_BYTES];
        let small = [MAGIC, self.version, self.status as u32, self.handle, self.check];
        let small = small.into_iter().chain([self.buffers, self.buffer_bytes, self.clients_max]);
        for (at, value) in small.enumerate() {
            put(&mut bytes, at * 4, &value.to_le_bytes());
        }
        let [first, second, third] = self.facts;
        let large = [self.payload_bytes_max, self.last_sequence, first, second, third];
        for (at, value) in large.into_iter().enumerate() {
            put(&mut bytes, 32 + at * 8, &value.to_le_bytes());
        }
        bytes
    }

    /// Reads what came over the socket.
    ///
    /// # Errors
    /// See [`HelloFault`].
    pub fn parse(bytes: &[u8]) -> Result<Reply, HelloFault> {
        let version = parse_head(bytes)?;
        let bytes: &[u8; REPLY_BYTES] = bytes.first_chunk().ok_or(HelloFault::Short)?;
        let found = u32_at(bytes, 8);
        Ok(Reply {
            version,
            status: Status::from_number(found).ok_or(HelloFault::Status { found })?,
            handle: u32_at(bytes, 12),
            check: u32_at(bytes, 16),
            buffers: u32_at(bytes, 20),
            buffer_bytes: u32_at(bytes, 24),
            clients_max: u32_at(bytes, 28),
            payload_bytes_max: u64_at(bytes, 32),
            last_sequence: u64_at(bytes, 40),
            facts: [u64_at(bytes, 48), u64_at(bytes, 56), u64_at(bytes, 64)],
        })
    }
}

/// Magic and version, which every version has in the same place.
fn parse_head(bytes: &[u8]) -> Result<u32, HelloFault> {
    let head: &[u8; 8] = bytes.first_chunk().ok_or(HelloFault::Short)?;
    if u32_at(head, 0) != MAGIC {
        return Err(HelloFault::Magic);
    }
    match u32_at(head, 4) {
        VERSION => Ok(VERSION),
        found => Err(HelloFault::Version { found }),
    }
}

fn put(bytes: &mut [u8], at: usize, what: &[u8]) {
    bytes[at..at + what.len()].copy_from_slice(what);
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(*bytes[at..].first_chunk().expect("the caller knows the length"))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(*bytes[at..].first_chunk().expect("the caller knows the length"))
}

impl fmt::Display for HelloFault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Short => out.write_str("it is too short"),
            Self::Magic => out.write_str("it does not begin as one does"),
            Self::Version { found } => write!(out, "its protocol is {found}, ours is {VERSION}"),
            Self::Name => out.write_str("its name of a service cannot be"),
            Self::Status { found } => write!(out, "its status {found} is not known"),
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Status::Done => "done",
            Status::Full => "the ring is full",
            Status::TooLarge => "the payload is too large",
            Status::Poisoned => "the log's disk failed",
            Status::Unprepared => "no segment could be made",
            Status::BadHandle => "wrong handle or check value",
            Status::BadOperation => "no such operation",
            Status::BadBuffer => "not a buffer of this session",
            Status::BadPosition => "the ring does not have that",
            Status::BadSequence => "a sequence number outside the window",
            Status::BadWord => "not a word of the reader",
            Status::NotesFull => "no room for more notes",
            Status::NotesDamaged => "a note is damaged",
            Status::NotAllowed => "this user may not use the service",
            Status::TooManyClients => "too many clients",
            Status::NoService => "no service has this name",
            Status::OtherVersion => "another version of the protocol",
            Status::BadHello => "the hello cannot be read",
            Status::InUse => "a session of this client is open",
            Status::Forgotten => "what came of the last requests is no longer known",
            Status::NoMemory => "no memory for a session",
            Status::OutOfRange => "the range ends behind the disk's last byte",
            Status::NoSpace => "no space is left for the disk",
            Status::Failed => "what keeps the service's state failed",
            Status::Malformed => "the bytes are no request of this service",
            Status::Damaged => "memory has damaged that, and the log's disk does not have it whole",
        })
    }
}

#[cfg(test)]
mod tests;
