//! What whoever opens a store gives and gets: its settings, its files, its numbers.
//!
//! Promise: what a file here says of a store is checked before anything is done with it.
//! Never: knows a page or a key.

pub(crate) mod closing;
pub(crate) mod config;
pub(crate) mod directories;
pub(crate) mod header;
pub(crate) mod place;
pub(crate) mod services;
pub(crate) mod stat;
pub(crate) mod statistics;
pub(crate) mod verify;
