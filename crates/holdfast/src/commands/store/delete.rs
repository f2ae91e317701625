//! `holdfast store delete`.
//!
//! Promise: the key is gone, on the disk, when this ends well.
//! Never: makes a tree, or takes a key that was not there for one that was deleted.

use super::door::Door;
use super::opened::bytes;
use crate::cli::store::InTree;
use crate::output::Output;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_store::Durability;

/// What it does, for messages.
const DOING: &str = "deleting from";

/// Deletes a key.
pub(super) fn delete(door: Door<'_>, tree: &InTree, key: &str, output: Output) -> Outcome<()> {
    let key_bytes = bytes(DOING, tree, key)?;
    let opened = door.open(DOING, &tree.store)?;
    let root = opened.tree(&tree.tree)?;
    let mut transaction = opened.store.begin();
    let deleted = transaction.delete(&root, &key_bytes).map_err(|error| opened.refused(&error))?;
    let done = transaction.commit(Durability::Disk).map_err(|error| opened.failed(&error))?;
    let what = opened.what();
    opened.close()?;
    if !deleted {
        let (why, remedy) = (format!("there is no key `{key}`"), "`scan` shows all");
        return Err(Problem::new(Exit::Usage, what, why, remedy));
    }
    let at = done.at.get();
    let json = serde_json::json!({ "key": key, "committed_rsn": at, "class": "disk" });
    output.result(&json, &format!("`{key}` is deleted, on the disk"));
    Ok(())
}
