//! The page file, brought to where the archive has got to.
//!
//! Promise: one writer; a page on the device is never ahead of the records that are stable.
//! Never: takes a page from whoever works with it.

pub(crate) mod cleaner;
pub(crate) mod order;
pub(crate) mod sweep;
