//! `holdfast store open`.
//!
//! Promise: a store that was made or brought in order, and closed; what was found is said.
//! Never: overwrites anything.

use super::door::Door;
use crate::cli::store::StoreArgs;
use crate::output::Output;
use holdfast_attach::logs::remade;
use holdfast_config::problem::Outcome;
use holdfast_config::sizes::rounded;
use holdfast_store::{Recovery, Service};
use serde_json::{Value, json};
use std::path::Path;

/// Opens a store, or makes one.
pub(super) fn open(door: Door<'_>, store: &StoreArgs, output: Output) -> Outcome<()> {
    let opened = door.open_or_make("opening", store, &store.config())?;
    let undone = std::iter::repeat_with(|| opened.store.step(Service::Undo));
    for step in undone {
        if !step.map_err(|error| opened.failed(&error))? {
            break;
        }
    }
    let found = opened.recovery.clone();
    opened.close()?;
    output.result(&json(&found), &text(&found, &store.directory));
    Ok(())
}

fn text(found: &Recovery, directory: &Path) -> String {
    if found.is_new {
        return format!("a new store, with nothing in it: {}", directory.display());
    }
    let fell_back =
        if found.fell_back { "; its newest base did not serve, an older one did" } else { "" };
    let text = format!(
        "records up to {}, known as of {}; {} of the log were read\n\
         {} transactions had not ended, and are undone{fell_back}",
        found.end,
        found.base,
        rounded(found.read_bytes),
        found.losers,
    );
    found.remade.iter().fold(text, |text, spoilt| format!("{text}\n{}", remade(spoilt)))
}

fn json(found: &Recovery) -> Value {
    json!({
        "is_new": found.is_new,
        "end_rsn": found.end.get(),
        "base_rsn": found.base.get(),
        "fell_back": found.fell_back,
        "read_bytes": found.read_bytes,
        "records_folded": found.records_folded,
        "losers": found.losers,
        "remade": found.remade.iter().map(remade).collect::<Vec<_>>(),
    })
}
