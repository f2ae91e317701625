//! What was deleted or changed since: a store as it was, beside the one that is.
//! `yesterday STORE NEW SECONDS` makes NEW of STORE as it was so long ago, and prints what it had
//! in the tree `main` that STORE has no more.
//!
//! Promise: nothing of what was not committed then; STORE is as it was.
//! Never: needs a backup; the archive of a store has every moment of it.

use holdfast_store::{At, Config, Direction, KeyValue, Store, restore};
use std::collections::BTreeSet;
use std::io::{Write, stdout};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{error::Error, path::Path};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// All that a tree has.
fn contents(directory: &Path, tree: &str) -> Outcome<BTreeSet<KeyValue>> {
    let (store, _) = Store::open(directory, &Config::default())?;
    let tree = store.tree(tree)?;
    let mut transaction = store.begin();
    let found = transaction.scan::<&[u8]>(&tree, .., Direction::Up).collect::<Result<_, _>>()?;
    drop(transaction);
    store.close()?;
    Ok(found)
}

/// What a tree had at a moment, and has no more. A store that is closed is made again as it was.
pub(crate) fn lost_since(
    store: &Path,
    at: At,
    new: &Path,
    tree: &str,
) -> Outcome<BTreeSet<KeyValue>> {
    let now = contents(store, tree)?;
    restore(store, at, new, &Config::default(), &mut |_| {})?;
    Ok(contents(new, tree)?.difference(&now).cloned().collect())
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, new, seconds] = &arguments[..] else { return Err("see above".into()) };
    let then = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() - seconds.parse::<u64>()?;
    let then = At::Time(i64::try_from(then)? * 1_000_000_000);
    for (key, value) in lost_since(Path::new(store), then, Path::new(new), "main")? {
        let [key, value] = [key, value].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        writeln!(stdout(), "{key}\t{value}")?;
    }
    Ok(())
}
