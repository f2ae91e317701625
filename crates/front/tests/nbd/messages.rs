//! What a client sends, byte by byte. Numbers are written out here a second time, on purpose.

pub(crate) const EXPORT_NAME: u32 = 1;
pub(crate) const ABORT: u32 = 2;
pub(crate) const LIST: u32 = 3;
pub(crate) const STARTTLS: u32 = 5;
pub(crate) const INFO: u32 = 6;
pub(crate) const GO: u32 = 7;
pub(crate) const STRUCTURED_REPLY: u32 = 8;
pub(crate) const LIST_CONTEXTS: u32 = 9;
pub(crate) const SET_CONTEXTS: u32 = 10;

pub(crate) const READ: u16 = 0;
pub(crate) const WRITE: u16 = 1;
pub(crate) const DISCONNECT: u16 = 2;
pub(crate) const FLUSH: u16 = 3;
pub(crate) const TRIM: u16 = 4;
pub(crate) const CACHE: u16 = 5;
pub(crate) const WRITE_ZEROES: u16 = 6;
pub(crate) const BLOCK_STATUS: u16 = 7;

pub(crate) const FUA: u16 = 1;
pub(crate) const NO_HOLE: u16 = 2;
pub(crate) const DF: u16 = 4;
pub(crate) const REQ_ONE: u16 = 8;
pub(crate) const FAST_ZERO: u16 = 16;

/// The client's flags: fixed newstyle, no zeros.
pub(crate) fn hello() -> Vec<u8> {
    vec![0, 0, 0, 3]
}

pub(crate) fn option(option: u32, data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u32).to_be_bytes();
    [b"IHAVEOPT", option.to_be_bytes().as_slice(), &length, data].concat()
}

/// The data of INFO and GO.
pub(crate) fn info(name: &[u8], wants: &[u16]) -> Vec<u8> {
    let mut data = counted(name);
    data.extend((wants.len() as u16).to_be_bytes());
    data.extend(wants.iter().flat_map(|want| want.to_be_bytes()));
    data
}

/// The data of both options about contexts.
pub(crate) fn contexts(name: &[u8], queries: &[&[u8]]) -> Vec<u8> {
    let mut data = counted(name);
    data.extend((queries.len() as u32).to_be_bytes());
    data.extend(queries.iter().flat_map(|query| counted(query)));
    data
}

pub(crate) fn counted(bytes: &[u8]) -> Vec<u8> {
    [&(bytes.len() as u32).to_be_bytes(), bytes].concat()
}

pub(crate) fn request(command: u16, flags: u16, cookie: u64, offset: u64, bytes: u32) -> Vec<u8> {
    let mut message = vec![0x25, 0x60, 0x95, 0x13];
    message.extend(flags.to_be_bytes());
    message.extend(command.to_be_bytes());
    message.extend(cookie.to_be_bytes());
    message.extend(offset.to_be_bytes());
    message.extend(bytes.to_be_bytes());
    message
}

/// All that comes before the first request: with `structured`, the context is selected, too.
pub(crate) fn opening(name: &[u8], structured: bool) -> Vec<u8> {
    [hello(), choice(name, structured)].concat()
}

/// The same where TLS is needed: what follows the second message is said in secret.
pub(crate) fn opening_by_tls(name: &[u8], structured: bool) -> Vec<u8> {
    [hello(), option(STARTTLS, b""), choice(name, structured)].concat()
}

/// What chooses an export, once the client's flags are said.
pub(crate) fn choice(name: &[u8], structured: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    if structured {
        bytes.extend(option(STRUCTURED_REPLY, b""));
        bytes.extend(option(SET_CONTEXTS, &contexts(name, &[b"base:allocation"])));
    }
    bytes.extend(option(GO, &info(name, &[3])));
    bytes
}
