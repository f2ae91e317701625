//! Bodies of changes, one behind the other, as bytes and back.
//!
//! Byte table: FORMAT.md, "Bodies".
//!
//! Promise: what was put is found again, in its order; anything else is none.
//! Never: looks into a body.

use crate::varint;

/// Appends a body.
pub fn put(body: &[u8], out: &mut Vec<u8>) {
    varint::put(body.len() as u64, out);
    out.extend_from_slice(body);
}

/// The body at the front of `rest`, which goes on behind it; none if there is no such body.
#[must_use]
pub fn take<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(varint::take(rest)?).ok()?;
    let (body, behind) = rest.split_at_checked(length)?;
    *rest = behind;
    Some(body)
}

/// All of them; none if these bytes are not bodies.
#[must_use]
pub fn all(mut bytes: &[u8]) -> Option<Vec<&[u8]>> {
    let mut bodies = Vec::new();
    while !bytes.is_empty() {
        bodies.push(take(&mut bytes)?);
    }
    Some(bodies)
}

#[cfg(test)]
mod tests;
