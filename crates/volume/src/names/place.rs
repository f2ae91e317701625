//! Where a name stands.
//!
//! Promise: the directory by its number, and the name as its bytes.
//! Never: says what stands there.

use holdfast_io::tree::NodeId;

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Place {
    pub(crate) parent: NodeId,
    pub(crate) name: Box<[u8]>,
}
