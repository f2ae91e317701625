//! A store of keys and values in trees of pages that a log keeps.
//!
//! Promise: a tree's page changes only as the body of a record says, so doing and redoing give the
//! same bytes; a body that does not fit its page is told, never obeyed.
//! Never: reads or writes a page on a device; that is `holdfast-pages`.
//!
//! Where to look: `node` is a page of a tree as it is read, `node_change` as it is changed, `body`
//! one such change as bytes, and `contents` is where bodies and images meet nodes. `fields` is how
//! both are spelled.
//!
//! Of transactions: `names` is what a lock is on, `modes` what it permits, `locks` who has it, and
//! `waits` who would wait for ever. `rollback` is what a running transaction would undo, `losers`
//! are those that ended with the process before.

mod body;
mod contents;
mod fields;
pub mod locks;
pub mod losers;
pub mod modes;
pub mod names;
mod node;
mod node_change;
pub mod rollback;
mod waits;

pub use body::{Body, Spot};
pub use contents::{NodeContents, put_image};
pub use node::{Entry, Foster, KEY_BYTES_MAX, NODE_BYTES, Node, Shape, VALUE_BYTES_MAX};

#[cfg(test)]
mod tests;
