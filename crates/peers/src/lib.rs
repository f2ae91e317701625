//! What others may hold of a process, and have it do, from their first byte until it is free again.
//!
//! Promise: everything that a peer can make a process hold or write has a bound, for that peer and
//! for all; what is held is counted by a guard that its holder owns, so giving it back cannot be
//! forgotten; whoever has not said yet what he wants never pushes out one who has.
//! Never: reads a clock, or opens a socket. What it counts is the caller's.
//!
//! Where to look: `peer` says who somebody is, `places` what he may hold, `lobby` how long and in
//! whose company he may hesitate, `connection` how he is heard and left, `complaints` how much of
//! him the log hears, `in_hand` what was taken from anybody and is not answered yet.

mod complaints;
mod connection;
pub mod in_hand;
mod lobby;
mod peer;
mod places;

pub use complaints::{Complaints, LINES_OF_PEER, Lines, PEERS_MAX, SPAN};
pub use connection::{Connection, refuse_descriptors};
pub use lobby::{Lobby, LobbyLimits, Ticket};
pub use peer::Peer;
pub use places::{Place, Places};
