//! The figures of every benchmark, for people.
//!
//! Promise: `lab/bench/results/index.html` shows each `NAME.json` there as a table, with its plot;
//! `docs/figures.md` shows those that have a goal and the rates behind them, the README a few with
//! what they mean, and `tidy` compares both.
//! Never: measures, or changes a figure.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::source::ends;

const RESULTS: &str = "lab/bench/results";

const HEAD: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
    <title>Holdfast: figures</title><style>body{font:15px/1.5 sans-serif;max-width:60rem;\
    margin:2rem auto}td,th{padding:.2rem .8rem;text-align:left}</style></head><body>\n\
    <h1>Holdfast: figures</h1>\n";

/// A document of which a part is made from the results.
struct Shown {
    path: &'static str,
    /// The lines before and behind that part.
    between: [&'static str; 2],
    of: fn(&[Value]) -> String,
}

/// All of them.
const SHOWN: [Shown; 2] = [
    Shown {
        path: "docs/figures.md",
        between: ["<!-- begin of figures: cargo xtask figures -->\n", "<!-- end of figures -->\n"],
        of: tables,
    },
    Shown {
        path: "README.md",
        between: [
            "<!-- begin of headlines: cargo xtask figures -->\n",
            "<!-- end of headlines -->\n",
        ],
        of: headlines,
    },
];

/// What the README says of a figure, where `{}` stands for its value.
const HEADLINES: [(&str, &str); 9] = [
    (
        "postgres.c8.fastlog_over_sync",
        "PostgreSQL, 8 clients, TPC-B, `pg_wal` on a volume whose log has this machine's own disk \
         and whose home is on a modelled disk of 10,000 turns a minute; process, os and power are \
         survived: {} times the transactions of the modelled disk alone",
    ),
    (
        "postgres.c8.holdfast_over_sync",
        "the same on a volume that has the modelled disk alone, and survives the kill of any \
         process: {} times",
    ),
    (
        "postgres.c8.holdfast_over_async",
        "this beside `synchronous_commit = off`, which loses transactions at a kill: {}",
    ),
    ("postgres.kills.lost", "transactions lost over the kills of that run: {}"),
    (
        "mariadb.t8.holdfast_over_sync",
        "MariaDB, 8 threads of `oltp_write_only` there, its redo log on a volume: {} times",
    ),
    (
        "sqlite.wal.holdfast_over_sync",
        "SQLite, one insert a commit there, the whole database on a volume: {} times",
    ),
    (
        "files.create.over_ext4",
        "what a volume costs: making 5,000 small files takes {} times as long as on the file \
         system below",
    ),
    (
        "files.pg_tpcb.over_ext4",
        "and TPC-B wholly on a volume whose commits wait for the same fast disk comes to {} of it",
    ),
    (
        "store.durable.over_best_peer",
        "the embedded store, two threads, durable commits: {} times the best of RocksDB, fjall, \
         redb, LMDB and SQLite",
    ),
];

/// Writes the page and what documents show. True, as there is nothing to find wrong.
pub(crate) fn write(root: &Path) -> io::Result<bool> {
    let results = root.join(RESULTS);
    let mut page = HEAD.to_owned();
    for (path, result) in read(&results)? {
        let plot = fs::read_to_string(path.with_extension("svg")).unwrap_or_default();
        page.push_str(&section(&result, &plot));
    }
    page.push_str("</body></html>\n");
    fs::write(results.join("index.html"), page)?;
    for shown in &SHOWN {
        let (is, wanted) = shown.compare(root)?;
        if is != wanted {
            fs::write(root.join(shown.path), wanted)?;
        }
    }
    Ok(true)
}

/// The documents that do not show the figures that are there.
pub(crate) fn outdated(root: &Path) -> io::Result<Vec<&'static str>> {
    let mut outdated = Vec::new();
    for shown in &SHOWN {
        let (is, wanted) = shown.compare(root)?;
        outdated.extend((is != wanted).then_some(shown.path));
    }
    Ok(outdated)
}

impl Shown {
    /// The document as it is, and as it should be.
    fn compare(&self, root: &Path) -> io::Result<(String, String)> {
        let text = fs::read_to_string(root.join(self.path))?;
        let results: Vec<Value> =
            read(&root.join(RESULTS))?.into_iter().map(|(_, result)| result).collect();
        let wanted = self.filled(&text, &(self.of)(&results));
        let wanted = wanted.ok_or_else(|| {
            io::Error::other(format!("{} has no lines {}", self.path, self.between.concat()))
        })?;
        Ok((text, wanted))
    }

    /// The text with `part` between the two lines; `None` if they are missing.
    fn filled(&self, text: &str, part: &str) -> Option<String> {
        let [begin, end] = self.between;
        let (before, rest) = text.split_once(begin)?;
        let (_, after) = rest.split_once(end)?;
        let part = if part.is_empty() { "No results are committed.\n" } else { part };
        Some(format!("{before}{begin}{part}{end}{after}"))
    }
}

/// Every benchmark's table.
fn tables(results: &[Value]) -> String {
    // Without a line between them the next one's first sentence would be a row of this one.
    results.iter().map(table).collect::<Vec<_>>().join("\n")
}

/// What people are told first; a figure that was not measured is left out.
fn headlines(results: &[Value]) -> String {
    let told = |(id, said): &(&str, &str)| {
        let figure = results.iter().flat_map(figures).find(|figure| figure["id"] == *id)?;
        Some(format!("- {} (`{id}`)\n", said.replace("{}", &plain(&figure["value"]))))
    };
    HEADLINES.iter().filter_map(told).collect()
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

/// One benchmark: figures with a goal, and rates.
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
