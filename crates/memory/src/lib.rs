//! Durable memory: what an acknowledged write rests in until the disk has it.
//!
//! Promise: a [`Region`] outlives what its [`Medium`] says it outlives, whoever dies while using
//! it and wherever; exactly one process serves it at a time; nothing half-written is ever visible.
//! Never: knows frames, logs, volumes or blocks. It keeps bytes and counts nothing but its marks.
//!
//! In the order in which it happens: [`medium`] names the memory, `backing` claims and maps it,
//! `superblock` says what is in it, [`Region`] is the claimed whole, `lock` lets one caller append,
//! `ring` hands out the bytes, `marks` and `bell` publish them, [`Roster`] keeps small records,
//! [`Observed`] looks on from outside. An [`Area`] is a region without marks and ring, whose bytes
//! its user arranges.
//!
//! Beside the regions, which no client can map, [`SessionMemory`] is what one client shares with
//! the server, and [`queue`] how it asks for work there. All unsafe code is in files `raw.rs`.

// The models in tests/ include the modules they check by path; a model's atomics have another size
// than the machine's, so nothing that lays them over mapped memory is built there.
#![cfg(not(model))]

mod area;
mod atomics;
mod backing;
mod bell;
mod boot;
mod control;
mod device;
mod error;
mod futex;
mod lock;
mod marks;
pub mod medium;
mod name;
mod observed;
mod orderings;
pub mod queue;
#[allow(unsafe_code)]
mod raw;
mod region;
mod ring;
mod roster;
mod session;
mod socket;
mod superblock;
#[cfg(test)]
mod tests;
mod turn;
mod words;

pub use area::{Area, AreaSpec};
pub use boot::boot_id;
pub use control::{MEMORY_DAMAGED, WORDS};
pub use error::{AttachError, CreateError};
pub use marks::Marks;
pub use medium::{Medium, MediumSurvival};
pub use observed::{ObserveError, Observed};
pub use region::{Region, RegionSpec};
pub use ring::{Guard, Pin};
pub use roster::{Roster, RosterFault, RosterFull};
pub use session::{
    BUFFER_BYTES_MAX, CreateSessionError, MapSessionError, OutOfBuffer, SessionMemory,
};
pub use socket::Piece;

/// The byte tables of a region, as FORMAT.md in this crate prints them and a test compares them.
pub const FORMAT: &str = include_str!("../FORMAT.md");

// Marks and words are shared as the machine's own integers, and the format says little endian.
const _: () = assert!(cfg!(target_endian = "little"));
const _: () = assert!(usize::BITS == 64); // region offsets are u64 and index memory
