//! Tables compared with their indexes.
//!
//! Promise: finds each row that has not exactly its entries, each entry without a row, and entries
//! that belong to no table; as of one moment.
//! Never: repairs; looks at pages, which is [`Store::verify`](holdfast_store::Store::verify).

use holdfast_store::{Direction, KeyValue, Transaction, TransactionError};

use crate::catalogue::{self, Table, extent};
use crate::error::{RespondError, Stop};
use crate::tables::Tables;

/// Rows that are read before their entries are looked for.
const BATCH: usize = 256;

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Tables that there are.
    pub tables: u64,
    /// Their rows.
    pub rows: u64,
    /// Entries of their indexes.
    pub entries: u64,
    /// Rows and entries that dropped tables have left.
    pub dropped: u64,
    /// What does not agree.
    pub disagreements: Vec<Disagreement>,
}

/// What does not agree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Disagreement {
    /// The bytes of a row are none of its table's.
    BadRow {
        /// The table.
        table: String,
        /// Where it lies in the tree of entries.
        key: Vec<u8>,
    },
    /// A row has no entry in an index, or a wrong one.
    NoEntry {
        /// The table.
        table: String,
        /// Which index, from 0.
        index: usize,
        /// Where the row lies.
        key: Vec<u8>,
    },
    /// An index has not as many entries as the table has rows.
    Count {
        /// The table.
        table: String,
        /// Which index, from 0.
        index: usize,
        /// Entries of the index.
        entries: u64,
        /// Rows of the table.
        rows: u64,
    },
    /// Rows or entries belong to no table, whether it is there or was dropped.
    Nobodys {
        /// How many.
        count: u64,
    },
}

impl Tables {
    /// Looks at all tables and all their indexes, in one transaction. Requests wait meanwhile.
    ///
    /// # Errors
    /// See [`RespondError`]. What does not agree is no error but the answer.
    pub fn check(&self) -> Result<Checked, RespondError> {
        let _alone = self.alone();
        let mut transaction = self.store().begin();
        Ok(self.check_all(&mut transaction)?)
    }

    fn check_all(&self, transaction: &mut Transaction<'_>) -> Result<Checked, Stop> {
        let (mut checked, trees) = (Checked::default(), self.trees());
        for (name, table) in catalogue::all(transaction, &trees.catalogue)? {
            self.check_table(transaction, &name, &table, &mut checked)?;
        }
        for dropped in catalogue::dropped(transaction, &trees.catalogue)? {
            checked.dropped += self.count(transaction, dropped.number, dropped.count)?;
        }
        let known = checked.rows + checked.entries + checked.dropped;
        let all = self.count(transaction, 0, u32::MAX)?;
        if all > known {
            checked.disagreements.push(Disagreement::Nobodys { count: all - known });
        }
        Ok(checked)
    }

    fn check_table(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        table: &Table,
        checked: &mut Checked,
    ) -> Result<(), Stop> {
        checked.tables += 1;
        let rows = self.check_rows(transaction, name, table, checked)?;
        checked.rows += rows;
        for index in 0..table.schema.indexes().len() {
            let entries = self.count(transaction, table.index_number(index), 1)?;
            checked.entries += entries;
            if entries != rows {
                let table = name.to_owned();
                checked.disagreements.push(Disagreement::Count { table, index, entries, rows });
            }
        }
        Ok(())
    }

    /// Looks for the entries of each row. Returns how many rows there are.
    fn check_rows(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        table: &Table,
        checked: &mut Checked,
    ) -> Result<u64, Stop> {
        let (mut count, mut left) = (0, extent(table.number, 1));
        loop {
            let rows = transaction.scan(&self.trees().entries, left.clone(), Direction::Up);
            let batch: Vec<KeyValue> = rows.take(BATCH).collect::<Result<_, _>>()?;
            let Some((last, _)) = batch.last() else { return Ok(count) };
            left.start = [&last[..], &[0]].concat();
            count += batch.len() as u64;
            for row in batch {
                self.check_row(transaction, name, table, row, checked)?;
            }
        }
    }

    fn check_row(
        &self,
        transaction: &mut Transaction<'_>,
        name: &str,
        table: &Table,
        (key, value): KeyValue,
        checked: &mut Checked,
    ) -> Result<(), Stop> {
        let Ok(row) = table.row_of(&key, &value) else {
            checked.disagreements.push(Disagreement::BadRow { table: name.to_owned(), key });
            return Ok(());
        };
        for (index, (entry, _)) in table.index_entries(&row).into_iter().enumerate() {
            let found = transaction.get(&self.trees().entries, &entry.key)?;
            if found.as_ref() != Some(&entry.value) {
                let (table, key) = (name.to_owned(), key.clone());
                checked.disagreements.push(Disagreement::NoEntry { table, index, key });
            }
        }
        Ok(())
    }

    /// How many entries there are under these numbers.
    fn count(
        &self,
        transaction: &mut Transaction<'_>,
        number: u32,
        count: u32,
    ) -> Result<u64, TransactionError> {
        let entries = transaction.scan(&self.trees().entries, extent(number, count), Direction::Up);
        entries.map(|found| found.map(|_| 1)).sum()
    }
}
