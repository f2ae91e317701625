//! Checks after a kill, and after the volume was given back.
//!
//! Promise: reads only; counts what is missing instead of stopping at the first.
//! Never: trusts the thing under test: acknowledgements come from pgbench's log, rows from SQL,
//! heap and index checks from PostgreSQL's own amcheck.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hasher};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::cluster::Cluster;
use super::load::Acknowledged;
use crate::demo::error::DemoError;

/// Rows of the acknowledged transactions.
pub(super) const TABLE: &str =
    "CREATE TABLE acknowledged (round int, client int, seq bigint, delta int,
     PRIMARY KEY (round, client, seq))";

/// Makes the table that kills are checked with, and the extension that checks heaps and indexes.
pub(super) fn prepare(cluster: &Cluster) -> Result<(), DemoError> {
    cluster.query("CREATE EXTENSION IF NOT EXISTS amcheck")?;
    cluster.query(TABLE).map(drop)
}

/// Sequence numbers by client.
type Sequences = BTreeMap<u32, Vec<u64>>;

/// How many acknowledged transactions of a round have no row.
pub(super) fn lost(
    cluster: &Cluster,
    round: u32,
    acknowledged: &[Acknowledged],
) -> Result<u64, DemoError> {
    let sql = format!("SELECT client, seq FROM acknowledged WHERE round = {round} ORDER BY 1, 2");
    let rows = cluster.query(&sql)?;
    let mut present = Sequences::new();
    for (client, seq) in rows.lines().filter_map(|line| line.split_once('|')) {
        let wrong = |_| DemoError::new("reading the recovered rows", format!("`{client}|{seq}`"));
        let seq = seq.parse().map_err(wrong)?;
        present.entry(client.parse().map_err(wrong)?).or_default().push(seq);
    }
    Ok(missing(&present, acknowledged))
}

/// How many of the acknowledged transactions are not present.
fn missing(present: &Sequences, acknowledged: &[Acknowledged]) -> u64 {
    let is_present = |one: &Acknowledged| {
        present.get(&one.client).is_some_and(|all| all.binary_search(&one.seq).is_ok())
    };
    acknowledged.iter().filter(|one| !is_present(one)).count() as u64
}

/// True if the books balance: accounts, tellers and branches each add up to all deltas that were
/// ever booked. A transaction that survived in part would show here.
pub(super) fn balanced(cluster: &Cluster) -> Result<bool, DemoError> {
    let answer = cluster.query(
        "WITH sums AS (SELECT
           (SELECT sum(abalance) FROM pgbench_accounts) AS accounts,
           (SELECT sum(tbalance) FROM pgbench_tellers) AS tellers,
           (SELECT sum(bbalance) FROM pgbench_branches) AS branches,
           (SELECT coalesce(sum(delta), 0) FROM pgbench_history)
             + (SELECT coalesce(sum(delta), 0) FROM acknowledged) AS booked)
         SELECT accounts = booked AND tellers = booked AND branches = booked FROM sums",
    )?;
    Ok(answer == "t")
}

/// What PostgreSQL's own checker finds wrong in any heap or index; empty if all is well.
pub(super) fn amcheck(cluster: &Cluster) -> Result<String, DemoError> {
    let arguments = ["--all", "--install-missing", "--heapallindexed", "--jobs=2"];
    match cluster.run("pg_amcheck", |command| command.args(arguments)) {
        Ok(found) => Ok(found),
        // It ends with an error both when it finds damage and when it cannot look: neither passes.
        Err(error) => Ok(error.to_string()),
    }
}

/// A tree of files as a program sees it: path, and what would differ if a byte did.
pub(super) type Tree = BTreeMap<PathBuf, FileDigest>;

/// One file or directory of a [`Tree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileDigest {
    mode: u32,
    uid: u32,
    bytes: u64,
    hash: u64,
}

/// Reads every file below `root`.
pub(super) fn tree(root: &Path) -> io::Result<Tree> {
    let mut found = Tree::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            let metadata = path.symlink_metadata()?;
            let (mut bytes, mut hash) = (0, 0);
            if metadata.is_dir() {
                folders.push(path.clone());
            } else {
                (bytes, hash) = (metadata.len(), hash_of(&path)?);
            }
            let name = path.strip_prefix(root).unwrap_or(&path).to_owned();
            let (mode, uid) = (metadata.mode(), metadata.uid());
            found.insert(name, FileDigest { mode, uid, bytes, hash });
        }
    }
    Ok(found)
}

fn hash_of(path: &Path) -> io::Result<u64> {
    let (mut file, mut hasher) = (fs::File::open(path)?, DefaultHasher::new());
    let mut buffer = vec![0; 1 << 20];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            bytes => hasher.write(&buffer[..bytes]),
        }
    }
}

/// Names that differ between two trees.
pub(super) fn differences(one: &Tree, other: &Tree) -> Vec<PathBuf> {
    let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
    names.filter(|name| one.get(*name) != other.get(*name)).cloned().collect()
}

#[cfg(test)]
mod tests;
