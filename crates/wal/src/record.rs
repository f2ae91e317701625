//! What a type must say of itself to be logged.
//!
//! Promise: a log is bound to one record type: a log of another is refused when it is opened, by
//! name, not by the noise that decoding its bytes would make.
//! Never: derives the name from the type. The compiler's own name changes with the module a type
//! stands in and is not promised to be the same in its next release; a log outlives both.

/// A type whose values are the records of a log.
///
/// ```
/// struct Transfer { from: u32, to: u32, cents: i64 }
///
/// impl holdfast_wal::Record for Transfer {
///     const NAME: &'static str = "bank.transfer";
/// }
/// ```
pub trait Record: Sized + 'static {
    /// What the type is called in the label of its logs: 1 to 255 bytes. Unique in the program; not
    /// to be changed while there are logs.
    const NAME: &'static str;
    /// Raised when old records can no longer be decoded.
    const VERSION: u32 = 1;
}

impl Record for Vec<u8> {
    const NAME: &'static str = "bytes";
}

impl Record for String {
    const NAME: &'static str = "text";
}

impl Record for u64 {
    const NAME: &'static str = "u64";
}

impl Record for i64 {
    const NAME: &'static str = "i64";
}
