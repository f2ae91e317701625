//! `holdfast store get`.
//!
//! Promise: prints the value of a key, spelled so that `put` takes it again.
//! Never: takes a key without a value for one with an empty value.

use super::door::Door;
use super::opened::bytes;
use crate::cli::store::InTree;
use crate::output::Output;
use crate::spelling;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};

/// What it does, for messages.
const DOING: &str = "reading";

/// Prints a value.
pub(super) fn get(door: Door<'_>, tree: &InTree, key: &str, output: Output) -> Outcome<()> {
    let key_bytes = bytes(DOING, tree, key)?;
    let opened = door.open(DOING, &tree.store)?;
    let root = opened.tree(&tree.tree)?;
    let found = opened.store.begin().get(&root, &key_bytes);
    let found = found.map_err(|error| opened.refused(&error))?;
    let what = opened.what();
    opened.close()?;
    let Some(value) = found else {
        let (why, remedy) =
            (format!("there is no key `{key}`"), "`scan` prints all that there are");
        return Err(Problem::new(Exit::Usage, what, why, remedy));
    };
    let text = spelling::text(&value);
    output.result(&serde_json::json!({ "key": key, "value": text }), &text);
    Ok(())
}
