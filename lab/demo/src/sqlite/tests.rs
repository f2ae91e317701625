//! The machine's SQLite, as the demonstration drives it.
//!
//! Promise: each test has a database of its own.
//! Never: needs root.

use super::*;

#[test]
fn two_rounds_meet_both_journal_modes_and_four_meet_them_with_each_victim() {
    let of: Vec<&str> = (0..4).map(|round| case_of(round).id).collect();
    assert_eq!(of, ["wal", "delete", "delete", "wal"]);
    assert_eq!(case_of(FIRST_CANARY_ROUND).id, WAL.id);
}

#[test]
fn every_committed_row_is_noted_and_a_changed_one_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let (database, log) = (folder.path().join("wal.db"), folder.path().join("transactions"));
    let (journal_mode, synchronous) = ("wal".to_owned(), "full".to_owned());
    let args =
        WriterArgs { database, journal_mode, synchronous, round: 7, seconds: 1, log: log.clone() };
    write(&args).unwrap();
    let noted = outcome::read_transactions(folder.path()).unwrap();
    let library = Library::load().unwrap();
    let connection = library.open(&args.database).unwrap();
    let rows = connection.query("SELECT count(*) FROM acknowledged WHERE round = 7").unwrap();
    assert!(!noted.is_empty());
    assert_eq!(rows, [noted.len().to_string()]);
    assert_eq!(connection.query(writer::WRONG).unwrap(), ["0"]);
    connection.query("UPDATE acknowledged SET payload = 'other' WHERE seq = 1").unwrap();
    assert_eq!(connection.query(writer::WRONG).unwrap(), ["1"]);
    assert!(connection.query("SELECT nonsense").is_err());
}
