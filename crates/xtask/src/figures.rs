//! The figures of every benchmark, for people.
//!
//! Promise: `bench/results/index.html` shows each `NAME.json` there as a table, with its plot; the
//! README shows those that have a goal and the rates behind them, and `tidy` compares.
//! Never: measures, or changes a figure.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::source::ends;

const README: &str = "README.md";
const RESULTS: &str = "bench/results";

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <title>Holdfast: figures</title><style>body{font:15px/1.5 sans-serif;max-width:60rem;\
    margin:2rem auto}td,th{padding:.2rem .8rem;text-align:left}</style></head><body>\n\
    <h1>Holdfast: figures</h1>\n";

/// Where the README's table stands: between these two lines.
const BEGIN: &str = "<!-- begin of figures: cargo xtask figures -->\n";
const END: &str = "<!-- end of figures -->\n";

/// Writes the page and the README's table. True, as there is nothing to find wrong.
pub(crate) fn write(root: &Path) -> io::Result<bool> {
    let results = root.join(RESULTS);
    let mut page = HEAD.to_owned();
    for (path, result) in read(&results)? {
        let plot = fs::read_to_string(path.with_extension("svg")).unwrap_or_default();
        page.push_str(&section(&result, &plot));
    }
    page.push_str("</body></html>\n");
    fs::write(results.join("index.html"), page)?;
    let (readme, wanted) = readme(root)?;
    if readme != wanted {
        fs::write(root.join(README), wanted)?;
    }
    Ok(true)
}

/// True if the README shows the figures that are there.
pub(crate) fn are_shown(root: &Path) -> io::Result<bool> {
    let (readme, wanted) = readme(root)?;
    Ok(readme == wanted)
}

/// The README as it is, and as it should be.
fn readme(root: &Path) -> io::Result<(String, String)> {
    let text = fs::read_to_string(root.join(README))?;
    let tables: Vec<String> =
        read(&root.join(RESULTS))?.iter().map(|(_, result)| table(result)).collect();
    // Without a line between them the next one's first sentence would be a row of this one.
    let wanted = between(&text, &tables.join("\n"))
        .ok_or_else(|| io::Error::other(format!("{README} has no lines {BEGIN}{END}")))?;
    Ok((text, wanted))
}

/// The text with `tables` between the two lines; `None` if they are missing.
fn between(text: &str, tables: &str) -> Option<String> {
    let (before, rest) = text.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    let tables = if tables.is_empty() { "No results are committed.\n" } else { tables };
    Some(format!("{before}{BEGIN}{tables}{END}{after}"))
}

/// Path and content of each result, by name.
fn read(results: &Path) -> io::Result<Vec<(PathBuf, Value)>> {
    let Ok(entries) = fs::read_dir(results) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let paths = paths.into_iter().filter(|path| ends(path, "json"));
    paths
        .map(|path| Ok((path.clone(), serde_json::from_str(&fs::read_to_string(&path)?)?)))
        .collect()
}

/// One benchmark in the README: figures with a goal, and rates.
fn table(result: &Value) -> String {
    let (machine, of) = (&result["machine"], |key: &str| plain(&result[key]));
    let classes = figures(result).any(|figure| figure.get("class").is_some());
    let mut text = format!(
        "`{}`, {}, on {} ({} cores, Linux {}), disk {}.\nAn acknowledgement meant: {}.\n\n\
         | figure | median | unit | goal |{}\n|---|---:|---|---|{}\n",
        of("name"),
        of("date"),
        plain(&machine["cpu"]),
        plain(&machine["cores"]),
        plain(&machine["kernel"]),
        plain(&machine["disk"]),
        of("class"),
        if classes { " acknowledged by |" } else { "" },
        if classes { "---|" } else { "" },
    );
    for figure in figures(result).filter(|it| is_shown(it)) {
        let bound = if figure["better"] == "lower" { "at most" } else { "at least" };
        let goal = figure["goal"].as_f64().map(|goal| format!("{bound} {goal}"));
        let (id, value, unit) = (&figure["id"], &figure["value"], &figure["unit"]);
        let goal = goal.unwrap_or_default();
        let mut row = vec![format!("`{}`", plain(id)), plain(value), plain(unit), goal];
        row.extend(classes.then(|| plain(&figure["class"])));
        let _infallible = writeln!(text, "| {} |", row.join(" | "));
    }
    text
}

fn figures(result: &Value) -> impl Iterator<Item = &Value> {
    result["figures"].as_array().into_iter().flatten()
}

fn is_shown(figure: &Value) -> bool {
    figure.get("goal").is_some() || figure["unit"] == "transactions/s"
}

/// A value as it stands in a sentence; numbers with three figures, whole where they are large.
fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or(String::new(), rounded),
        _ => String::new(),
    }
}

fn rounded(real: f64) -> String {
    match real.abs() {
        _ if real.fract() == 0.0 => format!("{real:.0}"),
        size if size >= 100.0 => format!("{real:.0}"),
        size if size >= 10.0 => format!("{real:.1}"),
        size if size >= 1.0 => format!("{real:.2}"),
        _ => format!("{real:.3}"),
    }
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
    for figure in figures(result) {
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

#[cfg(test)]
mod tests;
