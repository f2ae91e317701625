//! What a field of a row has.
//!
//! Promise: a value is of one kind; values of a kind are ordered as people order them.
//! Never: converts one kind into another.

/// What kind of values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers from 0 to 2^64 - 1.
    U64,
    /// Whole numbers from -2^63 to 2^63 - 1.
    I64,
    /// Bytes, ordered one by one; what begins with all of another is behind it.
    Bytes,
}

/// What a field has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Value {
    /// Of [`Kind::U64`].
    U64(u64),
    /// Of [`Kind::I64`].
    I64(i64),
    /// Of [`Kind::Bytes`].
    Bytes(Vec<u8>),
}

/// The values of a row, in the order of its table's fields; or the first few of them.
pub type Row = Vec<Value>;

/// A [`Row`] of values of any kinds: `row![7_u64, -3_i64, "text"]`.
#[macro_export]
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::Value::from($value)),*] };
}

impl Kind {
    pub(crate) const ALL: [Kind; 3] = [Kind::U64, Kind::I64, Kind::Bytes];

    /// The number that stands for it in bytes.
    pub(crate) fn number(self) -> u8 {
        match self {
            Kind::U64 => 1,
            Kind::I64 => 2,
            Kind::Bytes => 3,
        }
    }

    pub(crate) fn of_number(number: u8) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| kind.number() == number)
    }
}

impl Value {
    /// The kind of fields that can have it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Value::U64(_) => Kind::U64,
            Value::I64(_) => Kind::I64,
            Value::Bytes(_) => Kind::Bytes,
        }
    }

    /// The value with this added. None if it is bytes, or if the sum is no value of its kind.
    pub(crate) fn plus(&self, amount: i64) -> Option<Value> {
        match self {
            Value::U64(number) => number.checked_add_signed(amount).map(Value::U64),
            Value::I64(number) => number.checked_add(amount).map(Value::I64),
            Value::Bytes(_) => None,
        }
    }
}

impl From<u64> for Value {
    fn from(number: u64) -> Value {
        Value::U64(number)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::I64(number)
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Value {
        Value::Bytes(bytes.to_vec())
    }
}

impl From<Vec<u8>> for Value {
    fn from(bytes: Vec<u8>) -> Value {
        Value::Bytes(bytes)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }
}
