//! The checker notices what does not agree.

use super::*;

/// Two rows, so two entries in each index.
fn filled(directory: &std::path::Path) -> Tables {
    let tables = opened(directory);
    let request = Request::new()
        .make("t", schema())
        .insert("t", row![1_u64, "a", 7_i64])
        .insert("t", row![2_u64, "b", 7_i64]);
    assert!(ask(&tables, 1, &request).is_ok());
    tables
}

/// Changes the tree of entries behind the back of tables.
fn meddle(tables: &Tables, key: &[u8], value: Option<&[u8]>) {
    let tree = tables.store().tree("entries").expect("it is there");
    let mut transaction = tables.store().begin();
    match value {
        Some(value) => transaction.put(&tree, key, value).expect("room"),
        None => assert!(transaction.delete(&tree, key).expect("room")),
    }
    transaction.commit(Durability::Memory).expect("a log");
}

/// The keys of the tree of entries.
fn keys(tables: &Tables) -> Vec<Vec<u8>> {
    let tree = tables.store().tree("entries").expect("it is there");
    let mut reading = tables.store().begin();
    let all = reading.scan::<&[u8]>(&tree, .., Direction::Up);
    all.map(|found| found.expect("a page").0).collect()
}

#[test]
fn what_was_done_through_requests_agrees() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = filled(directory.path());
    let checked = tables.check().expect("a machine");
    assert_eq!((checked.tables, checked.rows, checked.entries), (1, 2, 4));
    assert!(checked.disagreements.is_empty(), "{checked:?}");
}

#[test]
fn every_entry_that_is_missing_is_noticed() {
    for at in 0..6 {
        let directory = tempfile::tempdir().expect("a directory");
        let tables = filled(directory.path());
        let keys = keys(&tables);
        assert_eq!(keys.len(), 6);
        meddle(&tables, &keys[at], None);
        let checked = tables.check().expect("a machine");
        assert!(!checked.disagreements.is_empty(), "{at}: {checked:?}");
    }
}

#[test]
fn every_entry_that_is_other_is_noticed() {
    for at in 0..6 {
        let directory = tempfile::tempdir().expect("a directory");
        let tables = filled(directory.path());
        meddle(&tables, &keys(&tables)[at], Some(b"other"));
        let checked = tables.check().expect("a machine");
        assert!(!checked.disagreements.is_empty(), "{at}: {checked:?}");
    }
}

#[test]
fn an_entry_too_many_is_noticed() {
    let directory = tempfile::tempdir().expect("a directory");
    let tables = filled(directory.path());
    meddle(&tables, b"\0\0\0\x01zz\0\0", Some(b"\0\0\0\0\0\0\0\x01"));
    let (table, index) = ("t".to_owned(), 0);
    let wanted = Disagreement::Count { table, index, entries: 3, rows: 2 };
    assert_eq!(tables.check().expect("a machine").disagreements, [wanted]);
    meddle(&tables, b"\0\0\0\x09nobody", Some(b""));
    let disagreements = tables.check().expect("a machine").disagreements;
    assert_eq!(disagreements.last(), Some(&Disagreement::Nobodys { count: 1 }));
}
