//! Records between their bytes and what people read.
//!
//! Promise: what is printed of a record of json or message-pack can be given to `append` again; no
//! byte of a record is left out.
//! Never: guesses a type.

use crate::spelling;
use holdfast_wal::{Entry, RecordType};
use serde_json::{Value, json};

/// The bytes of a record that was given as text. The error is a sentence.
pub(super) fn from_text(records: &RecordType, text: &str) -> Result<Vec<u8>, String> {
    let no_json = |error: serde_json::Error| format!("`{text}` is not JSON: {error}");
    let value = || serde_json::from_str::<Value>(text).map_err(no_json);
    match &*records.format {
        "raw" => Ok(text.as_bytes().to_vec()),
        "json" => value().map(|_| text.as_bytes().to_vec()),
        "message-pack" => {
            rmp_serde::to_vec(&value()?).map_err(|error| format!("`{text}`: {error}"))
        }
        other => Err(format!("records of format `{other}` are written by their own program only")),
    }
}

/// A record as people see it.
enum Shown {
    Json(Value),
    Text(String),
    Bytes(String),
}

/// The bytes of a record as they are best seen; those of an unknown type as bytes.
fn shown(records: Option<&RecordType>, bytes: &[u8]) -> Shown {
    let format = records.map_or("raw", |records| &*records.format);
    let value = match format {
        "json" => serde_json::from_slice(bytes).ok(),
        "message-pack" => rmp_serde::from_slice(bytes).ok(),
        _ => None,
    };
    let text = || match format {
        "raw" => spelling::printable(bytes),
        _ => None,
    };
    match (value, text()) {
        (Some(value), _) => Shown::Json(value),
        (None, Some(text)) => Shown::Text(text.to_owned()),
        (None, None) => Shown::Bytes(spelling::hexadecimal(bytes)),
    }
}

/// One line about a record.
pub(super) fn line(records: Option<&RecordType>, entry: &Entry<Vec<u8>>, as_json: bool) -> String {
    let (lsn, index, end) = (entry.lsn.get(), entry.index, entry.end.get());
    let shown = shown(records, &entry.record);
    if as_json {
        let (key, value) = match shown {
            Shown::Json(value) => ("record", value),
            Shown::Text(text) => ("text", text.into()),
            Shown::Bytes(digits) => ("hex", digits.into()),
        };
        return json!({ "lsn": lsn, "index": index, "end": end, key: value }).to_string();
    }
    match shown {
        Shown::Json(value) => format!("{lsn}.{index} {value}"),
        Shown::Text(text) => format!("{lsn}.{index} {text}"),
        Shown::Bytes(digits) => format!("{lsn}.{index} 0x{digits}"),
    }
}

#[cfg(test)]
mod tests;
