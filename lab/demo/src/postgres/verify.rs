//! Checks of the database, after a kill and after the volume was given back.
//!
//! Promise: reads only; counts what is missing instead of stopping at the first.
//! Never: trusts the thing under test: acknowledgements come from pgbench's log, rows from SQL,
//! heap and index checks from PostgreSQL's own amcheck.

use super::cluster::Cluster;
use crate::error::DemoError;
use crate::outcome::Present;

/// Rows of the acknowledged transactions.
pub(super) const TABLE: &str =
    "CREATE TABLE acknowledged (round int, client int, seq bigint, delta int,
     PRIMARY KEY (round, client, seq))";

/// Makes the table that kills are checked with, and the extension that checks heaps and indexes.
pub(super) fn prepare(cluster: &Cluster) -> Result<(), DemoError> {
    cluster.query("CREATE EXTENSION IF NOT EXISTS amcheck")?;
    cluster.query(TABLE).map(drop)
}

/// The rows of a round that are there.
pub(super) fn present(cluster: &Cluster, round: u32) -> Result<Present, DemoError> {
    let sql = format!("SELECT client, seq FROM acknowledged WHERE round = {round}");
    Present::parse(&cluster.query(&sql)?)
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
