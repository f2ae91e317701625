//! A directory, a file or a block device kept by a log.
//!
//! A volume is a *home*, an ordinary directory, and a log before it. A change becomes one frame of
//! the log; it is acknowledged when the frame is stable, seen at once through an overlay of the
//! frames that the home does not have yet, and applied to the home only after the device has the
//! frame. The home is never ahead of the durable log, so after any failure home plus log is a
//! prefix of what was acknowledged.
//!
//! ```text
//!  front end --> Tree --> write, rename --> log (ring --> device)
//!                 |                           |
//!                 +--> read <-- overlay <-----+ frames
//!                        ^                    |
//!                        +------- home <-- clean (plan, apply)
//! ```
//!
//! A block volume is such a directory with one file in it, and a disk to its users.
//!
//! Promise: what is acknowledged is stable; what is in the home is durable in the log first.
//! Never: speaks a protocol, or starts a thread.
//!
//! Where to look: a change is a `record` in a `frame`; where the log stands is the business of
//! whoever opens the `volume`, and `direct` opens both. `block` is a disk to those above and the
//! one file of a directory to those below. `shares` says whose turn it is to have room in the log.
//! After a death `replay` gives memory back. Then there are rooms:
//!
//! * `changes`: what a front end asks of a [`holdfast_io::tree::Tree`], which `serve` passes on:
//!   `read` answers, `write` changes contents and attributes, `xattr` what is beside them, `make`,
//!   `remove` and `rename` change names.
//! * `names`: which stand for which `node`; `roster` has the numbers that the kernel knows,
//!   `requests` what it may ask for once more, `links` whether a file can have several names.
//! * `overlay`: what of a file is not at home: its `extents` in the log, `cuts` of its home file,
//!   its `allocated` blocks, and its `recent` bytes.
//! * `home`: whether a directory has the `fitness` to be one, `space` for what is acknowledged, in
//!   its `room_unit`; when it was `touched`, and what `others` did to it.
//! * `clean`: brings frames home: `plan` says what they amount to, `apply` does it.

mod block;
mod changes;
mod clean;
mod direct;
mod error;
mod frame;
mod home;
mod names;
mod node;
mod overlay;
pub mod own;
mod record;
mod replay;
mod shares;
#[cfg(test)]
mod tests;
mod volume;
pub mod words;

pub use block::{BlockVolume, ResizeError};
pub use clean::Cleaned;
pub use clean::aside::{PutAside, order_to_put_aside, put_aside, stuck_at};
pub use clean::error::{Act, CleanError};
pub use clean::room::keep_room_aside;
pub use direct::{DirectVolume, VolumeConfig};
pub use error::VolumeError;
pub use home::fitness::{namelessness, unfitness};
pub use home::others::{Left, Told, Unapplied, changed_by_others};
pub use home::touched::touching;
pub use record::RecordFault;
pub use volume::{Attached, Class, DirectoryVolume, Lease};
