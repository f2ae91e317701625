//! What a client asks for: operations that are done together, in their order, or not at all.
//!
//! Promise: what was encoded is what is decoded; any other bytes are [`Malformed`].
//! Never: knows whether a table is there.

use crate::schema::{Index, Schema};
use crate::value::{Row, Value};
use crate::wire::{self, Malformed, Rest};

/// How requests are written.
const VERSION: u8 = 1;

/// Operations that are one transaction. Each sees what those before it did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// In the order in which they are done.
    pub operations: Vec<Operation>,
}

/// One operation on one table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Operation {
    /// The table's name, of 1 to 64 bytes; for [`Action::List`] where names begin.
    pub table: String,
    /// What is done with it.
    pub action: Action,
}

/// What an operation does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Makes the table, without rows. Refused if there is one of this name.
    Make(Schema),
    /// Drops the table and its rows.
    Drop,
    /// Adds a row. Refused if there is one with its key.
    Insert(Row),
    /// Adds a row, or puts it in the place of the one with its key.
    Upsert(Row),
    /// Changes fields of the row with this key, which are none of its key. Refused if there is no
    /// such row.
    Update(Row, Vec<(u8, Change)>),
    /// Deletes the row with this key, and answers whether there was one.
    Delete(Row),
    /// Answers the row with this key.
    Get(Row),
    /// Answers rows in the order of their primary key, or of the index of this number, from 0.
    Scan(Option<u8>, Range),
    /// Refuses the whole request unless this is so of the row with this key.
    Expect(Row, Condition),
    /// Answers which tables there are, and what their rows are, in the order of their names from
    /// this one on.
    List,
}

/// What becomes of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It has this value then.
    Set(Value),
    /// This is added to it. Refused if it is bytes, or if the sum is no value of its kind.
    Add(i64),
}

/// What a request counts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// There is no such row.
    Absent,
    /// There is one, with these values in these fields.
    Has(Vec<(u8, Value)>),
}

/// Which rows a scan answers, and in which direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// Where they begin in the order scanned; without it, with the first.
    pub low: Option<Edge>,
    /// Where they end; without it, with the last.
    pub high: Option<Edge>,
    /// Whether from the end on.
    pub is_down: bool,
    /// How many rows at most.
    pub limit: u32,
}

/// One end of a range. It has values for the first fields of the order that is scanned: those of
/// the primary key, or of the index, and then of the primary key unless the index is unique.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edge {
    /// They.
    pub values: Row,
    /// Whether the rows that have these values belong to the range.
    pub is_inclusive: bool,
}

impl Range {
    /// All rows, upwards.
    #[must_use]
    pub fn all() -> Range {
        Range { low: None, high: None, is_down: false, limit: u32::MAX }
    }

    /// The rows that have these values in the first fields of the order.
    #[must_use]
    pub fn of(values: Row) -> Range {
        Range::all().from(values.clone()).to(values)
    }

    /// From the rows with these values on.
    #[must_use]
    pub fn from(mut self, values: Row) -> Range {
        self.low = Some(Edge { values, is_inclusive: true });
        self
    }

    /// From behind the rows with these values on.
    #[must_use]
    pub fn behind(mut self, values: Row) -> Range {
        self.low = Some(Edge { values, is_inclusive: false });
        self
    }

    /// To the rows with these values.
    #[must_use]
    pub fn to(mut self, values: Row) -> Range {
        self.high = Some(Edge { values, is_inclusive: true });
        self
    }

    /// To in front of the rows with these values.
    #[must_use]
    pub fn before(mut self, values: Row) -> Range {
        self.high = Some(Edge { values, is_inclusive: false });
        self
    }

    /// The last first.
    #[must_use]
    pub fn down(mut self) -> Range {
        self.is_down = true;
        self
    }

    /// So many rows at most.
    #[must_use]
    pub fn limit(mut self, rows: u32) -> Range {
        self.limit = rows;
        self
    }
}

impl Action {
    /// Whether it may change something.
    pub(crate) fn is_change(&self) -> bool {
        !matches!(self, Action::Get(_) | Action::Scan(..) | Action::Expect(..) | Action::List)
    }

    /// The number that stands for it in bytes.
    pub(crate) fn number(&self) -> u8 {
        match self {
            Action::Make(_) => 1,
            Action::Drop => 2,
            Action::Insert(_) => 3,
            Action::Upsert(_) => 4,
            Action::Update(..) => 5,
            Action::Delete(_) => 6,
            Action::Get(_) => 7,
            Action::Scan(..) => 8,
            Action::Expect(..) => 9,
            Action::List => 10,
        }
    }
}

impl Request {
    /// A request without operations, to which they are added.
    #[must_use]
    pub fn new() -> Request {
        Request::default()
    }

    /// Adds [`Action::Make`].
    #[must_use]
    pub fn make(self, table: &str, schema: Schema) -> Request {
        self.with(table, Action::Make(schema))
    }

    /// Adds [`Action::Drop`].
    #[must_use]
    pub fn drop(self, table: &str) -> Request {
        self.with(table, Action::Drop)
    }

    /// Adds [`Action::Insert`].
    #[must_use]
    pub fn insert(self, table: &str, row: Row) -> Request {
        self.with(table, Action::Insert(row))
    }

    /// Adds [`Action::Upsert`].
    #[must_use]
    pub fn upsert(self, table: &str, row: Row) -> Request {
        self.with(table, Action::Upsert(row))
    }

    /// Adds [`Action::Update`] of one field to a value.
    #[must_use]
    pub fn set(self, table: &str, key: Row, field: u8, value: impl Into<Value>) -> Request {
        self.with(table, Action::Update(key, vec![(field, Change::Set(value.into()))]))
    }

    /// Adds [`Action::Update`] of one field by an amount.
    #[must_use]
    pub fn add(self, table: &str, key: Row, field: u8, amount: i64) -> Request {
        self.with(table, Action::Update(key, vec![(field, Change::Add(amount))]))
    }

    /// Adds [`Action::Delete`].
    #[must_use]
    pub fn delete(self, table: &str, key: Row) -> Request {
        self.with(table, Action::Delete(key))
    }

    /// Adds [`Action::Get`].
    #[must_use]
    pub fn get(self, table: &str, key: Row) -> Request {
        self.with(table, Action::Get(key))
    }

    /// Adds [`Action::Scan`] by the primary key.
    #[must_use]
    pub fn scan(self, table: &str, range: Range) -> Request {
        self.with(table, Action::Scan(None, range))
    }

    /// Adds [`Action::Scan`] by an index.
    #[must_use]
    pub fn scan_by(self, table: &str, index: u8, range: Range) -> Request {
        self.with(table, Action::Scan(Some(index), range))
    }

    /// Adds [`Action::Expect`].
    #[must_use]
    pub fn expect(self, table: &str, key: Row, condition: Condition) -> Request {
        self.with(table, Action::Expect(key, condition))
    }

    /// Adds [`Action::List`] from a name on.
    #[must_use]
    pub fn list(self, from: &str) -> Request {
        self.with(from, Action::List)
    }

    /// Adds an operation.
    #[must_use]
    pub fn with(mut self, table: &str, action: Action) -> Request {
        self.operations.push(Operation { table: table.to_owned(), action });
        self
    }

    /// As bytes.
    ///
    /// # Panics
    /// If it has 4 GiB.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        self.operations.iter().for_each(|operation| operation.put(&mut out));
        out
    }

    /// The request that has these bytes.
    ///
    /// # Errors
    /// They are of none. Nobody but who wrote them can do anything about it.
    pub fn decode(mut bytes: &[u8]) -> Result<Request, Malformed> {
        if wire::byte(&mut bytes)? != VERSION {
            return Err(Malformed("it is of another version"));
        }
        let mut operations = Vec::new();
        while !bytes.is_empty() {
            operations.push(Operation::take(&mut bytes)?);
        }
        Ok(Request { operations })
    }

    pub(crate) fn is_change(&self) -> bool {
        self.operations.iter().any(|operation| operation.action.is_change())
    }
}

impl Operation {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.action.number());
        wire::put_bytes(self.table.as_bytes(), out);
        match &self.action {
            Action::Make(schema) => put_schema(schema, out),
            Action::Drop | Action::List => {}
            Action::Insert(row) | Action::Upsert(row) => wire::put_row(row, out),
            Action::Delete(key) | Action::Get(key) => wire::put_row(key, out),
            Action::Update(key, changes) => {
                wire::put_row(key, out);
                put_changes(changes, out);
            }
            Action::Scan(index, range) => put_scan(*index, range, out),
            Action::Expect(key, condition) => {
                wire::put_row(key, out);
                put_condition(condition, out);
            }
        }
    }

    fn take(rest: Rest<'_, '_>) -> Result<Operation, Malformed> {
        let number = wire::byte(rest)?;
        let table = wire::name(rest)?;
        let action = match number {
            1 => Action::Make(take_schema(rest)?),
            2 => Action::Drop,
            3 => Action::Insert(wire::row(rest)?),
            4 => Action::Upsert(wire::row(rest)?),
            5 => Action::Update(wire::row(rest)?, wire::many(rest, take_change)?),
            6 => Action::Delete(wire::row(rest)?),
            7 => Action::Get(wire::row(rest)?),
            8 => take_scan(rest)?,
            9 => Action::Expect(wire::row(rest)?, take_condition(rest)?),
            10 => Action::List,
            _ => return Err(Malformed("there is no such operation")),
        };
        Ok(Operation { table, action })
    }
}

/// Appends a schema, for requests and for the catalogue.
pub(crate) fn put_schema(schema: &Schema, out: &mut Vec<u8>) {
    let kinds: Vec<u8> = schema.kinds().iter().map(|kind| kind.number()).collect();
    wire::put_bytes(&kinds, out);
    wire::put_count(schema.key_fields(), out);
    wire::put_count(schema.indexes().len(), out);
    for index in schema.indexes() {
        out.push(u8::from(index.is_unique));
        wire::put_bytes(&index.fields, out);
    }
}

/// Takes what [`put_schema`] puts.
pub(crate) fn take_schema(rest: Rest<'_, '_>) -> Result<Schema, Malformed> {
    let kinds = wire::many(rest, wire::kind)?;
    let key_fields = wire::count(rest)?;
    let index = |rest: Rest<'_, '_>| {
        let is_unique = wire::flag(rest)?;
        Ok(Index { fields: wire::bytes(rest)?.to_vec(), is_unique })
    };
    let indexes = wire::many(rest, index)?;
    Schema::new(kinds, key_fields, indexes).ok_or(Malformed("a table is no such table"))
}

fn put_changes(changes: &[(u8, Change)], out: &mut Vec<u8>) {
    wire::put_count(changes.len(), out);
    for (field, change) in changes {
        out.push(*field);
        match change {
            Change::Set(value) => {
                out.push(0);
                wire::put_value(value, out);
            }
            Change::Add(amount) => {
                out.push(1);
                out.extend_from_slice(&amount.to_le_bytes());
            }
        }
    }
}

fn take_change(rest: Rest<'_, '_>) -> Result<(u8, Change), Malformed> {
    let field = wire::byte(rest)?;
    let is_sum = wire::flag(rest)?;
    let change =
        if is_sum { Change::Add(wire::i64(rest)?) } else { Change::Set(wire::value(rest)?) };
    Ok((field, change))
}

fn put_condition(condition: &Condition, out: &mut Vec<u8>) {
    out.push(u8::from(matches!(condition, Condition::Has(_))));
    if let Condition::Has(fields) = condition {
        wire::put_count(fields.len(), out);
        for (field, value) in fields {
            out.push(*field);
            wire::put_value(value, out);
        }
    }
}

fn take_condition(rest: Rest<'_, '_>) -> Result<Condition, Malformed> {
    if !wire::flag(rest)? {
        return Ok(Condition::Absent);
    }
    let field = |rest: Rest<'_, '_>| Ok((wire::byte(rest)?, wire::value(rest)?));
    Ok(Condition::Has(wire::many(rest, field)?))
}

fn put_scan(index: Option<u8>, range: &Range, out: &mut Vec<u8>) {
    let edges = [&range.low, &range.high];
    out.push(index.map_or(u8::MAX, |index| index.min(u8::MAX - 1)));
    out.push(u8::from(range.is_down));
    out.extend_from_slice(&range.limit.to_le_bytes());
    for edge in edges {
        out.push(edge.as_ref().map_or(0, |edge| 1 + u8::from(edge.is_inclusive)));
        wire::put_row(edge.as_ref().map_or(&[], |edge| &edge.values), out);
    }
}

fn take_scan(rest: Rest<'_, '_>) -> Result<Action, Malformed> {
    let index = Some(wire::byte(rest)?).filter(|index| *index != u8::MAX);
    let is_down = wire::flag(rest)?;
    let limit = wire::u32(rest)?;
    let (low, high) = (take_edge(rest)?, take_edge(rest)?);
    Ok(Action::Scan(index, Range { low, high, is_down, limit }))
}

fn take_edge(rest: Rest<'_, '_>) -> Result<Option<Edge>, Malformed> {
    let kind = wire::byte(rest)?;
    let values = wire::row(rest)?;
    match kind {
        0 if values.is_empty() => Ok(None),
        1 | 2 => Ok(Some(Edge { values, is_inclusive: kind == 2 })),
        _ => Err(Malformed("there is no such edge of a range")),
    }
}
