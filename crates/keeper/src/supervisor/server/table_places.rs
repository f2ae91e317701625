//! The stores of the tables that the server has, while their directories are moved or removed.
//!
//! The server opens a store by its name, and has all of it open from then on.
//!
//! Promise: a store that the next server would not find is told, and no server is ended meanwhile;
//! a log of a store whose files were removed is made again from memory, as any log.
//! Never: makes a store; ends a server that alone has rows.

use super::state::Supervisor;
use super::store_place::{StorePlace, service_of};
use crate::orders::ServerReady;
use holdfast_config::problem::Problem;
use std::collections::BTreeMap;

impl Supervisor {
    /// Tells of stores that no next server would find.
    pub(super) fn look_at_stores(&mut self) {
        for (name, _) in &self.held.orders.tables {
            self.places.stores.get_mut(&service_of(name)).into_iter().for_each(|it| it.look(name));
        }
        let told = |(of, it): (&String, &StorePlace)| Some((of.clone(), it.trouble.clone()?));
        let troubles: BTreeMap<_, _> = self.places.stores.iter().filter_map(told).collect();
        self.watched.change(|s| s.of.store_troubles = troubles);
    }

    /// Whether another server is to write again what somebody removed of a store's log.
    pub(super) fn look_at_logs_of_stores(&mut self, may_end: bool) -> bool {
        let mut renews = false;
        for (name, table) in &self.held.orders.tables {
            let Some(place) = self.places.stores.get_mut(&service_of(name)) else { continue };
            renews |= place.trouble.is_none() && place.look_at_log((name, table), may_end);
        }
        renews
    }

    /// A store that no next server would find keeps this one from being ended.
    pub(super) fn has_store_trouble(&self) -> bool {
        self.places.stores.values().any(|place| place.trouble.is_some())
    }

    /// What is not as it should be of the logs of tables.
    pub(super) fn log_troubles_of_tables(&self) -> impl Iterator<Item = (String, String)> {
        self.places
            .stores
            .iter()
            .filter_map(|(of, place)| Some((of.clone(), place.trouble_of_log()?.to_owned())))
    }

    /// Before a server looks for the stores, when none has them. What cannot be made again is left
    /// out.
    pub(super) fn restore_stores(&mut self) -> Vec<(String, Problem)> {
        let mut left_out = Vec::new();
        for (name, table) in &self.held.orders.tables {
            let service = service_of(name);
            let Some(place) = self.places.stores.get_mut(&service) else { continue };
            left_out.extend(place.restore(name, table).err().map(|problem| (service, problem)));
        }
        left_out
    }

    /// Why a server did not come to serve, if the files of a table's log had been removed.
    pub(super) fn store_reason(&self, said: Problem) -> Problem {
        self.held.orders.tables.iter().fold(said, |said, (name, table)| {
            match self.places.stores.get(&service_of(name)) {
                Some(place) => place.reason((name, table), said),
                None => said,
            }
        })
    }

    /// A server has these stores open: from now on they are looked at.
    pub(super) fn note_stores(&mut self, ready: &ServerReady) {
        for (name, table) in &self.held.orders.tables {
            let service = service_of(name);
            if !ready.verdicts.iter().any(|(of, _)| *of == service) {
                continue;
            }
            match StorePlace::of(table) {
                Ok(place) => drop(self.places.stores.insert(service, place)),
                Err(error) => tracing::warn!(service, %error, "its store cannot be looked at"),
            }
        }
    }
}
