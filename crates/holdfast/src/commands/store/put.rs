//! `holdfast store put`.
//!
//! Promise: the key has the value, on the disk, when this ends well.
//! Never: leaves half of it.

use super::door::Door;
use super::opened::bytes;
use crate::cli::store::InTree;
use crate::output::Output;
use holdfast_config::problem::Outcome;
use holdfast_store::Durability;

/// What it does, for messages.
const DOING: &str = "writing to";

/// Gives a key a value.
pub(super) fn put(
    door: Door<'_>,
    tree: &InTree,
    key: &str,
    value: &str,
    output: Output,
) -> Outcome<()> {
    let (key_bytes, value) = (bytes(DOING, tree, key)?, bytes(DOING, tree, value)?);
    let opened = door.open(DOING, &tree.store)?;
    let root = opened.tree_or_new(&tree.tree)?;
    let mut transaction = opened.store.begin();
    transaction.put(&root, &key_bytes, &value).map_err(|error| opened.refused(&error))?;
    let done = transaction.commit(Durability::Disk).map_err(|error| opened.failed(&error))?;
    opened.close()?;
    let at = done.at.get();
    let json = serde_json::json!({ "key": key, "committed_rsn": at, "class": "disk" });
    output.result(&json, &format!("`{key}` has its value, on the disk"));
    Ok(())
}
