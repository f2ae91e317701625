//! Whose an identity is.
//!
//! A client draws its identity itself, and a log shows it to all of its users, before each payload.
//! So it says nothing of who comes with it.
//!
//! Promise: clients of two users are two clients of a log, whatever they call themselves; one that
//! connects again as the same user is the same one, to the next server too.
//! Never: believes a client's word for whose it is.

use holdfast_client::protocol::ClientId;
use holdfast_peers::Peer;

/// In the place of a user's number where the kernel knows none: as it does itself.
const NO_USER: u32 = u32::MAX;

/// The client as a log knows it: the last four of the bytes that it drew are its user's number.
pub(crate) fn of_user(drawn: ClientId, peer: Peer) -> ClientId {
    let uid = match peer {
        Peer::User(uid) => uid,
        Peer::Address(_) | Peer::Network(_) | Peer::Unknown => NO_USER,
    };
    let ClientId(mut bytes) = drawn;
    *bytes.last_chunk_mut().expect("4 of 16 bytes") = uid.to_le_bytes();
    ClientId(bytes)
}
