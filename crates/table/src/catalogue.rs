//! Which tables there are, and under which numbers their entries lie.
//!
//! Promise: a table is made, found and dropped by the transaction that asks; a number is never
//! given twice.
//! Never: looks at rows.

use holdfast_store::{Direction, KeyValue, Transaction, Tree};

use crate::answer::Status;
use crate::error::Stop;
use crate::ordered;
use crate::request::{put_schema, take_schema};
use crate::schema::Schema;
use crate::wire;

/// How everything in the store is written.
const VERSION: u8 = 1;
/// The key of that.
const VERSION_KEY: &[u8] = b"V";
/// The key of the next number.
const NEXT_KEY: &[u8] = b"N";
/// Before the name of a table.
const TABLE: u8 = b'T';
/// Before the number of a table that was dropped and still has entries.
const DROPPED: u8 = b'D';

/// A table that there is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Table {
    /// Its rows lie under this number, and the entries of its indexes under those that follow.
    pub(crate) number: u32,
    pub(crate) schema: Schema,
}

/// A table that there is not any more.
pub(crate) struct Dropped {
    pub(crate) number: u32,
    /// How many numbers it had.
    pub(crate) count: u32,
}

impl Table {
    /// How many numbers it has.
    pub(crate) fn count(&self) -> u32 {
        1 + self.schema.indexes().len() as u32
    }

    fn value(&self) -> Vec<u8> {
        let mut value = self.number.to_le_bytes().to_vec();
        put_schema(&self.schema, &mut value);
        value
    }

    fn of_value(mut value: &[u8]) -> Option<Table> {
        let number = wire::u32(&mut value).ok()?;
        let schema = take_schema(&mut value).ok()?;
        value.is_empty().then_some(Table { number, schema })
    }
}

/// What begins the keys that have this number.
pub(crate) fn prefix(number: u32) -> Vec<u8> {
    number.to_be_bytes().to_vec()
}

/// Whether the store has tables of this version, or none: then it is written that it has.
pub(crate) fn is_ours(transaction: &mut Transaction<'_>, catalogue: &Tree) -> Result<bool, Stop> {
    match transaction.get_for_update(catalogue, VERSION_KEY)? {
        Some(version) => Ok(version == [VERSION]),
        None => Ok(transaction.insert(catalogue, VERSION_KEY, &[VERSION])?),
    }
}

/// The table of this name.
pub(crate) fn find(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
    name: &str,
) -> Result<Table, Stop> {
    let value = transaction.get(catalogue, &key_of(name))?;
    let value = value.ok_or(Stop::Refused(Status::NoTable))?;
    Table::of_value(&value).ok_or(DAMAGED)
}

/// Makes a table.
pub(crate) fn make(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
    name: &str,
    schema: &Schema,
) -> Result<(), Stop> {
    let key = key_of(name);
    if transaction.get_for_update(catalogue, &key)?.is_some() {
        return Err(Stop::Refused(Status::TableExists));
    }
    let next = transaction.get_for_update(catalogue, NEXT_KEY)?;
    let number = next.map_or(Ok(0), |next| next.try_into().map(u32::from_le_bytes));
    let table = Table { number: number.map_err(|_| DAMAGED)?, schema: schema.clone() };
    // The last number is nobody's, so something is behind every number.
    let next = table.number.checked_add(table.count()).filter(|next| *next < u32::MAX);
    let next = next.ok_or(Stop::Refused(Status::TooLarge))?;
    transaction.put(catalogue, NEXT_KEY, &next.to_le_bytes())?;
    transaction.put(catalogue, &key, &table.value())?;
    Ok(())
}

/// Drops a table. What it had is nobody's from then on, and goes by [`crate::Tables::sweep`].
pub(crate) fn drop(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
    name: &str,
) -> Result<(), Stop> {
    let key = key_of(name);
    let value = transaction.get_for_update(catalogue, &key)?;
    let value = value.ok_or(Stop::Refused(Status::NoTable))?;
    let table = Table::of_value(&value).ok_or(DAMAGED)?;
    transaction.delete(catalogue, &key)?;
    transaction.put(catalogue, &dropped_key(table.number), &table.count().to_le_bytes())?;
    Ok(())
}

/// All tables, in the order of their names.
pub(crate) fn all(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
) -> Result<Vec<(String, Table)>, Stop> {
    let tables = transaction.scan(catalogue, [TABLE]..[TABLE + 1], Direction::Up);
    tables.map(|found| named(found?).ok_or(DAMAGED)).collect()
}

/// The tables from a name on, until they are so many bytes; and whether there are more.
pub(crate) fn list(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
    from: &str,
    bytes_max: usize,
) -> Result<(Vec<(String, Schema)>, bool), Stop> {
    let (mut listed, mut bytes) = (Vec::new(), 0);
    for found in transaction.scan(catalogue, key_of(from)..vec![TABLE + 1], Direction::Up) {
        if bytes >= bytes_max {
            return Ok((listed, true));
        }
        let found = found?;
        bytes += found.0.len() + found.1.len();
        let (name, table) = named(found).ok_or(DAMAGED)?;
        listed.push((name, table.schema));
    }
    Ok((listed, false))
}

/// A table, and its name.
fn named((key, value): KeyValue) -> Option<(String, Table)> {
    let name = String::from_utf8(key.get(1..)?.to_vec()).ok()?;
    Some((name, Table::of_value(&value)?))
}

/// All tables that were dropped and may still have entries.
pub(crate) fn dropped(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
) -> Result<Vec<Dropped>, Stop> {
    let tables = transaction.scan(catalogue, [DROPPED]..[DROPPED + 1], Direction::Up);
    let dropped = |(key, value): (Vec<u8>, Vec<u8>)| {
        let number = u32::from_be_bytes(key.get(1..)?.try_into().ok()?);
        Some(Dropped { number, count: u32::from_le_bytes(value.try_into().ok()?) })
    };
    tables.map(|found| dropped(found?).ok_or(DAMAGED)).collect()
}

/// Forgets a dropped table, which has no entry any more.
pub(crate) fn forget(
    transaction: &mut Transaction<'_>,
    catalogue: &Tree,
    dropped: &Dropped,
) -> Result<(), Stop> {
    transaction.delete(catalogue, &dropped_key(dropped.number))?;
    Ok(())
}

/// Where the entries of these numbers lie.
pub(crate) fn extent(number: u32, count: u32) -> std::ops::Range<Vec<u8>> {
    let low = prefix(number);
    let end = ordered::behind(&prefix(number + count - 1)).expect("the last number is nobody's");
    low..end
}

const DAMAGED: Stop = Stop::Damaged("an entry of the catalogue is damaged");

fn key_of(name: &str) -> Vec<u8> {
    [&[TABLE], name.as_bytes()].concat()
}

fn dropped_key(number: u32) -> Vec<u8> {
    [&[DROPPED][..], &number.to_be_bytes()].concat()
}
