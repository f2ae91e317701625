//! Values as bytes that are ordered as the values are, whether one by one or as tuples.
//!
//! Promise: what was put is what is taken; two tuples of the same kinds compare as their bytes do.
//! Never: writes the kind, which its table knows.

use crate::value::{Kind, Value};

/// Turns the order of two's complement into that of bytes.
const SIGN: u64 = 1 << 63;
/// A zero byte of a value is this and [`ESCAPED`].
const ZERO: u8 = 0;
/// Above every [`END`], so that what goes on is behind what ends.
const ESCAPED: u8 = 0xFF;
/// What follows a zero byte at the end of bytes.
const END: u8 = 0;

/// Appends a value.
pub(crate) fn put(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::U64(number) => out.extend_from_slice(&number.to_be_bytes()),
        Value::I64(number) => {
            out.extend_from_slice(&(number.cast_unsigned() ^ SIGN).to_be_bytes());
        }
        Value::Bytes(bytes) => put_bytes(bytes, out),
    }
}

/// Appends values.
pub(crate) fn put_all<'v>(values: impl IntoIterator<Item = &'v Value>, out: &mut Vec<u8>) {
    values.into_iter().for_each(|value| put(value, out));
}

/// Takes a value of this kind. None if the bytes are not what one is written as.
pub(crate) fn take(kind: Kind, rest: &mut &[u8]) -> Option<Value> {
    if kind == Kind::Bytes {
        return take_bytes(rest).map(Value::Bytes);
    }
    let (number, behind) = rest.split_first_chunk()?;
    *rest = behind;
    let number = u64::from_be_bytes(*number);
    Some(match kind {
        Kind::I64 => Value::I64((number ^ SIGN).cast_signed()),
        _ => Value::U64(number),
    })
}

/// Takes values of these kinds, and appends them.
pub(crate) fn take_all(kinds: &[Kind], rest: &mut &[u8], into: &mut Vec<Value>) -> Option<()> {
    for kind in kinds {
        into.push(take(*kind, rest)?);
    }
    Some(())
}

/// The first bytes that are behind everything that begins with these. None if nothing is.
pub(crate) fn behind(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|byte| *byte != u8::MAX)?;
    let mut behind = prefix[..=last].to_vec();
    behind[last] += 1;
    Some(behind)
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    for byte in bytes {
        out.push(*byte);
        if *byte == ZERO {
            out.push(ESCAPED);
        }
    }
    out.extend_from_slice(&[ZERO, END]);
}

fn take_bytes(rest: &mut &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    loop {
        let zero = rest.iter().position(|byte| *byte == ZERO)?;
        bytes.extend_from_slice(&rest[..zero]);
        let after = *rest.get(zero + 1)?;
        *rest = &rest[zero + 2..];
        match after {
            END => return Some(bytes),
            ESCAPED => bytes.push(ZERO),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests;
