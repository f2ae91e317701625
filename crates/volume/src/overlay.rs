//! What of a file stands in the log and not at home yet.
//!
//! Promise: what is read through it is what was written last, wherever that stands.
//! Never: asks the log or the home itself.

pub(crate) mod allocated;
pub(crate) mod cuts;
pub(crate) mod extents;
pub(crate) mod kept;
pub(crate) mod recent;
pub(crate) mod sparse;
pub(crate) mod writing;
