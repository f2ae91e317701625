//! `holdfast store trim`.
//!
//! Promise: what is to be kept is kept, and what any page needs; says how much went.
//! Never: leaves out what the page file lacks.

use super::door::Door;
use super::stat::moments;
use crate::cli::store::StoreArgs;
use crate::output::Output;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_store::{Config, Keep, Rsn};
use serde_json::json;

/// Leaves out of the archive what is not to be kept.
pub(super) fn trim(door: Door<'_>, store: &StoreArgs, keep: Keep, output: Output) -> Outcome<()> {
    let doing = "trimming";
    door.check_is_there(doing, &store.directory)?;
    let config = Config { keep, clean_every_bytes: 1, ..store.config() };
    let opened = door.open_or_make(doing, store, &config)?;
    let trimmed = opened.store.trim().map_err(|error| opened.failed(&error))?;
    let stat = opened.store.stat();
    opened.close()?;
    let bytes = stat.archive_bytes;
    let text = format!(
        "{} less; the archive has {}, and {}",
        rounded(trimmed),
        rounded(bytes),
        moments(&stat)
    );
    let told = json!({
        "trimmed_bytes": trimmed,
        "archive_bytes": bytes,
        "kept_from_rsn": stat.kept_from.get(),
        "kept_upto_rsn": stat.kept_upto.map(Rsn::get),
    });
    output.result(&told, &text);
    Ok(())
}
