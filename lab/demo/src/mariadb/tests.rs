//! A canary: the reading of `CHECK TABLE` must be able to complain.
//!
//! Promise: the samples are MariaDB's own output.
//! Never: starts a database.

use super::*;

const LEFT_OVER: &str = "sysbench.sbtest1\tcheck\tWarning\t\
    InnoDB: Clustered index record not found for index `k_1` of table `sysbench`.`sbtest1`: \
    COMPACT RECORD(info_bits=32, 2 fields): {}";

#[test]
fn tables_that_are_well_and_entries_left_over_are_no_complaint() {
    let well = "sysbench.sbtest1\tcheck\tstatus\tOK";
    assert_eq!(complaints(&format!("{LEFT_OVER}\n{well}")), "");
}

#[test]
fn a_corrupt_table_is_a_complaint() {
    let said = "sysbench.sbtest1\tcheck\tWarning\tInnoDB: Index 'k_1' contains 7 entries\n\
                sysbench.sbtest1\tcheck\terror\tCorrupt";
    assert_eq!(complaints(&format!("{LEFT_OVER}\n{said}")), said.replace('\n', "; "));
}
