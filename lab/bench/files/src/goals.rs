//! What the figures are to be, and what is shown of them.
//!
//! Promise: a ratio is taken run by run, and the class that does worse counts.
//! Never: measures.

use holdfast_bench_common::colours::{LIMIT, OTHER, OWN};
use holdfast_bench_common::ledger::Ledger;
use holdfast_bench_common::ratios::divided;
use holdfast_figures::{Bar, Better, Figure, Panel, Scale, median};

use crate::places::Kind;

/// What an acknowledgement meant.
pub const CLASS: &str = "memory: class Memory on shm; disk: class Disk; ext4: as far as the page \
     cache, and to disk with a sync, which write_1m ends with; bindfs and synced: as ext4; bare: \
     as far as the page cache, synced or not";

/// Times over those of ext4: at most this.
const TIMES: [(&str, Option<f64>); 11] = [
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
    ("pg_copy", None),
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
    let times = TIMES.map(|(name, goal)| (name, "s", Better::Lower, goal));
    let rates = RATES.map(|(name, goal)| (name, "tps", Better::Higher, Some(goal)));
    let mut figures = Vec::new();
    for (name, unit, better, goal) in times.into_iter().chain(rates) {
        let over = |kind: Kind| {
            let runs = |kind: Kind| ledger.runs(&format!("files.{}.{name}_{unit}", kind.name()));
            divided(runs(kind), runs(Kind::Ext4))
        };
        let volumes = Kind::VOLUMES.into_iter().filter_map(over);
        figures.extend(worse(&format!("files.{name}.over_ext4"), better, volumes, goal));
        for kind in Kind::FUSE_ALONE {
            let id = format!("files.{name}.{}_over_ext4", kind.name());
            figures.extend(over(kind).map(|runs| Figure::of(id, "ratio", better, runs)));
        }
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
        Kind::Bare | Kind::Synced | Kind::Bindfs => LIMIT,
        Kind::Memory | Kind::Disk => OWN,
    };
    let bars = |name: &str, unit: &str| {
        let bar = |kind: &Kind| Bar {
            label: kind.name().into(),
            colour: colour(*kind),
            id: format!("files.{}.{name}_{unit}", kind.name()),
        };
        Kind::ALL.iter().map(bar).collect()
    };
    let times = TIMES.iter().map(|(name, _)| Panel {
        title: format!("{name}, seconds"),
        scale: Scale::Linear,
        bars: bars(name, "s"),
    });
    let rates = RATES.iter().map(|(name, _)| Panel {
        title: format!("{name}, transactions/s"),
        scale: Scale::Linear,
        bars: bars(name, "tps"),
    });
    times.chain(rates).collect()
}
