//! What could not be served when the keeper started, because somebody else had it.
//!
//! Promise: as long as the keeper runs it is tried again until it is served, or somebody asks that
//! it be not; the log has each reason once.
//! Never: keeps a volume from one who unmounts it; tries again what the next attempt meets again.

use super::Keeper;
use crate::supervisor::disks::Means;
use crate::supervisor::pace::{OFTEN, Pace};
use crate::supervisor::progress::Progress;
use crate::supervisor::server;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_machine::threads::thread;
use std::collections::BTreeSet;
use std::sync::{Arc, MutexGuard, PoisonError};
use std::time::Instant;

impl Keeper {
    /// Goes on trying to have those of these volumes that somebody else has.
    pub fn pursue(&self, refused: &[(String, Problem)]) {
        let held = refused.iter().filter(|(_, problem)| problem.exit == Exit::InUse);
        self.pursued().extend(held.map(|(name, _)| name.clone()));
    }

    /// Has another try at every front end of a disk that is lacking, and begins to try for the
    /// volumes that are pursued: of `refused` there stays what got no thread just now.
    pub fn try_again(self: &Arc<Keeper>, refused: &mut Vec<(String, Problem)>) {
        refused.retain(|(name, _)| self.pursued().contains(name));
        refused.retain(|refused| self.start_pursuing(refused.clone()).is_err());
        self.with_means(|means| self.disks().start_lacking(means));
    }

    fn start_pursuing(self: &Arc<Keeper>, (name, problem): (String, Problem)) -> Outcome<()> {
        let keeper = Arc::clone(self);
        thread("pursuit", move || keeper.pursue_volume(&name, &problem)).map(drop)
    }

    fn pursue_volume(&self, name: &str, refused: &Problem) {
        let (mut pace, mut told) = (Pace::default(), refused.to_string());
        let mut pause = || pace.attempt(Instant::now(), OFTEN);
        while !self.is_asked_to_stop_within(pause()) && self.pursued().contains(name) {
            let problem = match self.have_mounted(name, &mut |_| ()) {
                Ok(text) => return tracing::info!("{text}"),
                Err(problem) => problem,
            };
            let text = problem.to_string();
            if text != told {
                tracing::error!("{text}");
                told = text;
            }
            if problem.exit.stays() {
                return self.pursue_no_more(name);
            }
        }
    }

    /// Mounts a volume that somebody asks for. One that the keeper has mounted meanwhile, because
    /// it had not been free, is what was asked for.
    pub(super) fn mount_asked(&self, name: &str, say: Progress<'_>) -> Outcome<String> {
        if !self.pursued().contains(name) {
            return self.mount(name, say);
        }
        let mounted = self.have_mounted(name, say);
        if mounted.is_ok() {
            self.pursue_no_more(name);
        }
        mounted
    }

    /// Somebody wants it not to be mounted, or knows that it is.
    pub(super) fn pursue_no_more(&self, name: &str) {
        self.pursued().remove(name);
    }

    fn pursued(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.pursued.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does something that takes what front ends of disks are started with.
    pub(super) fn with_means<T>(&self, with: impl FnOnce(&Means<'_>) -> T) -> T {
        let server_of = |name: &str| match self.server.get().and_then(Option::as_ref) {
            Some(started) => started.as_ref().map_err(Clone::clone)?.for_disk(name),
            None => Err(server::not_served()),
        };
        let config = self.begun.get().expect("what is started first has set it");
        let (term, manager, memories) = (self.term(), &self.manager, &self.memories);
        let kept = &self.kept_disks;
        let refuse = || self.refuse_if_ending(|| "starting the front end of a disk".to_owned());
        with(&Means {
            config,
            term,
            manager,
            kept,
            memories,
            server_of: &server_of,
            refuse: &refuse,
        })
    }
}
