//! A store as its users see it, on a machine that loses what was not synced.

mod backups;
mod basics;
mod classical;
mod examples;
mod kills;
mod looks;
mod model;
mod power;
mod restarts;
mod scans;
mod support;
mod threads;
