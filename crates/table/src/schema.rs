//! What the rows of a table are, and in which orders they can be found.
//!
//! Promise: a schema that was made is sound: each number of a field is one of its fields.
//! Never: knows where rows lie.

use crate::value::{Kind, Value};

/// The most fields of a table.
pub const FIELDS_MAX: usize = 64;
/// The most indexes of a table, beside its primary key.
pub const INDEXES_MAX: usize = 16;
/// The longest name of a table, in bytes.
pub const NAME_BYTES_MAX: usize = 64;

/// The fields of a table, its primary key and its indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    kinds: Vec<Kind>,
    key_fields: usize,
    indexes: Vec<Index>,
}

/// An index: the fields by which rows are ordered in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    /// Fields, by number from 0.
    pub fields: Vec<u8>,
    /// Whether no two rows may have the same values in all of them.
    pub is_unique: bool,
}

impl Schema {
    /// Rows of these fields. The first `key_fields` of them are the primary key. None if there are
    /// no fields or more than [`FIELDS_MAX`], more indexes than [`INDEXES_MAX`], no field in the
    /// key or in an index, more fields in one than there are, or one that there is not.
    #[must_use]
    pub fn new(kinds: Vec<Kind>, key_fields: usize, indexes: Vec<Index>) -> Option<Schema> {
        let is_index = |index: &Index| {
            (1..=kinds.len()).contains(&index.fields.len())
                && index.fields.iter().all(|field| usize::from(*field) < kinds.len())
        };
        let is_sound = kinds.len() <= FIELDS_MAX
            && (1..=kinds.len()).contains(&key_fields)
            && indexes.len() <= INDEXES_MAX
            && indexes.iter().all(is_index);
        is_sound.then_some(Schema { kinds, key_fields, indexes })
    }

    /// The kind of each field.
    #[must_use]
    pub fn kinds(&self) -> &[Kind] {
        &self.kinds
    }

    /// How many fields are the primary key.
    #[must_use]
    pub fn key_fields(&self) -> usize {
        self.key_fields
    }

    /// The indexes.
    #[must_use]
    pub fn indexes(&self) -> &[Index] {
        &self.indexes
    }

    pub(crate) fn key_kinds(&self) -> &[Kind] {
        &self.kinds[..self.key_fields]
    }

    pub(crate) fn rest_kinds(&self) -> &[Kind] {
        &self.kinds[self.key_fields..]
    }

    /// The kinds by which an index orders rows. Those that have all fields of it in common are in
    /// the order of their primary keys.
    pub(crate) fn order_of(&self, index: &Index) -> Vec<Kind> {
        let mut kinds: Vec<Kind> =
            index.fields.iter().map(|field| self.kinds[usize::from(*field)]).collect();
        if !index.is_unique {
            kinds.extend_from_slice(self.key_kinds());
        }
        kinds
    }
}

/// Whether the values are of these kinds, one by one.
pub(crate) fn fits(values: &[Value], kinds: &[Kind]) -> bool {
    values.len() == kinds.len() && begins(values, kinds)
}

/// Whether the values are of the first of these kinds.
pub(crate) fn begins(values: &[Value], kinds: &[Kind]) -> bool {
    values.len() <= kinds.len()
        && values.iter().map(Value::kind).eq(kinds[..values.len()].iter().copied())
}
