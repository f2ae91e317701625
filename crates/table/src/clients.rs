//! Whose answers are kept.
//!
//! Promise: a client that left in order leaves nothing; of those that vanished, the last
//! [`VANISHED_CLIENTS_MAX`] have all that was kept for them, whichever process they vanished from.
//! Never: forgets a client that has come back.

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use holdfast_store::{Direction, Transaction, Tree};

use crate::error::Stop;

/// How many clients that vanished have their answers kept. A program that is killed cannot ask
/// again; one that was only cut off does so long before as many others have vanished.
pub const VANISHED_CLIENTS_MAX: usize = 1024;

/// In the place of a turn: the client is there.
const HERE: u64 = 0;

/// The clients that have answers, as far as that is committed.
#[derive(Debug, Default)]
pub(crate) struct Clients(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    here: HashSet<u64>,
    /// By their turns: the one that vanished first is the first to be forgotten.
    vanished: BTreeMap<u64, u64>,
    last_turn: u64,
}

impl State {
    fn turn_of(&self, client: u64) -> Option<u64> {
        self.vanished.iter().find(|(_, found)| **found == client).map(|(turn, _)| *turn)
    }

    fn remove(&mut self, client: u64) {
        self.here.remove(&client);
        if let Some(turn) = self.turn_of(client) {
            self.vanished.remove(&turn);
        }
    }
}

impl Clients {
    /// Those that the store knows. Who was there when its last user ended vanishes now: the others
    /// have done so before.
    pub(crate) fn load(transaction: &mut Transaction<'_>, tree: &Tree) -> Result<Clients, Stop> {
        let (mut state, mut were_here) = (State::default(), Vec::new());
        for found in transaction.scan::<&[u8]>(tree, .., Direction::Up) {
            let (client, turn) = entry(found?).ok_or(DAMAGED)?;
            match turn {
                HERE => were_here.push(client),
                turn => drop(state.vanished.insert(turn, client)),
            }
        }
        state.last_turn = state.vanished.last_key_value().map_or(HERE, |(turn, _)| *turn);
        for client in were_here {
            state.last_turn += 1;
            put(transaction, tree, client, state.last_turn)?;
            state.vanished.insert(state.last_turn, client);
        }
        Ok(Clients(Mutex::new(state)))
    }

    /// Whether the store says of the client that it is there.
    pub(crate) fn is_here(&self, client: u64) -> bool {
        self.lock().here.contains(&client)
    }

    /// It was written that the client is there.
    pub(crate) fn arrived(&self, client: u64) {
        let mut state = self.lock();
        if !state.here.contains(&client) {
            state.remove(client);
            state.here.insert(client);
        }
    }

    /// Whether anything may be kept for the client.
    pub(crate) fn is_known(&self, client: u64) -> bool {
        let state = self.lock();
        state.here.contains(&client) || state.turn_of(client).is_some()
    }

    /// The turn of a client that vanishes now.
    pub(crate) fn next_turn(&self) -> u64 {
        let mut state = self.lock();
        state.last_turn += 1;
        state.last_turn
    }

    pub(crate) fn vanished(&self, client: u64, turn: u64) {
        let mut state = self.lock();
        state.remove(client);
        state.vanished.insert(turn, client);
    }

    pub(crate) fn forgotten(&self, client: u64) {
        self.lock().remove(client);
    }

    /// Who is to be forgotten, because too many have vanished since.
    pub(crate) fn one_too_many(&self) -> Option<u64> {
        let state = self.lock();
        let is_over = state.vanished.len() > VANISHED_CLIENTS_MAX;
        state.vanished.first_key_value().filter(|_| is_over).map(|(_, client)| *client)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes that a client is there.
pub(crate) fn put_here(
    transaction: &mut Transaction<'_>,
    clients: &Tree,
    client: u64,
) -> Result<(), Stop> {
    put(transaction, clients, client, HERE)
}

/// Writes the turn of a client.
pub(crate) fn put(
    transaction: &mut Transaction<'_>,
    clients: &Tree,
    client: u64,
    turn: u64,
) -> Result<(), Stop> {
    Ok(transaction.put(clients, &client.to_be_bytes(), &turn.to_le_bytes())?)
}

fn entry((key, value): (Vec<u8>, Vec<u8>)) -> Option<(u64, u64)> {
    let (key, value) = (key.try_into().ok()?, value.try_into().ok()?);
    Some((u64::from_be_bytes(key), u64::from_le_bytes(value)))
}

const DAMAGED: Stop = Stop::Damaged("an entry of the clients is damaged");
