//! What tables should answer: rows in a list, all of which are looked at each time.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use holdfast_table::{
    Action, Answer, Change, Condition, Edge, Index, Outcome, Range, Refusal, Request, Row, Schema,
    Status, Value,
};

/// Tables by name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Model {
    tables: BTreeMap<String, Table>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Table {
    schema: Schema,
    rows: Vec<Row>,
}

impl Model {
    /// Does a request, or nothing of it.
    pub(crate) fn respond(&mut self, request: &Request) -> Answer {
        let (before, mut outcomes) = (self.clone(), Vec::new());
        for (at, operation) in request.operations.iter().enumerate() {
            match self.operate(&operation.table, &operation.action) {
                Ok(outcome) => outcomes.push(outcome),
                Err(status) => {
                    *self = before;
                    return Err(Refusal { status, operation: at as u32 });
                }
            }
        }
        Ok(outcomes)
    }

    /// All names, and the rows in the order of their keys.
    pub(crate) fn contents(&self) -> BTreeMap<String, Vec<Row>> {
        let sorted = |table: &Table| {
            let mut rows = table.rows.clone();
            rows.sort();
            rows
        };
        self.tables.iter().map(|(name, table)| (name.clone(), sorted(table))).collect()
    }

    fn operate(&mut self, name: &str, action: &Action) -> Result<Outcome, Status> {
        if let Action::Make(schema) = action {
            if self.tables.contains_key(name) {
                return Err(Status::TableExists);
            }
            let table = Table { schema: schema.clone(), rows: Vec::new() };
            self.tables.insert(name.to_owned(), table);
            return Ok(Outcome::Done);
        }
        if *action == Action::List {
            let tables = self.tables.range(name.to_owned()..);
            let tables = tables.map(|(name, table)| (name.clone(), table.schema.clone())).collect();
            return Ok(Outcome::Tables { tables, has_more: false });
        }
        let table = self.tables.get_mut(name).ok_or(Status::NoTable)?;
        if *action == Action::Drop {
            self.tables.remove(name);
            return Ok(Outcome::Done);
        }
        table.operate(action)
    }
}

impl Table {
    fn operate(&mut self, action: &Action) -> Result<Outcome, Status> {
        match action {
            Action::Insert(row) => self.insert(row),
            Action::Upsert(row) => self.upsert(row),
            Action::Update(key, changes) => self.update(key, changes),
            Action::Delete(key) => {
                let Some(at) = self.find(key)? else { return Ok(Outcome::NoRow) };
                self.rows.remove(at);
                Ok(Outcome::Done)
            }
            Action::Get(key) => {
                let at = self.find(key)?;
                Ok(at.map_or(Outcome::NoRow, |at| Outcome::Row(self.rows[at].clone())))
            }
            Action::Scan(index, range) => self.scan(*index, range),
            Action::Expect(key, condition) => self.expect(key, condition),
            Action::Make(_) | Action::Drop | Action::List => unreachable!("done already"),
        }
    }

    fn insert(&mut self, row: &Row) -> Result<Outcome, Status> {
        self.check(row)?;
        match self.find(&row[..self.schema.key_fields()])? {
            Some(_) => Err(Status::RowExists),
            None => self.add(row.clone()),
        }
    }

    fn upsert(&mut self, row: &Row) -> Result<Outcome, Status> {
        self.check(row)?;
        if let Some(at) = self.find(&row[..self.schema.key_fields()])? {
            self.rows.remove(at);
        }
        self.add(row.clone())
    }

    fn update(&mut self, key: &[Value], changes: &[(u8, Change)]) -> Result<Outcome, Status> {
        let at = self.find(key)?.ok_or(Status::NoRow)?;
        let mut row = self.rows[at].clone();
        for (field, change) in changes {
            let field = usize::from(*field);
            if field < self.schema.key_fields() || field >= row.len() {
                return Err(Status::Mismatch);
            }
            row[field] = match (change, &row[field]) {
                (Change::Set(value), _) => value.clone(),
                (Change::Add(_), Value::Bytes(_)) => return Err(Status::Mismatch),
                (Change::Add(by), Value::I64(is)) => {
                    let sum = i128::from(*is) + i128::from(*by);
                    Value::I64(sum.try_into().map_err(|_| Status::Overflow)?)
                }
                (Change::Add(by), Value::U64(is)) => {
                    let sum = i128::from(*is) + i128::from(*by);
                    Value::U64(sum.try_into().map_err(|_| Status::Overflow)?)
                }
            };
        }
        self.check(&row)?;
        self.rows.remove(at);
        self.add(row)
    }

    fn expect(&self, key: &[Value], condition: &Condition) -> Result<Outcome, Status> {
        let row = self.find(key)?.map(|at| &self.rows[at]);
        let is_so = match condition {
            Condition::Absent => row.is_none(),
            Condition::Has(fields) => {
                for (field, value) in fields {
                    let kind = self.schema.kinds().get(usize::from(*field));
                    if kind != Some(&value.kind()) {
                        return Err(Status::Mismatch);
                    }
                }
                let has = |(field, value): &(u8, Value)| {
                    row.is_some_and(|row| row[usize::from(*field)] == *value)
                };
                row.is_some() && fields.iter().all(has)
            }
        };
        if is_so { Ok(Outcome::Done) } else { Err(Status::NotAsExpected) }
    }

    fn scan(&self, index: Option<u8>, range: &Range) -> Result<Outcome, Status> {
        let index = match index {
            Some(at) => Some(self.schema.indexes().get(usize::from(at)).ok_or(Status::Mismatch)?),
            None => None,
        };
        for edge in [&range.low, &range.high].into_iter().flatten() {
            let kinds = self.kinds(index);
            let fits = edge.values.len() <= kinds.len()
                && edge.values.iter().zip(kinds).all(|(value, kind)| value.kind() == kind);
            if !fits {
                return Err(Status::Mismatch);
            }
        }
        let is_in = |row: &&Row| {
            let order = |edge: &Edge| {
                let begin = self.order(index, row)[..edge.values.len()].to_vec();
                (begin.cmp(&edge.values), edge.is_inclusive)
            };
            let is_above = range.low.as_ref().map(order).is_none_or(|(order, inclusive)| {
                order == Ordering::Greater || inclusive && order == Ordering::Equal
            });
            let is_below = range.high.as_ref().map(order).is_none_or(|(order, inclusive)| {
                order == Ordering::Less || inclusive && order == Ordering::Equal
            });
            is_above && is_below
        };
        let mut rows: Vec<Row> = self.rows.iter().filter(is_in).cloned().collect();
        rows.sort_by_key(|row| self.order(index, row));
        if range.is_down {
            rows.reverse();
        }
        let has_more = rows.len() > range.limit as usize;
        rows.truncate(range.limit as usize);
        Ok(Outcome::Rows { rows, has_more })
    }

    /// By what a row is ordered.
    fn order(&self, index: Option<&Index>, row: &Row) -> Vec<Value> {
        let fields = index.map_or(vec![], |index| index.fields.clone());
        let values = fields.iter().map(|field| row[usize::from(*field)].clone());
        let is_unique = index.is_some_and(|index| index.is_unique);
        let key = if is_unique { &[] } else { &row[..self.schema.key_fields()] };
        values.chain(key.iter().cloned()).collect()
    }

    fn kinds(&self, index: Option<&Index>) -> Vec<holdfast_table::Kind> {
        let all = self.schema.kinds();
        let fields = index.map_or(vec![], |index| index.fields.clone());
        let is_unique = index.is_some_and(|index| index.is_unique);
        let key = if is_unique { &[] } else { &all[..self.schema.key_fields()] };
        fields.iter().map(|field| all[usize::from(*field)]).chain(key.iter().copied()).collect()
    }

    fn check(&self, row: &Row) -> Result<(), Status> {
        let kinds = row.iter().map(Value::kind);
        if kinds.eq(self.schema.kinds().iter().copied()) { Ok(()) } else { Err(Status::Mismatch) }
    }

    fn find(&self, key: &[Value]) -> Result<Option<usize>, Status> {
        let kinds = self.schema.kinds()[..self.schema.key_fields()].iter().copied();
        if !key.iter().map(Value::kind).eq(kinds) {
            return Err(Status::Mismatch);
        }
        Ok(self.rows.iter().position(|row| &row[..self.schema.key_fields()] == key))
    }

    /// Adds a row whose key is free.
    fn add(&mut self, row: Row) -> Result<Outcome, Status> {
        for index in self.schema.indexes().iter().filter(|index| index.is_unique) {
            let values = self.order(Some(index), &row);
            if self.rows.iter().any(|other| self.order(Some(index), other) == values) {
                return Err(Status::NotUnique);
            }
        }
        self.rows.push(row);
        Ok(Outcome::Done)
    }
}
