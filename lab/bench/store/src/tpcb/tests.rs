//! What a bank is made of, and what its sums refuse.

use std::collections::HashMap;

use super::{
    BALANCE_BYTES, Bank, Client, LINE_BYTES, ROW_BYTES, Row, Rows, TELLERS, Table, Total, apply,
    balance, key, row,
};
use crate::Failure;

const BANK: Bank = Bank { branches: 3, accounts: 50 };

/// A store in memory.
#[derive(Default)]
struct Model(HashMap<(&'static str, Vec<u8>), Vec<u8>>);

impl Rows for Model {
    fn read(&mut self, table: Table, key: &[u8], row: &mut Row) -> Result<(), Failure> {
        let found = self.0.get(&(table.name(), key.to_vec()));
        row.copy_from_slice(found.ok_or("a row is gone")?);
        Ok(())
    }

    fn write(&mut self, table: Table, key: &[u8], row: &[u8]) -> Result<(), Failure> {
        self.0.insert((table.name(), key.to_vec()), row.to_vec());
        Ok(())
    }
}

fn loaded() -> Model {
    let mut model = Model::default();
    for table in Table::ROWS {
        for id in 0..BANK.rows(table) {
            model.write(table, &key(id), &row(table, id)).unwrap();
        }
    }
    model
}

fn total(model: &Model, table: Table) -> Total {
    let mut total = Total::default();
    let rows = model.0.iter().filter(|((name, _), _)| *name == table.name());
    rows.for_each(|(_, row)| total.add(row).unwrap());
    total
}

#[test]
fn all_tables_add_up_to_what_the_history_moved() {
    let mut model = loaded();
    let mut clients: Vec<Client> = (0..3).map(|client| Client::new(BANK, client, 0)).collect();
    for _ in 0..100 {
        for client in &mut clients {
            apply(&mut model, &client.next()).unwrap();
        }
    }
    let history = total(&model, Table::History);
    assert_eq!(history.rows, 300);
    assert_ne!(history.sum, 0);
    for table in Table::ROWS {
        let wanted = Total { rows: BANK.rows(table), sum: history.sum };
        assert_eq!(total(&model, table), wanted, "{}", table.name());
    }
}

#[test]
fn a_client_stays_with_the_rows_of_its_branch() {
    let mut client = Client::new(BANK, 1, 7);
    for number in 7..1000 {
        let it = client.next();
        assert_eq!((it.branch, it.client, it.number), (1, 1, number));
        assert_eq!(it.teller / TELLERS, 1);
        assert_eq!(it.account / u64::from(BANK.accounts), 1);
    }
}

#[test]
fn a_row_begins_with_nothing_in_it_and_is_the_same_in_every_run() {
    let one = row(Table::Accounts, 5);
    assert_eq!((one.len(), balance(&one).unwrap()), (ROW_BYTES, 0));
    assert_eq!(one, row(Table::Accounts, 5));
    assert_ne!(one[BALANCE_BYTES..], row(Table::Accounts, 6)[BALANCE_BYTES..]);
    assert_ne!(one[BALANCE_BYTES..], row(Table::Tellers, 5)[BALANCE_BYTES..]);
}

#[test]
fn a_line_begins_with_what_was_moved() {
    let it = Client::new(BANK, 2, 3).next();
    assert_eq!((it.line().len(), balance(&it.line()).unwrap()), (LINE_BYTES, it.delta));
    assert!(balance(&[1, 2, 3]).is_err());
}
