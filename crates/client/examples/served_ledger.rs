//! A ledger: accounts whose every booking is committed before it is confirmed.
//!
//! `served_ledger SOCKET LOG` reads bookings, `ACCOUNT AMOUNT` a line, from its standard input.
//! It answers each with the account's balance once the booking is safe, and starts with what all
//! earlier runs were told is safe: kill it, or the server, whenever you like.
//!
//! Promise: a confirmed booking counts in every later run, once.
//! Never: keeps a file of its own; the log is the ledger.

use holdfast_client::LogClient;
use holdfast_log::CommitLog;
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Write, stdin, stdout};

/// Balances by account.
#[derive(Default)]
struct Ledger(BTreeMap<String, i64>);

impl Ledger {
    /// What the log says.
    fn recover(log: &dyn CommitLog) -> Result<Ledger, Box<dyn Error>> {
        let (mut ledger, marks) = (Ledger::default(), log.marks());
        log.read(marks.released, marks.tail, &mut |frame| {
            let booking = String::from_utf8_lossy(frame.payload);
            parse(&booking).is_some_and(|(account, amount)| ledger.book(account, amount).is_some())
        })?;
        Ok(ledger)
    }

    /// The new balance; None if no number is as large.
    fn book(&mut self, account: &str, amount: i64) -> Option<i64> {
        let balance = self.0.get(account).copied().unwrap_or(0).checked_add(amount)?;
        self.0.insert(account.to_owned(), balance);
        Some(balance)
    }
}

fn parse(booking: &str) -> Option<(&str, i64)> {
    let (account, amount) = booking.trim().split_once(' ')?;
    Some((account, amount.parse().ok()?))
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let (Some(socket), Some(name)) = (arguments.next(), arguments.next()) else {
        return Err("usage: served_ledger SOCKET LOG".into());
    };
    let log = LogClient::connect(socket.as_ref(), &name)?;
    let mut ledger = Ledger::recover(&log)?;
    for line in stdin().lines() {
        let line = line?;
        let (account, amount) = parse(&line).ok_or("a booking is: ACCOUNT AMOUNT")?;
        let balance = ledger.book(account, amount).ok_or("the balance is too large")?;
        // The booking is safe when this returns; only then may anybody be told.
        log.append(1, &[line.as_bytes()])?;
        writeln!(stdout(), "{account} {balance}")?;
    }
    Ok(())
}
