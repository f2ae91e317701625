//! Replies as bytes for the client.
//!
//! Promise: what is put has exactly the length its head claims.
//! Never: knows a disk or a socket.
//!
//! Layouts are offsets from the start of the structure; every number is big-endian.

#[cfg(test)]
mod tests;

use super::buffers::Replies;
use super::wire::{self, chunk, handshake, info, option_reply};

/// Longest text that goes with an error; the protocol allows 4096 bytes.
const TEXT_BYTES_MAX: usize = 256;

/// What the server says first: 0 magic, 8 magic of options, 16 flags.
pub(crate) fn greeting(out: &mut Replies) {
    out.put(&wire::GREETING_MAGIC.to_be_bytes());
    out.put(&wire::OPTION_MAGIC.to_be_bytes());
    out.put(&(handshake::FIXED_NEWSTYLE | handshake::NO_ZEROES).to_be_bytes());
}

/// 0 magic, 8 the option, 12 kind, 16 length of the data, 20 data.
fn option_reply(out: &mut Replies, option: u32, kind: u32, data: &[&[u8]]) {
    let bytes: usize = data.iter().map(|part| part.len()).sum();
    out.put(&wire::OPTION_REPLY_MAGIC.to_be_bytes());
    out.put(&option.to_be_bytes());
    out.put(&kind.to_be_bytes());
    out.put(&(bytes as u32).to_be_bytes());
    data.iter().for_each(|part| out.put(part));
}

/// The option was taken, and this was all about it.
pub(crate) fn acknowledge(out: &mut Replies, option: u32) {
    option_reply(out, option, option_reply::ACK, &[]);
}

/// The option was not taken; `text` says why to a human.
pub(crate) fn refuse_option(out: &mut Replies, option: u32, kind: u32, text: &str) {
    option_reply(out, option, kind, &[text.as_bytes()]);
}

/// One export of a list: 0 length of the name, 4 name.
pub(crate) fn listed(out: &mut Replies, option: u32, name: &str) {
    let bytes = (name.len() as u32).to_be_bytes();
    option_reply(out, option, option_reply::SERVER, &[&bytes, name.as_bytes()]);
}

/// 0 kind of information, 2 size of the export, 10 its flags.
pub(crate) fn info_export(out: &mut Replies, option: u32, size_bytes: u64, flags: u16) {
    let parts: [&[u8]; 3] =
        [&info::EXPORT.to_be_bytes(), &size_bytes.to_be_bytes(), &flags.to_be_bytes()];
    option_reply(out, option, option_reply::INFO, &parts);
}

/// 0 kind of information, 2 name.
pub(crate) fn info_name(out: &mut Replies, option: u32, name: &str) {
    let parts: [&[u8]; 2] = [&info::NAME.to_be_bytes(), name.as_bytes()];
    option_reply(out, option, option_reply::INFO, &parts);
}

/// 0 kind of information, 2 least, 6 best and 10 most bytes of a request.
pub(crate) fn info_block_size(out: &mut Replies, option: u32) {
    let parts: [&[u8]; 4] = [
        &info::BLOCK_SIZE.to_be_bytes(),
        &wire::BLOCK_BYTES_MIN.to_be_bytes(),
        &wire::BLOCK_BYTES_PREFERRED.to_be_bytes(),
        &wire::PAYLOAD_BYTES_MAX.to_be_bytes(),
    ];
    option_reply(out, option, option_reply::INFO, &parts);
}

/// 0 number of the context, 4 its name.
pub(crate) fn context(out: &mut Replies, option: u32, number: u32) {
    let parts: [&[u8]; 2] = [&number.to_be_bytes(), wire::ALLOCATION];
    option_reply(out, option, option_reply::META_CONTEXT, &parts);
}

/// The answer to EXPORT_NAME: 0 size, 8 flags, 10 zeros.
pub(crate) fn export(out: &mut Replies, size_bytes: u64, flags: u16, no_zeroes: bool) {
    out.put(&size_bytes.to_be_bytes());
    out.put(&flags.to_be_bytes());
    if !no_zeroes {
        out.put(&[0; wire::EXPORT_NAME_PADDING_BYTES]);
    }
}

/// Success without data, or with data that follow where replies have no structure:
/// 0 magic, 4 error, 8 cookie.
pub(crate) fn simple(out: &mut Replies, cookie: u64, error: u32) {
    let head = out.add(16);
    head[..4].copy_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
    head[4..8].copy_from_slice(&error.to_be_bytes());
    head[8..].copy_from_slice(&cookie.to_be_bytes());
}

/// 0 magic, 4 flags, 6 kind, 8 cookie, 16 length of what follows.
fn chunk_head(out: &mut Replies, cookie: u64, flags: u16, kind: u16, bytes: u32) {
    let head = out.add(20);
    head[..4].copy_from_slice(&wire::CHUNK_MAGIC.to_be_bytes());
    head[4..6].copy_from_slice(&flags.to_be_bytes());
    head[6..8].copy_from_slice(&kind.to_be_bytes());
    head[8..16].copy_from_slice(&cookie.to_be_bytes());
    head[16..].copy_from_slice(&bytes.to_be_bytes());
}

/// The head of a chunk of data, which follow: the offset, then the data.
pub(crate) fn data_head(out: &mut Replies, cookie: u64, offset: u64, bytes: u32, is_last: bool) {
    let flags = if is_last { wire::CHUNK_DONE } else { 0 };
    chunk_head(out, cookie, flags, chunk::OFFSET_DATA, bytes + 8);
    out.put(&offset.to_be_bytes());
}

/// All chunks were sent, and they are right.
pub(crate) fn data_end(out: &mut Replies, cookie: u64) {
    chunk_head(out, cookie, wire::CHUNK_DONE, chunk::NONE, 0);
}

/// What a request failed of: 0 error, 4 length of the text, 6 text.
pub(crate) fn error(out: &mut Replies, cookie: u64, error: u32, text: &str) {
    let text = &text.as_bytes()[..text.len().min(TEXT_BYTES_MAX)];
    chunk_head(out, cookie, wire::CHUNK_DONE, chunk::ERROR, 6 + text.len() as u32);
    out.put(&error.to_be_bytes());
    out.put(&(text.len() as u16).to_be_bytes());
    out.put(text);
}

/// A chunk of data that was sent is wrong from `offset` on: 0 error, 4 no text, 6 offset.
pub(crate) fn error_at(out: &mut Replies, cookie: u64, error: u32, offset: u64) {
    chunk_head(out, cookie, wire::CHUNK_DONE, chunk::ERROR_OFFSET, 14);
    out.put(&error.to_be_bytes());
    out.put(&0_u16.to_be_bytes());
    out.put(&offset.to_be_bytes());
}

/// Stretches that follow each other, by length and flags: 0 number of the context, then for each 0
/// length, 4 flags.
pub(crate) fn block_status(out: &mut Replies, cookie: u64, stretches: &[(u32, u32)]) {
    let bytes = 4 + 8 * stretches.len() as u32;
    chunk_head(out, cookie, wire::CHUNK_DONE, chunk::BLOCK_STATUS, bytes);
    out.put(&wire::ALLOCATION_ID.to_be_bytes());
    for (bytes, flags) in stretches {
        out.put(&bytes.to_be_bytes());
        out.put(&flags.to_be_bytes());
    }
}
