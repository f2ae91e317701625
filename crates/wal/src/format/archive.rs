//! Records that are read where they lie, by rkyv.
//!
//! Promise: a view is checked before it is given out, bounds and values, and costs no allocation.
//! Never: accepts a type whose archived form needs more than 8 bytes of alignment.

use rkyv::api::high::{HighDeserializer, HighSerializer, HighValidator};
use rkyv::bytecheck::CheckBytes;
use rkyv::rancor::Error;
use rkyv::ser::allocator::ArenaHandle;
use rkyv::{Archive as Archived, Deserialize, Serialize};

use super::{Format, FormatError, ViewFormat};

/// What a record lies at a multiple of.
const ALIGN: usize = 8;

/// rkyv's format, for types that derive its `Archive`, `Serialize` and `Deserialize`. Any change of
/// such a type needs a new [`crate::Record::VERSION`].
#[derive(Clone, Copy, Debug)]
pub struct Archive;

impl<R> Format<R> for Archive
where
    R: Archived + for<'a> Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, Error>>,
    R::Archived: for<'a> CheckBytes<HighValidator<'a, Error>>
        + Deserialize<R, HighDeserializer<Error>>
        + 'static,
{
    const NAME: &'static str = "archive";

    fn encode(record: &R, into: &mut Vec<u8>) -> Result<(), FormatError> {
        const { assert!(align_of::<R::Archived>() <= ALIGN) };
        *into = rkyv::api::high::to_bytes_in::<_, Error>(record, std::mem::take(into))?;
        Ok(())
    }

    fn decode(bytes: &[u8]) -> Result<R, FormatError> {
        let view = <Self as ViewFormat<R>>::view(bytes)?;
        Ok(rkyv::deserialize::<R, Error>(view)?)
    }
}

impl<R> ViewFormat<R> for Archive
where
    R: Archived + for<'a> Serialize<HighSerializer<Vec<u8>, ArenaHandle<'a>, Error>>,
    R::Archived: for<'a> CheckBytes<HighValidator<'a, Error>>
        + Deserialize<R, HighDeserializer<Error>>
        + 'static,
{
    type View<'a> = &'a R::Archived;

    fn view(bytes: &[u8]) -> Result<&R::Archived, FormatError> {
        Ok(rkyv::access::<R::Archived, Error>(bytes)?)
    }
}
