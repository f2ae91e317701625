//! Records as JSON: the readable format of the paper (section IV-C1), with checks.
//!
//! Promise: an object with the names of its fields, which any tool reads.
//! Never: accepts bytes that go on behind the record.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Format, FormatError};

/// JSON, for any serde type that has one. Twice the bytes of MessagePack and more.
#[derive(Clone, Copy, Debug)]
pub struct Json;

impl<R: Serialize + DeserializeOwned> Format<R> for Json {
    const NAME: &'static str = "json";

    fn encode(record: &R, into: &mut Vec<u8>) -> Result<(), FormatError> {
        Ok(serde_json::to_writer(into, record)?)
    }

    fn decode(bytes: &[u8]) -> Result<R, FormatError> {
        // Once for all: of a slice the decoder looks at every string and name by itself.
        Ok(serde_json::from_str(std::str::from_utf8(bytes)?)?)
    }
}
