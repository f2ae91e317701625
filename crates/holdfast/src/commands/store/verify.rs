//! `holdfast store verify`.
//!
//! Promise: every page is compared with its records, in memory and on the disk, also behind damaged
//! ones, and all trees are looked at; damage ends it with its own exit code, and names the page.
//! Never: changes what is in a tree; frees anything where something is damaged.

use super::door::Door;
use crate::cli::store::StoreArgs;
use crate::output::{Output, Progress};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_store::{CheckedTrees, FaultKind, PageNumber, Verified, VerifyFault};
use serde_json::{Value, json};

/// Bytes of a page.
const PAGE_BYTES: u64 = 8192;

/// Reads everything, and frees what nobody reaches if it is asked to.
pub(super) fn verify(
    door: Door<'_>,
    store: &StoreArgs,
    reclaims: bool,
    output: Output,
) -> Outcome<()> {
    let mut opened = door.open("verifying", store)?;
    let all_bytes = opened.store.stat().pages * PAGE_BYTES;
    let mut progress = Progress::of_bytes("comparing");
    let found = opened.store.verify(&mut |found: &Verified| {
        progress.done(found.pages * PAGE_BYTES, all_bytes);
    });
    drop(progress);
    let found = found.map_err(|error| opened.failed(&error))?;
    let may_free = reclaims && found.faults.is_empty();
    let freed = may_free.then(|| opened.store.reclaim()).transpose();
    let freed = freed.map_err(|error| opened.failed(&error))?;
    let what = opened.what();
    opened.close()?;
    output.result(&json(&found, freed), &text(&found, freed));
    let Some((page, fault)) = found.faults.first() else { return Ok(()) };
    let why =
        format!("{} pages are not as they should be; {}", found.faults.len(), told(*page, fault));
    Err(Problem::new(Exit::Damaged, what, why, remedy(&found)))
}

/// What to do about the worst of the faults.
fn remedy(found: &Verified) -> &'static str {
    let is_on_device = |(_, fault): &(_, VerifyFault)| matches!(fault, VerifyFault::OnDevice(_));
    match found.faults.iter().all(is_on_device) {
        true => "nothing is lost: they are made again of their records; see to the disk",
        false => "what lies in other pages can be read; bring what is named from a backup",
    }
}

fn told(page: PageNumber, fault: &VerifyFault) -> String {
    let why = match fault {
        VerifyFault::OnDevice(kind) => format!("on the disk it is {}", adjective(*kind)),
        VerifyFault::InMemory(error) => format!("in memory it is wrong: {error}"),
        VerifyFault::Other(error) => format!("its records do not lead to it: {error}"),
        VerifyFault::Lost(error) => format!("it cannot be had: {error}"),
        VerifyFault::InTree(error) => return error.to_string(),
        _ => "it is damaged".to_owned(),
    };
    format!("page {page}: {why}")
}

fn adjective(kind: FaultKind) -> &'static str {
    match kind {
        FaultKind::Zeroed => "all zeros",
        FaultKind::Damaged => "damaged",
        FaultKind::Misplaced => "another page",
        FaultKind::LostWrite => "older than what was written",
        FaultKind::Astray => "not what its records say",
        FaultKind::Unreadable => "unreadable",
        _ => "wrong",
    }
}

fn text(found: &Verified, freed: Option<u64>) -> String {
    let Verified { pages, compared, faults, trees } = found;
    let mut text = format!("{pages} pages, of which {compared} were in memory\n");
    if let Some(CheckedTrees { trees, pages, keys, ghosts, unreached }) = trees {
        text += &format!(
            "{trees} trees with {keys} keys in {pages} pages; {ghosts} more are deleted\n"
        );
        if !unreached.is_empty() {
            text += &format!("{} pages belong to no tree\n", unreached.len());
        }
    }
    if let Some(freed) = freed {
        text += &format!("{freed} pages are free again\n");
    }
    for (page, fault) in faults {
        text += &format!("{}\n", told(*page, fault));
    }
    text
}

fn json(found: &Verified, freed: Option<u64>) -> Value {
    let fault = |(page, fault): &(PageNumber, VerifyFault)| {
        let is_repairable = matches!(fault, VerifyFault::OnDevice(_));
        json!({ "page": page.get(), "why": told(*page, fault), "repairable": is_repairable })
    };
    let trees = found.trees.as_ref().map(|found| {
        json!({
            "trees": found.trees,
            "pages": found.pages,
            "keys": found.keys,
            "ghosts": found.ghosts,
            "unreached_pages": found.unreached.iter().map(|page| page.get()).collect::<Vec<_>>(),
        })
    });
    json!({
        "verdict": if found.faults.is_empty() { "clean" } else { "corrupt" },
        "pages": found.pages,
        "compared": found.compared,
        "faults": found.faults.iter().map(fault).collect::<Vec<_>>(),
        "trees": trees,
        "freed_pages": freed,
    })
}
