//! What stands for LZ4 in a program that was built without it.
//!
//! Promise: a compressed set is told from a damaged one.
//! Never: compresses.

use super::{Compression, UnpackFault};
use crate::aligned::Aligned;

/// Every set stays as it is.
pub(crate) fn with_packed<T>(
    how: Compression,
    _: &[u8],
    then: impl FnOnce(Option<&[u8]>) -> T,
) -> T {
    match how {
        Compression::None => then(None),
    }
}

/// Refuses every set.
pub(crate) fn unpack(_: &[u8], _: u64, _: &mut Aligned) -> Result<(), UnpackFault> {
    Err(UnpackFault::Absent)
}
