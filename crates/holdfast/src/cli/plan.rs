//! `holdfast plan ...`, as data.
//!
//! Promise: a flag, and the key of the same name in a file, mean the same; whatever neither says is
//! as in the paper.
//! Never: acts; `commands::plan` does.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand, ValueEnum};
use holdfast_config::sizes::{self, Size};
use holdfast_plan::paper::Named;
use serde::Deserialize;
use std::path::PathBuf;

/// `holdfast plan ...`
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Say how much memory to reserve as durable memory, if a recovery may take only so long.
    ///
    /// Sizes of durable memory are simulated one after the other, each with many checkpoint
    /// intervals, on a smaller database that is like yours. The one with which requests cost least
    /// is advised.
    Advise {
        #[command(flatten)]
        system: System,
        /// How long the input and output of a recovery may take.
        #[arg(long, value_name = "SECONDS")]
        recovery_limit: f64,
        /// Write plan-advice.json and plan-advice.svg into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Say what requests and recoveries cost with many checkpoint intervals.
    Curve {
        #[command(flatten)]
        system: System,
        /// Write plan-curve.json and plan-curve.svg into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Say what requests and a recovery cost with one checkpoint interval, and how long memory
    /// takes to be full after a crash.
    Simulate {
        #[command(flatten)]
        system: System,
        /// Requests between two checkpoints [default: no checkpoints].
        #[arg(long, value_name = "REQUESTS", value_parser = clap::value_parser!(u64).range(1..))]
        interval: Option<u64>,
    },
    /// Set the numbers of the DM/6000 paper beside those of this simulator, and draw its figures 3
    /// and 4 again. Takes about ten seconds.
    Paper {
        /// Write plan-paper.json and plan-paper.svg into this folder.
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
}

/// What is simulated: one of the paper's configurations, or another one, changed by a file, changed
/// by flags.
#[derive(Debug, Args)]
pub(crate) struct System {
    /// A configuration of the paper to begin with [default: none; say --database and --memory].
    #[arg(value_name = "CONFIGURATION", value_parser = named())]
    pub named: Option<Named>,
    /// Take what the flags do not say from the table [plan] of this TOML file. Its keys are the
    /// flags, with `_` for `-`.
    #[arg(long, value_name = "PATH")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub settings: Settings,
}

/// What a system is made of; whatever is missing is as it was.
#[derive(Clone, Debug, Default, Args, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Size of the database.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub database: Option<Size>,
    /// Memory that pages can have, conventional and durable together.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub memory: Option<Size>,
    /// Of that, durable memory [default: none].
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub durable: Option<Size>,
    /// Size of a page [default: 4KiB]. Configurations of the paper keep their numbers of pages.
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub page: Option<Size>,
    /// Simulate these accesses, over and over, in place of a database and a mix: lines of `r PAGE`
    /// or `w PAGE`.
    #[arg(long, value_name = "PATH")]
    pub trace: Option<PathBuf>,
    /// The part of the pages that is hot [default: 0.2].
    #[arg(long, value_name = "PART")]
    pub hot_pages: Option<f64>,
    /// The part of the requests that is for hot pages [default: 0.8].
    #[arg(long, value_name = "PART")]
    pub hot_requests: Option<f64>,
    /// The part of the requests that changes its page [default: 0.2].
    #[arg(long, value_name = "PART")]
    pub writes: Option<f64>,
    /// Where pages go that have to leave conventional memory [default: to-disk].
    #[arg(long, value_name = "WHERE")]
    pub cold_pages: Option<ColdPagesName>,
    /// What becomes of those of them that did not change [default: written].
    #[arg(long, value_name = "WHAT")]
    pub clean_pages: Option<CleanPagesName>,
    /// Megabytes a second between memory and disk [default: 12.5].
    #[arg(long, value_name = "N")]
    pub disk_mb_per_s: Option<f64>,
    /// Megabytes a second between conventional and durable memory [default: 100].
    #[arg(long, value_name = "N")]
    pub durable_mb_per_s: Option<f64>,
    /// Millions of cycles in a second; costs are told in cycles, too [default: 100].
    #[arg(long, value_name = "N")]
    pub clock_mhz: Option<f64>,
    /// Draw requests from this seed [default: 1].
    #[arg(long)]
    pub seed: Option<u64>,
}

/// A file of settings.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PlanFile {
    /// Its one table.
    pub plan: Settings,
}

impl PlanFile {
    /// The settings that the text has. The error is a sentence that names the line.
    pub(crate) fn parse(text: &str) -> Result<PlanFile, String> {
        toml::from_str(text).map_err(|error| error.to_string().trim_end().to_owned())
    }
}

/// Where a page goes that has to leave conventional memory and has no copy in durable memory.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ColdPagesName {
    /// To disk; durable memory is for checkpoints.
    ToDisk,
    /// To durable memory while that has room.
    ToDurable,
}

/// What becomes of a page that leaves conventional memory unchanged.
#[derive(Clone, Copy, Debug, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum CleanPagesName {
    /// It is written all the same, as in the paper, unless durable memory has it.
    Written,
    /// It is forgotten, as by most systems today.
    Dropped,
}

fn named() -> impl TypedValueParser<Value = Named> {
    PossibleValuesParser::new(Named::ALL.map(Named::name)).map(|name| {
        let found = Named::ALL.into_iter().find(|named| named.name() == name);
        found.expect("the parser knows these names only")
    })
}

fn size(text: &str) -> Result<Size, String> {
    sizes::parse(text).map(Size)
}
