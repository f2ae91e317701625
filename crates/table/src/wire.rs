//! Numbers, bytes and values as requests and answers have them.
//!
//! Promise: what was put is what is taken; anything else is [`Malformed`]. A count is believed only
//! as far as there are bytes for it.
//! Never: knows an operation.

use std::fmt;

use crate::schema::NAME_BYTES_MAX;
use crate::value::{Kind, Value};

/// What is wrong with bytes that are no request or no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(pub(crate) &'static str);

impl fmt::Display for Malformed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}

/// What is left of the bytes.
pub(crate) type Rest<'r, 'b> = &'r mut &'b [u8];

pub(crate) fn put_count(count: usize, out: &mut Vec<u8>) {
    let count = u32::try_from(count).expect("no memory of ours has 2^32 of anything in a request");
    out.extend_from_slice(&count.to_le_bytes());
}

/// Appends bytes, and their length before them.
pub(crate) fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_count(bytes.len(), out);
    out.extend_from_slice(bytes);
}

pub(crate) fn put_value(value: &Value, out: &mut Vec<u8>) {
    out.push(value.kind().number());
    match value {
        Value::U64(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::I64(number) => out.extend_from_slice(&number.to_le_bytes()),
        Value::Bytes(bytes) => put_bytes(bytes, out),
    }
}

/// Appends values, and their number before them.
pub(crate) fn put_row(row: &[Value], out: &mut Vec<u8>) {
    put_count(row.len(), out);
    row.iter().for_each(|value| put_value(value, out));
}

fn fixed<const N: usize>(rest: Rest<'_, '_>) -> Result<[u8; N], Malformed> {
    let (taken, behind) = rest.split_first_chunk().ok_or(Malformed("it ends too early"))?;
    *rest = behind;
    Ok(*taken)
}

pub(crate) fn byte(rest: Rest<'_, '_>) -> Result<u8, Malformed> {
    Ok(fixed::<1>(rest)?[0])
}

/// Takes a byte that is 0 or 1.
pub(crate) fn flag(rest: Rest<'_, '_>) -> Result<bool, Malformed> {
    match byte(rest)? {
        0 => Ok(false),
        1 => Ok(true),
        _ => Err(Malformed("a flag is neither 0 nor 1")),
    }
}

pub(crate) fn u32(rest: Rest<'_, '_>) -> Result<u32, Malformed> {
    Ok(u32::from_le_bytes(fixed(rest)?))
}

/// Takes a number of bytes, or of things.
pub(crate) fn count(rest: Rest<'_, '_>) -> Result<usize, Malformed> {
    usize::try_from(u32(rest)?).map_err(|_| Malformed("a number is too large"))
}

pub(crate) fn i64(rest: Rest<'_, '_>) -> Result<i64, Malformed> {
    Ok(i64::from_le_bytes(fixed(rest)?))
}

pub(crate) fn bytes<'b>(rest: Rest<'_, 'b>) -> Result<&'b [u8], Malformed> {
    let length = count(rest)?;
    let (taken, behind) = rest.split_at_checked(length).ok_or(Malformed("it ends too early"))?;
    *rest = behind;
    Ok(taken)
}

/// Takes the name of a table.
pub(crate) fn name(rest: Rest<'_, '_>) -> Result<String, Malformed> {
    let name = bytes(rest)?;
    let is_short = (1..=NAME_BYTES_MAX).contains(&name.len());
    let name = std::str::from_utf8(name).ok().filter(|_| is_short);
    name.map(str::to_owned).ok_or(Malformed("a name is no text of 1 to 64 bytes"))
}

pub(crate) fn kind(rest: Rest<'_, '_>) -> Result<Kind, Malformed> {
    Kind::of_number(byte(rest)?).ok_or(Malformed("there is no such kind of value"))
}

pub(crate) fn value(rest: Rest<'_, '_>) -> Result<Value, Malformed> {
    Ok(match kind(rest)? {
        Kind::U64 => Value::U64(u64::from_le_bytes(fixed(rest)?)),
        Kind::I64 => Value::I64(i64(rest)?),
        Kind::Bytes => Value::Bytes(bytes(rest)?.to_vec()),
    })
}

pub(crate) fn row(rest: Rest<'_, '_>) -> Result<Vec<Value>, Malformed> {
    many(rest, value)
}

/// Takes things that have their number before them. There are no more of them than bytes.
pub(crate) fn many<'b, T>(
    rest: Rest<'_, 'b>,
    mut take: impl FnMut(Rest<'_, 'b>) -> Result<T, Malformed>,
) -> Result<Vec<T>, Malformed> {
    let count = count(rest)?;
    if count > rest.len() {
        return Err(Malformed("it ends too early"));
    }
    (0..count).map(|_| take(rest)).collect()
}

/// Nothing may be left.
pub(crate) fn end(rest: &[u8]) -> Result<(), Malformed> {
    if rest.is_empty() { Ok(()) } else { Err(Malformed("something follows the end")) }
}
