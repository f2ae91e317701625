//! The report: one HTML file that can be mailed.
//!
//! Promise: holds the plot, the table, every figure with its runs, the machine, and what an
//! acknowledgement meant; needs no other file and no script.
//! Never: says more than the figures do.

use std::fmt::Write;

use holdfast_figures::{Figure, Figures, escape};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}\
    pre{overflow-x:auto;background:#f4f4f4;padding:1rem}table{border-collapse:collapse}\
    td,th{padding:.2rem .8rem;text-align:left;border-bottom:1px solid #ddd}\
    .missed{color:#a00;font-weight:bold}";

/// Makes the report from the figures, the printed table and the plot.
pub(crate) fn html(figures: &Figures, table: &str, plot: &str) -> String {
    let machine = &figures.machine;
    let mut text = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <title>Holdfast: {name}</title><style>{STYLE}</style></head><body>\n\
         <h1>Holdfast: {name}</h1>\n<p>{date}, commit {commit}. {cpu}, {cores} cores, \
         Linux {kernel}. Log disk: {disk}.</p>\n\
         <p>An acknowledgement meant: <strong>{class}</strong>.</p>\n{plot}\n\
         <pre>{table}</pre>\n<h2>Every figure</h2>\n<table>\n\
         <tr><th>id</th><th>value</th><th>unit</th><th>goal</th><th>runs</th></tr>\n",
        name = escape(&figures.name),
        date = escape(&figures.date),
        commit = escape(&figures.commit),
        cpu = escape(&machine.cpu),
        cores = machine.cores,
        kernel = escape(&machine.kernel),
        disk = escape(&machine.disk),
        class = escape(&figures.class),
        table = escape(table),
    );
    for figure in &figures.figures {
        text.push_str(&row(figure));
    }
    text.push_str("</table>\n</body></html>\n");
    text
}

fn row(figure: &Figure) -> String {
    let class = if figure.met() == Some(false) { " class=\"missed\"" } else { "" };
    let goal = figure.goal.map_or(String::new(), |goal| goal.to_string());
    let mut runs = String::new();
    for run in &figure.runs {
        let _infallible = write!(runs, "{run:.3} ");
    }
    let (id, unit) = (escape(&figure.id), escape(&figure.unit));
    let value = figure.value;
    format!(
        "<tr{class}><td>{id}</td><td>{value:.3}</td><td>{unit}</td><td>{goal}</td>\
         <td>{runs}</td></tr>\n"
    )
}

#[cfg(test)]
mod tests;
