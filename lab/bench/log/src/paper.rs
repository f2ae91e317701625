//! The paper's own figures, and its two tables with ours beside them.
//!
//! Promise: the paper's numbers are those of its Tables I and II, taken on its machine; ours are
//! medians of this run.
//! Never: calls a figure durable that is not.

use std::fmt::Write;

use holdfast_figures::{Figure, Figures};

use crate::effort::SETS;
use crate::record::Format;

/// Bytes of a record in each format, as the paper counts megabytes.
const BYTES: [f64; 2] = [113.0, 305.0];

/// Records a second of its Table I and its Table II, by format, then by set.
const WRITTEN: [[f64; 3]; 2] =
    [[278_574.81, 518_376.44, 921_404.22], [236_389.85, 401_412.97, 634_115.41]];
const READ: [[f64; 3]; 2] =
    [[2_822_466.84, 3_563_791.87, 3_800_836.18], [336_791.05, 349_993.0, 368_785.96]];

/// The id of a rate of the paper's workload.
pub(crate) fn id(what: &str, format: Format, set: usize) -> String {
    format!("log.paper.{what}.{}.set{set}.records_per_s", format.name())
}

/// The paper's figure for the same thing, if it has one, as a goal.
pub(crate) fn beside(figure: Figure) -> Figure {
    let goal = cells().find_map(|(format, place)| {
        let set = SETS[place];
        let is = |what| id(what, format, set) == figure.id;
        let written = is("nosync.write").then(|| WRITTEN[format as usize][place]);
        written.or_else(|| is("read").then(|| READ[format as usize][place]))
    });
    match goal {
        Some(goal) => figure.against(goal, "the paper, on its machine"),
        None => figure,
    }
}

fn cells() -> impl Iterator<Item = (Format, usize)> {
    Format::ALL.into_iter().flat_map(|format| (0..SETS.len()).map(move |place| (format, place)))
}

/// Both tables, as Markdown.
pub(crate) fn tables(figures: &Figures) -> String {
    let written = [
        Column { name: "no sync", what: "nosync.write" },
        Column { name: "no sync, until all is durable", what: "deferred.write" },
        Column { name: "a sync a set", what: "synced.write" },
        Column { name: "bare loop, no sync", what: "limit.nosync.write" },
        Column { name: "bare loop, a sync a set", what: "limit.synced.write" },
    ];
    let read = [
        Column { name: "read back", what: "read" },
        Column { name: "decoded from memory", what: "limit.read" },
    ];
    let mut text = String::from(HEAD);
    table(&mut text, figures, "Table I: writing", &WRITTEN, &written);
    table(&mut text, figures, "Table II: reading", &READ, &read);
    text
}

const HEAD: &str = "# The paper's workload\n\n\
    Its record, 2,000,000 of them, in sets of 1 (A), 2 (B) and 4 (C). The columns `paper` are\n\
    its own numbers, from its machine; the others are medians of this machine. `no sync` is\n\
    what the paper's numbers imply, 4 us a set: nothing is promised of such a record. With a\n\
    sync a set, fewer records are written, for a fixed time; they are durable, and what that\n\
    costs is the device, as the bare loop shows. Seconds are for 2,000,000 records; MB/s are\n\
    of encoded records.\n";

/// A column of ours.
struct Column {
    name: &'static str,
    what: &'static str,
}

fn table(
    text: &mut String,
    figures: &Figures,
    title: &str,
    paper: &[[f64; 3]; 2],
    columns: &[Column],
) {
    let names: Vec<&str> = columns.iter().map(|column| column.name).collect();
    let _infallible = write!(
        text,
        "\n## {title}\n\n| | paper | {} |\n|---|---:|{}\n",
        names.join(" | "),
        "---:|".repeat(columns.len())
    );
    for (format, place) in cells() {
        let ours = columns.iter().map(|column| {
            figures.get(&id(column.what, format, SETS[place])).map(|figure| figure.value)
        });
        let rates: Vec<Option<f64>> =
            std::iter::once(Some(paper[format as usize][place])).chain(ours).collect();
        rows(text, format, place, &rates);
    }
}

/// The paper's three metrics of one configuration.
fn rows(text: &mut String, format: Format, place: usize, rates: &[Option<f64>]) {
    let bytes = BYTES[format as usize];
    let metrics: [(&str, &dyn Fn(f64) -> String); 3] = [
        ("s", &|rate| format!("{:.3}", 2e6 / rate)),
        ("MB/s", &|rate| format!("{:.1}", rate * bytes / 1e6)),
        ("records/s", &|rate| format!("{rate:.0}")),
    ];
    for (unit, shown) in metrics {
        let cell = |rate: &Option<f64>| rate.map_or_else(String::new, shown);
        let cells: Vec<String> = rates.iter().map(cell).collect();
        let configuration = char::from(b'A' + place as u8);
        let _infallible =
            writeln!(text, "| {} {configuration}, {unit} | {} |", format.name(), cells.join(" | "));
    }
}
