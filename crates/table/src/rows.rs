//! The rows of a table, changed together with the entries of its indexes.
//!
//! Promise: after each change every row has one entry in each index, and every entry a row; what is
//! refused leaves its transaction to be rolled back.
//! Never: commits.

use holdfast_store::{Transaction, Tree};

use crate::answer::Status;
use crate::catalogue::{Table, prefix};
use crate::error::Stop;
use crate::limits::ROW_BYTES_MAX;
use crate::request::{Change, Condition};
use crate::schema::{Index, fits};
use crate::value::{Row, Value};
use crate::{ordered, wire};

const DAMAGED: Stop = Stop::Damaged("a row or an entry of an index is damaged");
const MISMATCH: Stop = Stop::Refused(Status::Mismatch);

/// A key of the tree of entries, and its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: Vec<u8>,
    pub(crate) value: Vec<u8>,
}

impl Table {
    /// Where the row with this primary key lies.
    pub(crate) fn row_key(&self, key: &[Value]) -> Result<Vec<u8>, Stop> {
        if !fits(key, self.schema.key_kinds()) {
            return Err(MISMATCH);
        }
        Ok(self.entry_key(self.number, key))
    }

    fn entry_key<'v>(&self, number: u32, values: impl IntoIterator<Item = &'v Value>) -> Vec<u8> {
        let mut key = prefix(number);
        ordered::put_all(values, &mut key);
        key
    }

    /// A row as it lies there.
    fn row_entry(&self, row: &[Value]) -> Entry {
        let (key, rest) = row.split_at(self.schema.key_fields());
        let mut value = Vec::new();
        ordered::put_all(rest, &mut value);
        Entry { key: self.entry_key(self.number, key), value }
    }

    /// The row that lies there.
    pub(crate) fn row_of(&self, key: &[u8], value: &[u8]) -> Result<Row, Stop> {
        let (mut row, mut value) = (Row::new(), value);
        let mut key = key.get(prefix(self.number).len()..).ok_or(DAMAGED)?;
        ordered::take_all(self.schema.key_kinds(), &mut key, &mut row).ok_or(DAMAGED)?;
        ordered::take_all(self.schema.rest_kinds(), &mut value, &mut row).ok_or(DAMAGED)?;
        if key.is_empty() && value.is_empty() { Ok(row) } else { Err(DAMAGED) }
    }

    /// The number of an index.
    pub(crate) fn index_number(&self, index: usize) -> u32 {
        self.number + 1 + index as u32
    }

    /// A row's entry in each index.
    pub(crate) fn index_entries(&self, row: &[Value]) -> Vec<(Entry, &Index)> {
        let indexes = self.schema.indexes().iter().enumerate();
        indexes.map(|(at, index)| (self.index_entry(at, index, row), index)).collect()
    }

    fn index_entry(&self, at: usize, index: &Index, row: &[Value]) -> Entry {
        let mut value = Vec::new();
        ordered::put_all(&row[..self.schema.key_fields()], &mut value);
        let fields = index.fields.iter().map(|field| &row[usize::from(*field)]);
        let mut key = self.entry_key(self.index_number(at), fields);
        if !index.is_unique {
            key.extend_from_slice(&value);
        }
        Entry { key, value }
    }

    fn check_row(&self, row: &[Value]) -> Result<(), Stop> {
        if !fits(row, self.schema.kinds()) {
            return Err(MISMATCH);
        }
        let mut bytes = Vec::new();
        wire::put_row(row, &mut bytes);
        let is_short = bytes.len() <= ROW_BYTES_MAX;
        is_short.then_some(()).ok_or(Stop::Refused(Status::TooLarge))
    }
}

/// The rows of one table, to one transaction.
pub(crate) struct Rows<'t, 's> {
    pub(crate) transaction: &'t mut Transaction<'s>,
    pub(crate) entries: &'t Tree,
    pub(crate) table: &'t Table,
    /// Bytes that the request may still have read and written.
    pub(crate) left_bytes: &'t mut usize,
}

impl Rows<'_, '_> {
    /// Counts what the request had read, or has written.
    pub(crate) fn count(&mut self, key: &[u8], value: &[u8]) -> Result<(), Stop> {
        let left = self.left_bytes.checked_sub(key.len() + value.len());
        *self.left_bytes = left.ok_or(Stop::Refused(Status::TooLarge))?;
        Ok(())
    }

    /// The row with this key.
    pub(crate) fn get(&mut self, key: &[Value]) -> Result<Option<Row>, Stop> {
        self.get_at(&self.table.row_key(key)?)
    }

    /// The row that lies at this key of the tree.
    pub(crate) fn get_at(&mut self, key: &[u8]) -> Result<Option<Row>, Stop> {
        let Some(value) = self.transaction.get(self.entries, key)? else { return Ok(None) };
        self.count(key, &value)?;
        self.table.row_of(key, &value).map(Some)
    }

    /// The row with this key, for whoever may change it.
    fn get_for_update(&mut self, key: &[Value]) -> Result<Option<Row>, Stop> {
        let key = self.table.row_key(key)?;
        let value = self.transaction.get_for_update(self.entries, &key)?;
        let Some(value) = value else { return Ok(None) };
        self.count(&key, &value)?;
        self.table.row_of(&key, &value).map(Some)
    }

    pub(crate) fn insert(&mut self, row: &[Value]) -> Result<(), Stop> {
        self.table.check_row(row)?;
        let Entry { key, value } = self.table.row_entry(row);
        self.count(&key, &value)?;
        if !self.transaction.insert(self.entries, &key, &value)? {
            return Err(Stop::Refused(Status::RowExists));
        }
        for (entry, index) in self.table.index_entries(row) {
            self.insert_entry(&entry, index)?;
        }
        Ok(())
    }

    pub(crate) fn upsert(&mut self, row: &[Value]) -> Result<(), Stop> {
        self.table.check_row(row)?;
        match self.get_for_update(&row[..self.table.schema.key_fields()])? {
            Some(old) => self.replace(&old, row),
            None => self.insert(row),
        }
    }

    pub(crate) fn update(&mut self, key: &[Value], changes: &[(u8, Change)]) -> Result<(), Stop> {
        let old = self.get_for_update(key)?.ok_or(Stop::Refused(Status::NoRow))?;
        let mut new = old.clone();
        for (field, change) in changes {
            self.change(&mut new, usize::from(*field), change)?;
        }
        self.table.check_row(&new)?;
        self.replace(&old, &new)
    }

    fn change(&self, row: &mut Row, field: usize, change: &Change) -> Result<(), Stop> {
        if field < self.table.schema.key_fields() {
            return Err(MISMATCH);
        }
        let value = row.get_mut(field).ok_or(MISMATCH)?;
        *value = match change {
            Change::Set(new) => new.clone(),
            Change::Add(_) if matches!(value, Value::Bytes(_)) => return Err(MISMATCH),
            Change::Add(amount) => value.plus(*amount).ok_or(Stop::Refused(Status::Overflow))?,
        };
        Ok(())
    }

    /// Deletes the row with this key. Whether there was one.
    pub(crate) fn delete(&mut self, key: &[Value]) -> Result<bool, Stop> {
        let Some(row) = self.get_for_update(key)? else { return Ok(false) };
        self.delete_key(&self.table.row_key(key)?)?;
        for (entry, _) in self.table.index_entries(&row) {
            self.delete_key(&entry.key)?;
        }
        Ok(true)
    }

    /// Whether the row with this key is so.
    pub(crate) fn is(&mut self, key: &[Value], condition: &Condition) -> Result<bool, Stop> {
        let row = self.get_for_update(key)?;
        let Condition::Has(fields) = condition else { return Ok(row.is_none()) };
        for (field, value) in fields {
            let kind = self.table.schema.kinds().get(usize::from(*field));
            if kind != Some(&value.kind()) {
                return Err(MISMATCH);
            }
        }
        let has = |row: Row| fields.iter().all(|(field, value)| row[usize::from(*field)] == *value);
        Ok(row.is_some_and(has))
    }

    /// Puts a row in the place of another one with its key.
    fn replace(&mut self, old: &[Value], new: &[Value]) -> Result<(), Stop> {
        let Entry { key, value } = self.table.row_entry(new);
        self.count(&key, &value)?;
        self.transaction.put(self.entries, &key, &value)?;
        let entries = self.table.index_entries(old).into_iter().zip(self.table.index_entries(new));
        for ((was, _), (is, index)) in entries.filter(|((was, _), (is, _))| was != is) {
            self.delete_key(&was.key)?;
            self.insert_entry(&is, index)?;
        }
        Ok(())
    }

    fn insert_entry(&mut self, entry: &Entry, index: &Index) -> Result<(), Stop> {
        self.count(&entry.key, &entry.value)?;
        match self.transaction.insert(self.entries, &entry.key, &entry.value)? {
            true => Ok(()),
            false if index.is_unique => Err(Stop::Refused(Status::NotUnique)),
            false => Err(DAMAGED),
        }
    }

    fn delete_key(&mut self, key: &[u8]) -> Result<(), Stop> {
        self.count(key, &[])?;
        if self.transaction.delete(self.entries, key)? { Ok(()) } else { Err(DAMAGED) }
    }
}
