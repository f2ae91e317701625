//! Where a disk has room and where it has none, for whoever copies it.
//!
//! Promise: what is called a hole reads as zeros.
//! Never: changes anything, or reads the home.

use holdfast_io::Extent;

use crate::node::Body;
use holdfast_io::tree::Seek;

/// What a file has at `offset`, and how far; nothing behind its end.
pub(crate) fn extent_in(body: &Body, offset: u64) -> Option<Extent> {
    let size_bytes = body.attributes.size_bytes;
    let next = |what| body.allocated.as_ref()?.seek(offset, what).filter(|at| *at < size_bytes);
    let is_hole = body.allocated.is_some() && next(Seek::Data) != Some(offset);
    let end = next(if is_hole { Seek::Data } else { Seek::Hole }).unwrap_or(size_bytes);
    (offset < size_bytes).then_some(Extent { end, is_hole })
}
