//! `holdfast store stat`.
//!
//! Promise: what opening the store tells, and what its files weigh.
//! Never: changes what is in the store.

use super::door::Door;
use crate::cli::store::StoreArgs;
use crate::output::Output;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_store::{LogPlace, Rsn, Stat, Statistics};
use serde_json::{Value, json};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What a store's files weigh, by what they are for.
struct Files {
    log_bytes: u64,
    archive_bytes: u64,
    runs: u64,
    /// Of pages, and of what is known of them.
    page_bytes: u64,
}

/// What is shown.
struct Shown {
    trees: Vec<String>,
    stat: Stat,
    statistics: Statistics,
    losers: usize,
    files: Files,
    /// The log's name, if it is in the server, which has its files.
    served_log: Option<String>,
}

/// Shows what a store is.
pub(super) fn stat(door: Door<'_>, store: &StoreArgs, output: Output) -> Outcome<()> {
    let opened = door.open("looking at", store)?;
    let shown = Shown {
        trees: opened.store.tree_names().map_err(|error| opened.refused(&error))?,
        stat: opened.store.stat(),
        statistics: opened.store.statistics(),
        losers: opened.recovery.losers,
        files: files(&store.directory).map_err(|error| opened.failed(&error))?,
        served_log: match &store.log {
            Some(LogPlace::Served { name, .. }) => Some(name.clone()),
            _ => None,
        },
    };
    opened.close()?;
    output.result(&json(&shown), &text(&shown));
    Ok(())
}

fn files(directory: &Path) -> io::Result<Files> {
    let (_, page_bytes) = weight(directory)?;
    let (_, log_bytes) = weight(&directory.join("log"))?;
    let (runs, archive_bytes) = weight(&directory.join("archive"))?;
    Ok(Files { log_bytes, archive_bytes, runs, page_bytes })
}

/// How many files there are in a directory, and how many bytes of the disk they have.
fn weight(directory: &Path) -> io::Result<(u64, u64)> {
    const BLOCK_BYTES: u64 = 512;
    let (mut files, mut bytes) = (0, 0);
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?.metadata()?;
        if entry.is_file() {
            files += 1;
            bytes += BLOCK_BYTES * entry.blocks();
        }
    }
    Ok((files, bytes))
}

fn text(Shown { trees, stat, statistics, losers, files, served_log }: &Shown) -> String {
    let log = match served_log {
        Some(name) => format!("{name}, in the server"),
        None => rounded(files.log_bytes),
    };
    let (archive, pages) = (rounded(files.archive_bytes), rounded(files.page_bytes));
    let Stat { next, archived, cleaned, lost_records, .. } = stat;
    let lost = |(begin, end): &(Rsn, Rsn)| format!("\nlost      records from {begin} to {end}");
    let lost: String = lost_records.iter().map(lost).collect();
    format!(
        "trees     {}\n\
         records   up to {next}; archived up to {archived}, in pages up to {cleaned}\n\
         unended   {losers} transactions, when it was opened\nlog       {log}\n\
         archive   {archive} in {} runs, with {}\n\
         pages     {}, {} of them free; {pages} on the disk\n\
         put off   {} not archived, {} of records not in pages, {} not merged{lost}",
        trees.join(", "),
        files.runs,
        moments(stat),
        stat.pages,
        stat.free_pages,
        rounded(statistics.unarchived_log_bytes),
        rounded(statistics.uncleaned_bytes),
        rounded(statistics.merge_debt_bytes),
    )
}

/// Which moments the store can be made again as of, for people.
pub(super) fn moments(stat: &Stat) -> String {
    match (stat.kept_from, stat.kept_upto) {
        (from, None) => format!("every moment from {from} on"),
        (from, Some(upto)) if from < upto => format!("every moment from {from} to {upto}"),
        _ => "no moment, since runs are missing".to_owned(),
    }
}

fn json(Shown { trees, stat, statistics, losers, files, served_log }: &Shown) -> Value {
    let lost = stat.lost_records.iter().map(|(begin, end)| json!([begin.get(), end.get()]));
    let lost: Vec<_> = lost.collect();
    json!({
        "trees": trees,
        "end_rsn": stat.next.get(),
        "archived_rsn": stat.archived.get(),
        "cleaned_rsn": stat.cleaned.get(),
        "losers": losers,
        "pages": stat.pages,
        "free_pages": stat.free_pages,
        "unfreed_pages": stat.unfreed_pages,
        "kept_from_rsn": stat.kept_from.get(),
        "kept_upto_rsn": stat.kept_upto.map(Rsn::get),
        "lost_records": lost,
        "restoring": stat.is_restoring,
        "served_log": served_log,
        "log_file_bytes": served_log.is_none().then_some(files.log_bytes),
        "archive_runs": files.runs,
        "archive_file_bytes": files.archive_bytes,
        "page_file_bytes": files.page_bytes,
        "unarchived_log_bytes": statistics.unarchived_log_bytes,
        "uncleaned_bytes": statistics.uncleaned_bytes,
        "merge_debt_bytes": statistics.merge_debt_bytes,
    })
}
