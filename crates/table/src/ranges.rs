//! The rows of a range, in the order of their primary key or of an index.
//!
//! Promise: what is answered is what there is while the transaction runs, no row twice.
//! Never: reads further than it has to by more than a batch.

use std::ops::Bound;

use holdfast_store::{Direction, KeyValue};

use crate::answer::{Outcome, Status};
use crate::catalogue::prefix;
use crate::error::Stop;
use crate::limits::SCAN_BYTES_MAX;
use crate::request::{Edge, Range};
use crate::rows::Rows;
use crate::schema::begins;
use crate::value::{Kind, Row};
use crate::{ordered, wire};

/// Entries that are read before their rows are looked up.
const BATCH: usize = 64;

const MISMATCH: Stop = Stop::Refused(Status::Mismatch);

/// What is still to be read: keys between these, in this direction.
struct KeyRange {
    low: Bound<Vec<u8>>,
    end: Bound<Vec<u8>>,
    direction: Direction,
}

impl KeyRange {
    /// Entries of this number whose values are in the range.
    fn of(number: u32, kinds: &[Kind], range: &Range) -> Result<KeyRange, Stop> {
        let all = prefix(number);
        let low = match &range.low {
            None => all.clone(),
            Some(edge) => cut(&all, kinds, edge, !edge.is_inclusive)?,
        };
        let end = match &range.high {
            None => behind(&all),
            Some(edge) => cut(&all, kinds, edge, edge.is_inclusive)?,
        };
        let direction = if range.is_down { Direction::Down } else { Direction::Up };
        Ok(KeyRange { low: Bound::Included(low), end: Bound::Excluded(end), direction })
    }

    /// What is left when this key was read.
    fn pass(&mut self, key: &[u8]) {
        let passed = Bound::Excluded(key.to_vec());
        match self.direction {
            Direction::Up => self.low = passed,
            Direction::Down => self.end = passed,
        }
    }
}

/// Where the order is cut in two: in front of what has the values of an edge, or behind it.
fn cut(all: &[u8], kinds: &[Kind], edge: &Edge, is_behind: bool) -> Result<Vec<u8>, Stop> {
    if !begins(&edge.values, kinds) {
        return Err(MISMATCH);
    }
    let mut key = all.to_vec();
    ordered::put_all(&edge.values, &mut key);
    Ok(if is_behind { behind(&key) } else { key })
}

fn behind(key: &[u8]) -> Vec<u8> {
    ordered::behind(key).expect("the last number is nobody's")
}

impl Rows<'_, '_> {
    /// The rows of a range, by the primary key or by an index.
    pub(crate) fn scan(&mut self, index: Option<u8>, range: &Range) -> Result<Outcome, Stop> {
        let index = index.map(usize::from);
        let (number, kinds) = self.order(index)?;
        let mut left = KeyRange::of(number, &kinds, range)?;
        let limit = usize::try_from(range.limit).unwrap_or(usize::MAX);
        let (mut rows, mut bytes) = (Vec::new(), 0);
        loop {
            // One more than may be answered, which tells whether there are more.
            let wanted = BATCH.min((limit - rows.len()).saturating_add(1));
            let (batch, is_last) = self.batch(&left, wanted)?;
            for entry in batch {
                if rows.len() == limit || bytes >= SCAN_BYTES_MAX {
                    return Ok(Outcome::Rows { rows, has_more: true });
                }
                left.pass(&entry.0);
                let row = self.row_of_entry(index, entry)?;
                bytes += bytes_of(&row);
                rows.push(row);
            }
            if is_last {
                return Ok(Outcome::Rows { rows, has_more: false });
            }
        }
    }

    /// Where an order lies, and the kinds that it is by.
    fn order(&self, index: Option<usize>) -> Result<(u32, Vec<Kind>), Stop> {
        let table = self.table;
        let Some(at) = index else { return Ok((table.number, table.schema.key_kinds().to_vec())) };
        let index = table.schema.indexes().get(at).ok_or(MISMATCH)?;
        Ok((table.index_number(at), table.schema.order_of(index)))
    }

    /// Entries that come next, and whether these are the last. Of large ones there are fewer than
    /// are wanted.
    fn batch(&mut self, left: &KeyRange, wanted: usize) -> Result<(Vec<KeyValue>, bool), Stop> {
        let bounds = (left.low.clone(), left.end.clone());
        let (mut batch, mut bytes) = (Vec::new(), 0);
        for entry in self.transaction.scan(self.entries, bounds, left.direction) {
            let (key, value) = entry?;
            bytes += key.len() + value.len();
            batch.push((key, value));
            if batch.len() == wanted || bytes >= SCAN_BYTES_MAX {
                batch.iter().try_for_each(|(key, value)| self.count(key, value))?;
                return Ok((batch, false));
            }
        }
        batch.iter().try_for_each(|(key, value)| self.count(key, value))?;
        Ok((batch, true))
    }

    fn row_of_entry(&mut self, index: Option<usize>, entry: KeyValue) -> Result<Row, Stop> {
        let (key, value) = entry;
        if index.is_none() {
            return self.table.row_of(&key, &value);
        }
        let row = self.get_at(&[prefix(self.table.number), value].concat())?;
        row.ok_or(Stop::Damaged("an entry of an index has no row"))
    }
}

/// Bytes of a row in an answer.
fn bytes_of(row: &Row) -> usize {
    let mut bytes = Vec::new();
    wire::put_row(row, &mut bytes);
    bytes.len()
}
