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
//! Where to look: `serve` passes on what a front end asks of a [`holdfast_io::tree::Tree`]. `read`
//! answers, `write` changes contents and attributes, `make`, `remove` and `rename` change names;
//! `space` says whether the home has room for it, and `shares` whose turn it is to have room in the
//! log. `block` is a disk to those above and the one file of a directory to those below. A change
//! is a `record` in a `frame`; where the log stands is the business of whoever opens the `volume`,
//! and `direct` opens both. Memory knows `names`, a `node` behind each, its `extents` in the log,
//! `cuts` of its home file, its `allocated` blocks, counted in the home's `room_unit`, and its
//! `recent` bytes. `clean` brings frames home: `plan` says what they amount to, `apply` does it.
//! `touched` has when that was. After a death `others` looks whether somebody else changed the
//! home, `replay` gives memory back, `roster` the numbers that the kernel knows, and `requests`
//! what it may ask for once more.

mod allocated;
mod block;
mod clean;
mod cuts;
mod direct;
mod error;
mod extents;
mod fitness;
mod forget;
mod frame;
mod kept;
mod links;
mod make;
mod names;
mod node;
mod others;
pub mod own;
mod paths;
mod read;
mod recent;
mod record;
mod remove;
mod rename;
mod replay;
mod requests;
mod room_unit;
mod roster;
mod serve;
mod settling;
mod shares;
mod space;
mod sparse;
#[cfg(test)]
mod tests;
mod touched;
mod tried;
mod volume;
pub mod words;
mod write;
mod writing;
mod xattr;

pub use block::{BlockVolume, ResizeError};
pub use clean::Cleaned;
pub use clean::aside::{PutAside, order_to_put_aside, put_aside, stuck_at};
pub use clean::error::{Act, CleanError};
pub use clean::room::keep_room_aside;
pub use direct::{DirectVolume, VolumeConfig};
pub use error::VolumeError;
pub use fitness::{namelessness, unfitness};
pub use others::{Left, Told, Unapplied, changed_by_others};
pub use record::RecordFault;
pub use touched::touching;
pub use volume::{Attached, Class, DirectoryVolume};
