//! Fields of bodies and images: numbers, and bytes with their length before them.
//!
//! Promise: what was put is what is taken; anything else is `Unfit`.
//! Never: copies what it takes.

use holdfast_pages::{PageNumber, Unfit, varint};

/// Appends bytes, and their length before them.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    varint::put(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// Takes a number.
pub(crate) fn number(rest: &mut &[u8]) -> Result<u64, Unfit> {
    varint::take(rest).ok_or(Unfit("a number is damaged"))
}

/// Takes a number of bytes, or of things that have some.
pub(crate) fn size(rest: &mut &[u8]) -> Result<usize, Unfit> {
    usize::try_from(number(rest)?).map_err(|_| Unfit("a number is too large"))
}

/// Takes so many bytes.
pub(crate) fn cut<'a>(rest: &mut &'a [u8], length: usize) -> Result<&'a [u8], Unfit> {
    let (taken, behind) = rest.split_at_checked(length).ok_or(Unfit("it ends too early"))?;
    *rest = behind;
    Ok(taken)
}

/// Takes bytes that have their length before them.
pub(crate) fn bytes<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Unfit> {
    let length = size(rest)?;
    cut(rest, length)
}

/// Appends a fence that may be missing: 0 then, else its length and one, and its bytes.
pub(crate) fn put_fence(fence: Option<&[u8]>, out: &mut Vec<u8>) {
    varint::put(fence.map_or(0, |fence| fence.len() as u64 + 1), out);
    out.extend_from_slice(fence.unwrap_or(&[]));
}

/// Takes a fence that may be missing.
pub(crate) fn fence<'a>(rest: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Unfit> {
    size(rest)?.checked_sub(1).map(|length| cut(rest, length)).transpose()
}

/// Takes one byte.
pub(crate) fn byte(rest: &mut &[u8]) -> Result<u8, Unfit> {
    Ok(cut(rest, 1)?[0])
}

/// Takes the number of a page that there may be.
pub(crate) fn page(rest: &mut &[u8]) -> Result<PageNumber, Unfit> {
    match number(rest)? {
        0 => Err(Unfit("0 is never a page")),
        number => Ok(PageNumber(number)),
    }
}
