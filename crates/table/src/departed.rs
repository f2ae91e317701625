//! Clients that end.
//!
//! Promise: what was kept for a client that left in order goes, and so does what was kept for the
//! one that vanished first of too many.
//! Never: forgets a client that may still ask.

use holdfast_store::{Direction, Durability, Transaction, TransactionError};

use crate::clients::put;
use crate::error::{RespondError, Stop};
use crate::limits::{ATTEMPTS_BESIDE_OTHERS, SWEPT_AT_ONCE};
use crate::once::answers_of;
use crate::tables::{Tables, Trees};

impl Tables {
    /// A client has all its answers and will never ask again. What was kept for it goes.
    ///
    /// # Errors
    /// See [`RespondError`]. What is left of it then goes as if it had vanished.
    pub fn left(&self, client: u64) -> Result<(), RespondError> {
        if self.clients().is_known(client) {
            self.forget(client)?;
        }
        Ok(())
    }

    /// A client ended, and nobody knows whether it has all its answers. They are kept until
    /// [`VANISHED_CLIENTS_MAX`](crate::VANISHED_CLIENTS_MAX) others have vanished after it.
    ///
    /// # Errors
    /// See [`RespondError`]. It vanishes when the tables are opened the next time, then.
    pub fn vanished(&self, client: u64) -> Result<(), RespondError> {
        if self.clients().is_known(client) {
            let (turn, clients) = (self.clients().next_turn(), &self.trees().clients);
            self.change(|transaction| put(transaction, clients, client, turn))?;
            self.clients().vanished(client, turn);
        }
        while let Some(oldest) = self.clients().one_too_many() {
            self.forget(oldest)?;
        }
        Ok(())
    }

    /// Its answers go in several transactions, and that there are some is forgotten by the last.
    fn forget(&self, client: u64) -> Result<(), RespondError> {
        while !self.change(|transaction| forget_some(transaction, self.trees(), client))? {}
        self.clients().forgotten(client);
        Ok(())
    }

    /// Makes a change that no client has asked for; again if others are in the way.
    fn change<T>(
        &self,
        work: impl Fn(&mut Transaction<'_>) -> Result<T, Stop>,
    ) -> Result<T, RespondError> {
        for _ in 0..ATTEMPTS_BESIDE_OTHERS {
            let _shared = self.shared();
            if let Some(done) = self.try_change(&work)? {
                return Ok(done);
            }
        }
        let _alone = self.alone();
        self.try_change(&work)?.ok_or(RespondError::Busy)
    }

    /// None if others were in the way.
    fn try_change<T>(
        &self,
        work: impl Fn(&mut Transaction<'_>) -> Result<T, Stop>,
    ) -> Result<Option<T>, RespondError> {
        let mut transaction = self.store().begin();
        match work(&mut transaction) {
            Ok(done) => {
                transaction.commit(Durability::Memory).map_err(RespondError::Commit)?;
                Ok(Some(done))
            }
            Err(stop) if stop.is_deadlock() => Ok(None),
            Err(stop) => Err(stop.into()),
        }
    }
}

/// Whether nothing of the client is left.
fn forget_some(
    transaction: &mut Transaction<'_>,
    trees: &Trees,
    client: u64,
) -> Result<bool, Stop> {
    let answers = transaction.scan(&trees.answers, answers_of(client), Direction::Up);
    let keys = answers.take(SWEPT_AT_ONCE).map(|found| Ok(found?.0));
    let keys = keys.collect::<Result<Vec<_>, TransactionError>>()?;
    for key in &keys {
        transaction.delete(&trees.answers, key)?;
    }
    let is_done = keys.len() < SWEPT_AT_ONCE;
    if is_done {
        transaction.delete(&trees.clients, &client.to_be_bytes())?;
    }
    Ok(is_done)
}
