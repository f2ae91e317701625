//! The directory that a volume keeps: what it can do, and what others did to it.
//!
//! Promise: what a home cannot keep is known before anything is acknowledged for it.
//! Never: changes what is in it but below the volume's own directory.

pub(crate) mod fitness;
pub(crate) mod others;
pub(crate) mod room_unit;
pub(crate) mod settling;
pub(crate) mod space;
pub(crate) mod touched;
pub(crate) mod tried;
