//! Records as MessagePack: the compact format of the paper (section IV-C1).
//!
//! Promise: a struct is the array of its fields, in order, without their names.
//! Never: accepts bytes that go on behind the record.

use rmp_serde::decode::Error;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use super::{Format, FormatError};

/// MessagePack, for any serde type. Fields may be added at the end if they have a serde default;
/// any other change of the type needs a new [`crate::Record::VERSION`].
#[derive(Clone, Copy, Debug)]
pub struct MessagePack;

impl<R: Serialize + DeserializeOwned> Format<R> for MessagePack {
    const NAME: &'static str = "message-pack";

    fn encode(record: &R, into: &mut Vec<u8>) -> Result<(), FormatError> {
        Ok(record.serialize(&mut rmp_serde::Serializer::new(into))?)
    }

    fn decode(bytes: &[u8]) -> Result<R, FormatError> {
        let mut decoder = rmp_serde::Deserializer::from_read_ref(bytes);
        let record = R::deserialize(&mut decoder)?;
        // The decoder does not say where it is, only that nothing is left.
        match IgnoredAny::deserialize(&mut decoder) {
            Err(Error::InvalidMarkerRead(_)) => Ok(record),
            _ => Err("bytes follow the record".into()),
        }
    }
}
