//! One page with the figures of every benchmark.
//!
//! Promise: `bench/results/index.html` shows each `NAME.json` there as a table, with its plot.
//! Never: measures, or changes a figure.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use serde_json::Value;

use crate::source::ends;

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <title>Holdfast: figures</title><style>body{font:15px/1.5 sans-serif;max-width:60rem;\
    margin:2rem auto}td,th{padding:.2rem .8rem;text-align:left}</style></head><body>\n\
    <h1>Holdfast: figures</h1>\n";

/// Writes the page. True, as there is nothing to find wrong.
pub(crate) fn write(results: &Path) -> io::Result<bool> {
    let mut page = HEAD.to_owned();
    let entries = fs::read_dir(results)
        .map_err(|error| io::Error::other(format!("{}: {error}", results.display())))?;
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths.iter().filter(|path| ends(path, "json")) {
        let result: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
        let plot = fs::read_to_string(path.with_extension("svg")).unwrap_or_default();
        page.push_str(&section(&result, &plot));
    }
    page.push_str("</body></html>\n");
    fs::write(results.join("index.html"), page)?;
    Ok(true)
}

/// One benchmark.
fn section(result: &Value, plot: &str) -> String {
    let of = |key: &str| shown(&result[key]);
    let mut text = format!(
        "<h2>{}</h2>\n<p>{}, commit {}. {}</p>\n{plot}\n<table>\n\
         <tr><th>id</th><th>value</th><th>unit</th><th>goal</th></tr>\n",
        of("name"),
        of("date"),
        of("commit"),
        of("class"),
    );
    for figure in result["figures"].as_array().into_iter().flatten() {
        let cell = |key: &str| shown(&figure[key]);
        let _infallible = writeln!(
            text,
            "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
            cell("id"),
            cell("value"),
            cell("unit"),
            cell("goal"),
        );
    }
    text + "</table>\n"
}

/// A value as it may stand between two tags; three digits after the point.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.replace('&', "&amp;").replace('<', "&lt;"),
        Value::Number(number) => number.as_f64().map_or(String::new(), |real| format!("{real:.3}")),
        _ => String::new(),
    }
}
