//! Values of rows as people read and write them.
//!
//! Promise: what is printed of a value is read as that value.
//! Never: takes a text for a value of another kind than the field's.

use crate::spelling;
use holdfast_table::{Index, Kind, Row, Schema, Value};
use serde_json::{Value as Json, json};

/// A value of a field of this kind. The error is a sentence.
pub(super) fn parse(text: &str, kind: Kind) -> Result<Value, String> {
    let no_number = |_| format!("`{text}` is no value of a field of kind {}", word(kind));
    match kind {
        Kind::U64 => text.parse().map(Value::U64).map_err(no_number),
        Kind::I64 => text.parse().map(Value::I64).map_err(no_number),
        Kind::Bytes => spelling::parse(text).map(Value::Bytes),
    }
}

/// Values of the first of these fields, as many as there are texts. The error is a sentence.
pub(super) fn parse_fields(
    texts: &[String],
    schema: &Schema,
    fields: &[u8],
) -> Result<Row, String> {
    if texts.len() > fields.len() {
        return Err(format!("{} values are too many: the order has {}", texts.len(), fields.len()));
    }
    let value = |(text, field): (&String, &u8)| parse(text, schema.kinds()[usize::from(*field)]);
    texts.iter().zip(fields).map(value).collect()
}

/// A row as a line.
pub(super) fn line(row: &Row) -> String {
    row.iter().map(text).collect::<Vec<_>>().join("\t")
}

/// A row as data.
pub(super) fn data(row: &Row) -> Json {
    row.iter().map(value_data).collect()
}

/// A table as a line.
pub(super) fn table_line(name: &str, schema: &Schema) -> String {
    let fields = |fields: &[u8]| fields.iter().map(u8::to_string).collect::<Vec<_>>().join(", ");
    let kinds = schema.kinds().iter().map(|kind| word(*kind)).collect::<Vec<_>>().join(", ");
    let mut line = format!("{name}\t{kinds}; key {}", fields(&key_of(schema)));
    for (number, index) in schema.indexes().iter().enumerate() {
        let unique = if index.is_unique { " unique" } else { "" };
        line += &format!("; index {number}{unique} {}", fields(&index.fields));
    }
    line
}

/// A table as data.
pub(super) fn table_data(name: &str, schema: &Schema) -> Json {
    let kinds: Vec<_> = schema.kinds().iter().map(|kind| word(*kind)).collect();
    let index = |index: &Index| json!({ "fields": index.fields, "unique": index.is_unique });
    let indexes: Vec<_> = schema.indexes().iter().map(index).collect();
    json!({ "table": name, "fields": kinds, "key": key_of(schema), "indexes": indexes })
}

/// The fields of the primary key.
pub(super) fn key_of(schema: &Schema) -> Vec<u8> {
    (0..schema.key_fields() as u8).collect()
}

fn text(value: &Value) -> String {
    match value {
        Value::U64(number) => number.to_string(),
        Value::I64(number) => number.to_string(),
        Value::Bytes(bytes) => spelling::text(bytes),
    }
}

fn value_data(value: &Value) -> Json {
    match value {
        Value::U64(number) => json!(number),
        Value::I64(number) => json!(number),
        Value::Bytes(bytes) => json!(spelling::text(bytes)),
    }
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::U64 => "u64",
        Kind::I64 => "i64",
        Kind::Bytes => "bytes",
    }
}

#[cfg(test)]
mod tests;
