//! Tables in a store: opened, asked, swept, closed.
//!
//! Promise: a request's operations, and the answer that is kept of them, are one transaction; who
//! asks again is answered the same, as safe as the first time.
//! Never: starts a thread.

use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use holdfast_store::{
    CloseError, Direction, Durability, Store, Transaction, TransactionError, Tree,
};

use crate::answer::{self, Outcome, Refusal, Status};
use crate::catalogue::{self, Table};
use crate::clients::{Clients, put_here};
use crate::error::{OpenError, RespondError, Stop};
use crate::limits::{
    ANSWER_BYTES_MAX, ATTEMPTS_BESIDE_OTHERS, SCAN_BYTES_MAX, SWEPT_AT_ONCE, touched_bytes_max,
};
use crate::once::{Known, Number};
use crate::request::{Action, Operation, Request};
use crate::rows::Rows;

/// Tables in a store of their own. All calls may come from any thread.
#[derive(Debug)]
pub struct Tables {
    store: Store,
    durability: Durability,
    trees: Trees,
    clients: Clients,
    /// Whoever uses the trees has it, shared; nobody else does for whoever has it alone.
    gate: RwLock<()>,
}

/// The trees of the store that are used.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trees {
    pub(crate) catalogue: Tree,
    /// Rows, and entries of indexes.
    pub(crate) entries: Tree,
    pub(crate) answers: Tree,
    /// Whose they are.
    pub(crate) clients: Tree,
}

/// What somebody asks, and how much of the store that may touch.
struct Asked {
    request: Request,
    touched_bytes_max: usize,
}

impl Tables {
    /// The tables of a store, which are made if it has none. Each request is as safe when it is
    /// answered as `durability` says.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(store: Store, durability: Durability) -> Result<Tables, OpenError> {
        let tree = |name| store.tree(name).map_err(OpenError::Trees);
        let trees = Trees {
            catalogue: tree("catalogue")?,
            entries: tree("entries")?,
            answers: tree("answers")?,
            clients: tree("clients")?,
        };
        let mut transaction = store.begin();
        let clients = match look(&mut transaction, &trees) {
            Ok(Some(clients)) => clients,
            Ok(None) | Err(Stop::Damaged(_) | Stop::Refused(_)) => {
                return Err(OpenError::OtherVersion);
            }
            Err(Stop::Store(error)) => return Err(OpenError::Store(error)),
        };
        transaction.commit(durability).map_err(OpenError::Commit)?;
        Ok(Tables { store, durability, trees, clients, gate: RwLock::default() })
    }

    /// Does the request numbered `sequence` of `client` once, however often it is asked, and puts
    /// what it came to into `answer`, in the place of what is there. `oldest` is the client's
    /// oldest number still under way; `sequence` is less than
    /// [`NUMBERS_AHEAD_MAX`](crate::NUMBERS_AHEAD_MAX) above it. A request that only reads is done
    /// anew each time. When this returns, all that it did and saw is as safe as
    /// [`Tables::open`] was told.
    ///
    /// # Errors
    /// See [`RespondError`]. What a client asked wrongly is no error but the answer.
    pub fn respond(
        &self,
        client: u64,
        sequence: u64,
        oldest: u64,
        request: &[u8],
        answer: &mut Vec<u8>,
    ) -> Result<(), RespondError> {
        let number = Number::new(client, sequence, oldest)?;
        let touched_bytes_max = touched_bytes_max(request.len());
        let Ok(request) = Request::decode(request) else {
            answer::refuse(Refusal { status: Status::Malformed, operation: 0 }, answer);
            return Ok(());
        };
        let asked = Asked { request, touched_bytes_max };
        for _ in 0..ATTEMPTS_BESIDE_OTHERS {
            let _shared = self.shared();
            if self.attempt(number, &asked, answer)? {
                return Ok(());
            }
        }
        // Two that meet again each time would go on for ever.
        let _alone = self.alone();
        if self.attempt(number, &asked, answer)? { Ok(()) } else { Err(RespondError::Busy) }
    }

    /// Takes away some of what dropped tables have left. True if there may be more.
    ///
    /// # Errors
    /// See [`RespondError`].
    pub fn sweep(&self) -> Result<bool, RespondError> {
        let _shared = self.shared();
        let mut transaction = self.store.begin();
        match self.sweep_some(&mut transaction) {
            Ok(is_done) => {
                transaction.commit(Durability::Memory).map_err(RespondError::Commit)?;
                Ok(!is_done)
            }
            Err(stop) if stop.is_deadlock() => Ok(true),
            Err(stop) => Err(stop.into()),
        }
    }

    /// The store that has them, for those who look after it.
    #[must_use]
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Closes the store: see [`Store::close`].
    ///
    /// # Errors
    /// See [`CloseError`].
    pub fn close(self) -> Result<(), CloseError> {
        self.store.close()
    }

    /// Waits until nobody else uses the trees, and keeps others away.
    pub(crate) fn alone(&self) -> RwLockWriteGuard<'_, ()> {
        self.gate.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits while somebody is alone.
    pub(crate) fn shared(&self) -> RwLockReadGuard<'_, ()> {
        self.gate.read().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn clients(&self) -> &Clients {
        &self.clients
    }

    pub(crate) fn trees(&self) -> &Trees {
        &self.trees
    }

    /// Tries it once. False if others were in the way.
    fn attempt(
        &self,
        number: Number,
        asked: &Asked,
        answer: &mut Vec<u8>,
    ) -> Result<bool, RespondError> {
        let mut transaction = self.store.begin();
        match self.answer(&mut transaction, number, asked, answer) {
            Ok(Known::New) => {}
            Ok(Known::Past) => return Err(RespondError::Number),
            Ok(Known::Answered(kept)) => {
                transaction.commit(Durability::Memory).map_err(RespondError::Commit)?;
                self.clients.arrived(number.client());
                answer.clone_from(&kept);
                // The transaction that kept it may have been told that it is not safe.
                return self.store.sync().map_err(RespondError::Sync).map(|()| true);
            }
            Err(stop) if stop.is_deadlock() => return Ok(false),
            Err(stop) => return Err(stop.into()),
        }
        transaction.commit(self.durability).map_err(RespondError::Commit)?;
        if asked.request.is_change() {
            self.clients.arrived(number.client());
        }
        Ok(true)
    }

    /// Does a request that is new, and keeps its answer if it may have changed something.
    fn answer(
        &self,
        transaction: &mut Transaction<'_>,
        number: Number,
        asked: &Asked,
        answer: &mut Vec<u8>,
    ) -> Result<Known, Stop> {
        let answers = &self.trees.answers;
        if !asked.request.is_change() {
            if let Err((operation, stop)) = self.operate(transaction, asked, answer) {
                answer::refuse(refusal(operation, stop)?, answer);
            }
            return Ok(Known::New);
        }
        let known = number.look(transaction, answers)?;
        if !self.clients.is_here(number.client()) {
            put_here(transaction, &self.trees.clients, number.client())?;
        }
        if !matches!(known, Known::New) {
            return Ok(known);
        }
        let start = transaction.savepoint();
        let done = self.operate(transaction, asked, answer).and_then(|()| {
            let kept = number.keep(transaction, answers, answer);
            kept.map_err(|stop| (asked.request.operations.len(), stop))
        });
        if let Err((operation, stop)) = done {
            let refusal = refusal(operation, stop)?;
            transaction.roll_back_to(start)?;
            answer::refuse(refusal, answer);
            number.keep(transaction, answers, answer)?;
        }
        Ok(Known::New)
    }

    /// Does the operations of a request, or tells which could not be done.
    fn operate(
        &self,
        transaction: &mut Transaction<'_>,
        asked: &Asked,
        answer: &mut Vec<u8>,
    ) -> Result<(), (usize, Stop)> {
        answer::begin(answer);
        // The table of the operation before.
        let mut last = None;
        let mut left_bytes = asked.touched_bytes_max;
        for (at, operation) in asked.request.operations.iter().enumerate() {
            let outcome = self
                .one(transaction, operation, &mut last, &mut left_bytes)
                .map_err(|stop| (at, stop))?;
            answer::put_outcome(&outcome, answer);
            if answer.len() > ANSWER_BYTES_MAX {
                return Err((at, Stop::Refused(Status::TooLarge)));
            }
        }
        Ok(())
    }

    fn one<'r>(
        &self,
        transaction: &mut Transaction<'_>,
        operation: &'r Operation,
        last: &mut Option<(&'r str, Table)>,
        left_bytes: &mut usize,
    ) -> Result<Outcome, Stop> {
        let (name, catalogue) = (operation.table.as_str(), &self.trees.catalogue);
        match &operation.action {
            Action::Make(schema) => {
                *last = None;
                catalogue::make(transaction, catalogue, name, schema)?;
                return Ok(Outcome::Done);
            }
            Action::Drop => {
                *last = None;
                catalogue::drop(transaction, catalogue, name)?;
                return Ok(Outcome::Done);
            }
            Action::List => {
                let (tables, has_more) =
                    catalogue::list(transaction, catalogue, name, SCAN_BYTES_MAX)?;
                return Ok(Outcome::Tables { tables, has_more });
            }
            _ => {}
        }
        let is_same = last.as_ref().is_some_and(|(last, _)| *last == name);
        if !is_same {
            *last = Some((name, catalogue::find(transaction, catalogue, name)?));
        }
        let (_, table) = last.as_ref().expect("it was found");
        let entries = &self.trees.entries;
        on_rows(&mut Rows { transaction, entries, table, left_bytes }, &operation.action)
    }

    /// Whether nothing is left.
    fn sweep_some(&self, transaction: &mut Transaction<'_>) -> Result<bool, Stop> {
        let Trees { catalogue, entries, .. } = &self.trees;
        let Some(dropped) = catalogue::dropped(transaction, catalogue)?.into_iter().next() else {
            return Ok(true);
        };
        let extent = catalogue::extent(dropped.number, dropped.count);
        let left = transaction.scan(entries, extent, Direction::Up).take(SWEPT_AT_ONCE);
        let keys = left.map(|found| Ok(found?.0)).collect::<Result<Vec<_>, TransactionError>>()?;
        for key in &keys {
            transaction.delete(entries, key)?;
        }
        if keys.len() < SWEPT_AT_ONCE {
            catalogue::forget(transaction, catalogue, &dropped)?;
        }
        Ok(false)
    }
}

/// The clients of tables of this version.
fn look(transaction: &mut Transaction<'_>, trees: &Trees) -> Result<Option<Clients>, Stop> {
    match catalogue::is_ours(transaction, &trees.catalogue)? {
        true => Clients::load(transaction, &trees.clients).map(Some),
        false => Ok(None),
    }
}

/// Does an operation on the rows of a table.
fn on_rows(rows: &mut Rows<'_, '_>, action: &Action) -> Result<Outcome, Stop> {
    let done = |()| Outcome::Done;
    match action {
        Action::Insert(row) => rows.insert(row).map(done),
        Action::Upsert(row) => rows.upsert(row).map(done),
        Action::Update(key, changes) => rows.update(key, changes).map(done),
        Action::Delete(key) => Ok(if rows.delete(key)? { Outcome::Done } else { Outcome::NoRow }),
        Action::Get(key) => Ok(rows.get(key)?.map_or(Outcome::NoRow, Outcome::Row)),
        Action::Scan(index, range) => rows.scan(*index, range),
        Action::Expect(key, condition) => match rows.is(key, condition)? {
            true => Ok(Outcome::Done),
            false => Err(Stop::Refused(Status::NotAsExpected)),
        },
        Action::Make(_) | Action::Drop | Action::List => {
            unreachable!("these are done without the table")
        }
    }
}

/// What a client is told of what stopped its request, if that is the client's matter.
fn refusal(operation: usize, stop: Stop) -> Result<Refusal, Stop> {
    match stop {
        Stop::Refused(status) => {
            let operation = u32::try_from(operation).unwrap_or(u32::MAX);
            Ok(Refusal { status, operation })
        }
        stop => Err(stop),
    }
}
