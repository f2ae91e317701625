//! What the figures are to be, and what is shown of them.
//!
//! Promise: a ratio is taken run by run, and the class that does worse counts.
//! Never: measures.

use holdfast_bench_common::colours::{LIMIT, OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::ratios::divided;
use holdfast_figures::{Bar, Better, Figure, Panel, Scale, median};

use crate::database::COMPARED;
use crate::places::Kind;

/// What an acknowledgement meant.
pub const CLASS: &str = "memory: class Memory on shm; disk: class Disk; ext4: as far as the page \
     cache, and to disk with a sync, which write_1m ends with; bare: as far as the page cache, \
     synced or not";

/// Times over those of ext4: at most this.
const TIMES: [(&str, Option<f64>); 10] = [
    ("write_1m_unsynced", None),
    ("write_1m", Some(1.2)),
    ("read_4k_cold", Some(2.0)),
    ("read_4k_warm", Some(1.5)),
    ("create", Some(4.0)),
    ("stat_first", None),
    ("stat", Some(3.0)),
    ("read_small_first", None),
    ("read_small_warm", Some(3.0)),
    ("unlink", None),
];

/// Rates over those of ext4: at least this.
const RATES: [(&str, f64); 2] = [("pg_select", 0.9), ("pg_tpcb", 0.9)];

const UMOUNT_RATE: f64 = 0.5;

/// The disk that all of it is on.
pub fn disk() -> String {
    "the disk that the build is on; volumes have log and home there".into()
}

/// Everything that is a ratio.
pub fn over_ext4(ledger: &Ledger) -> Vec<Figure> {
    let mut figures = Vec::new();
    for (name, goal) in TIMES {
        let over = |kind: Kind| {
            let runs = |kind: Kind| ledger.runs(&format!("files.{}.{name}_s", kind.name()));
            divided(runs(kind), runs(Kind::Ext4))
        };
        let id = format!("files.{name}.over_ext4");
        figures.extend(worse(&id, Better::Lower, Kind::VOLUMES.into_iter().filter_map(over), goal));
        let bare = over(Kind::Bare).map(|runs| {
            Figure::of(format!("files.{name}.bare_over_ext4"), "ratio", Better::Lower, runs)
        });
        figures.extend(bare);
    }
    for (name, goal) in RATES {
        let runs = |kind: Kind| ledger.runs(&format!("files.{}.{name}_tps", kind.name()));
        let over = |kind: Kind| divided(runs(kind), runs(Kind::Ext4));
        let id = format!("files.{name}.over_ext4");
        figures.extend(worse(&id, Better::Higher, over(Kind::Disk).into_iter(), Some(goal)));
        let bare = over(Kind::Bare).map(|runs| {
            Figure::of(format!("files.{name}.bare_over_ext4"), "ratio", Better::Higher, runs)
        });
        figures.extend(bare);
    }
    let rates = Kind::VOLUMES
        .map(|kind| ledger.runs(&format!("files.{}.umount_over_home_rate", kind.name())).to_vec());
    let rates = rates.into_iter().filter(|runs| !runs.is_empty());
    figures.extend(worse("files.umount_over_home_rate", Better::Higher, rates, Some(UMOUNT_RATE)));
    figures
}

/// The class whose median is the worse one.
fn worse(
    id: &str,
    better: Better,
    all: impl Iterator<Item = Vec<f64>>,
    goal: Option<f64>,
) -> Option<Figure> {
    let badness = |runs: &Vec<f64>| match better {
        Better::Lower => median(runs),
        Better::Higher => -median(runs),
    };
    let runs = all.max_by(|one, other| badness(one).total_cmp(&badness(other)))?;
    let figure = Figure::of(id, "ratio", better, runs);
    Some(match goal {
        Some(goal) => figure.against(goal, "ext4"),
        None => figure.beside("ext4"),
    })
}

/// What is to be compared by eye.
pub fn panels() -> Vec<Panel> {
    let colour = |kind: Kind| match kind {
        Kind::Ext4 => OTHER,
        Kind::Bare => LIMIT,
        Kind::Memory | Kind::Disk => OWN,
    };
    let bars = |name: &str, unit: &str, kinds: &[Kind]| {
        let bar = |kind: &Kind| Bar {
            label: kind.name().into(),
            colour: colour(*kind),
            id: format!("files.{}.{name}_{unit}", kind.name()),
        };
        kinds.iter().map(bar).collect()
    };
    let times = TIMES.iter().map(|(name, _)| Panel {
        title: format!("{name}, seconds"),
        scale: Scale::Linear,
        bars: bars(name, "s", &Kind::ALL),
    });
    let rates = RATES.iter().map(|(name, _)| Panel {
        title: format!("{name}, transactions/s"),
        scale: Scale::Linear,
        bars: bars(name, "tps", &COMPARED),
    });
    times.chain(rates).collect()
}
