//! `holdfast table list | get | scan`.
//!
//! Promise: every row of the range once, in order; what is printed of a value is taken as a value.
//! Never: keeps more rows in memory than one request answers, or changes one.

use super::asked::Asked;
use super::values::{data, key_of, line, parse_fields, table_data, table_line};
use crate::cli::table::{InTables, RowsArgs};
use crate::output::{Output, read_to_end, write_line};
use holdfast_config::Config;
use holdfast_config::problem::Outcome;
use holdfast_process::tables::failed;
use holdfast_table::{Edge, Outcome as Done, Range, Request, Row, Schema};
use std::io::{self, BufWriter, Write, stdout};

/// Rows that are asked for in one request.
const ROWS: u32 = 1000;

/// Prints which tables there are.
pub(super) fn list(config: &Config, name: &str, output: Output) -> Outcome<()> {
    let asked = Asked::find(config, name)?;
    let tables = asked.tables()?;
    asked.close()?;
    let data: Vec<_> = tables.iter().map(|(name, schema)| table_data(name, schema)).collect();
    let lines: Vec<_> = tables.iter().map(|(name, schema)| table_line(name, schema)).collect();
    let text = if lines.is_empty() { "there are none".to_owned() } else { lines.join("\n") };
    output.result(&data, &text);
    Ok(())
}

/// Prints a row.
pub(super) fn get(config: &Config, of: &InTables, key: &[String], output: Output) -> Outcome<()> {
    let asked = Asked::find(config, &of.name)?;
    let schema = asked.schema(&of.table)?;
    let key = parse_fields(key, &schema, &key_of(&schema)).map_err(|why| asked.refused(why))?;
    let found = asked.ask(&Request::new().get(&of.table, key))?;
    let Done::Row(row) = found else { return Err(asked.refused("there is no such row")) };
    asked.close()?;
    output.result(&data(&row), &line(&row));
    Ok(())
}

/// What is still to be printed of a table.
struct Rest<'a> {
    table: &'a str,
    index: Option<u8>,
    /// The fields that say where a row stands.
    order: Vec<u8>,
    range: Range,
    rows: u64,
}

/// Prints rows.
pub(super) fn scan(config: &Config, of: &InTables, part: &RowsArgs, output: Output) -> Outcome<()> {
    let asked = Asked::find(config, &of.name)?;
    let schema = asked.schema(&of.table)?;
    let mut rest = Rest::of(&of.table, part, &schema).map_err(|why| asked.refused(why))?;
    let mut out = BufWriter::new(stdout().lock());
    while rest.rows > 0 {
        // What came before a problem is printed when the buffer is dropped.
        let rows = rest.next(&asked)?;
        if !print(&mut out, &rows, output.json).map_err(|error| failed(&of.name, error))? {
            break;
        }
    }
    let _read = read_to_end(&mut out).map_err(|error| failed(&of.name, error))?;
    asked.close()
}

impl<'a> Rest<'a> {
    fn of(table: &'a str, part: &RowsArgs, schema: &Schema) -> Result<Rest<'a>, String> {
        let order = order(schema, part.by)?;
        let edge = |texts: &[String], is_inclusive: bool| {
            let values = parse_fields(texts, schema, &order)?;
            Ok::<_, String>((!values.is_empty()).then_some(Edge { values, is_inclusive }))
        };
        let (low, high) = (edge(&part.from, true)?, edge(&part.to, false)?);
        let range = Range { low, high, is_down: part.reverse, limit: ROWS };
        let rows = part.limit.unwrap_or(u64::MAX);
        Ok(Rest { table, index: part.by, order, range, rows })
    }

    /// The next rows, which are to be printed no more.
    fn next(&mut self, asked: &Asked<'_>) -> Outcome<Vec<Row>> {
        self.range.limit = self.rows.min(ROWS.into()) as u32;
        let request = match self.index {
            None => Request::new().scan(self.table, self.range.clone()),
            Some(index) => Request::new().scan_by(self.table, index, self.range.clone()),
        };
        let Done::Rows { rows, has_more } = asked.ask(&request)? else {
            return Err(asked.failed("an answer is none to what was asked"));
        };
        self.rows = if has_more { self.rows - rows.len() as u64 } else { 0 };
        if let Some(last) = rows.last() {
            let values = self.order.iter().map(|field| last[usize::from(*field)].clone()).collect();
            let behind = Some(Edge { values, is_inclusive: false });
            match self.range.is_down {
                true => self.range.high = behind,
                false => self.range.low = behind,
            }
        }
        Ok(rows)
    }
}

/// The fields in whose order rows are scanned. The error is a sentence.
fn order(schema: &Schema, by: Option<u8>) -> Result<Vec<u8>, String> {
    let Some(by) = by else { return Ok(key_of(schema)) };
    let index = schema.indexes().get(usize::from(by));
    let index = index.ok_or_else(|| format!("there is no index {by}"))?;
    let mut order = index.fields.clone();
    if !index.is_unique {
        order.extend(key_of(schema));
    }
    Ok(order)
}

/// Prints rows. Returns whether anybody reads on.
fn print(out: &mut impl Write, rows: &[Row], as_json: bool) -> io::Result<bool> {
    for row in rows {
        let line = if as_json { data(row).to_string() } else { line(row) };
        if !write_line(out, &line)? {
            return Ok(false);
        }
    }
    Ok(true)
}
