//! Records that are bytes.
//!
//! Promise: gives back the bytes it was given.
//! Never: fails.

use super::{Format, FormatError, ViewFormat};

/// The record is its bytes: for programs that encode by themselves.
#[derive(Clone, Copy, Debug)]
pub struct Raw;

impl<R: AsRef<[u8]> + From<Vec<u8>>> Format<R> for Raw {
    const NAME: &'static str = "raw";

    fn encode(record: &R, into: &mut Vec<u8>) -> Result<(), FormatError> {
        into.extend_from_slice(record.as_ref());
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<R, FormatError> {
        Ok(bytes.to_vec().into())
    }
}

impl<R: AsRef<[u8]> + From<Vec<u8>>> ViewFormat<R> for Raw {
    type View<'a> = &'a [u8];

    fn view(bytes: &[u8]) -> Result<&[u8], FormatError> {
        Ok(bytes)
    }
}
