//! How a record becomes bytes, and bytes a record.
//!
//! Promise: what a format decodes has passed the check of its frame, so a format need not look for
//! damage; it still refuses bytes that are no such record.
//! Never: sees more than one record at a time.

#[cfg(feature = "archive")]
mod archive;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "message-pack")]
mod message_pack;
mod raw;

#[cfg(feature = "archive")]
pub use archive::Archive;
#[cfg(feature = "json")]
pub use json::Json;
#[cfg(feature = "message-pack")]
pub use message_pack::MessagePack;
pub use raw::Raw;

/// What a format has to say when it fails.
pub type FormatError = Box<dyn std::error::Error + Send + Sync>;

/// A way to write records of type `R`.
pub trait Format<R>: 'static {
    /// What it is called in the label of a log: 1 to 255 bytes, never changed.
    const NAME: &'static str;

    /// Adds the record's bytes to what is in `into` already, whose length is a multiple of 8.
    ///
    /// # Errors
    /// Whatever keeps the record from being written. What was added is dropped.
    fn encode(record: &R, into: &mut Vec<u8>) -> Result<(), FormatError>;

    /// The record that `bytes` are. They begin at an address that is a multiple of 8.
    ///
    /// # Errors
    /// The bytes are no such record.
    fn decode(bytes: &[u8]) -> Result<R, FormatError>;
}

/// A format whose records can be looked at where they lie, without an allocation.
pub trait ViewFormat<R>: Format<R> {
    /// What such a look gives.
    type View<'a>;

    /// The record as it lies in `bytes`, which begin at an address that is a multiple of 8.
    ///
    /// # Errors
    /// The bytes are no such record.
    fn view(bytes: &[u8]) -> Result<Self::View<'_>, FormatError>;
}
