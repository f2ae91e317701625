//! What clients see of snapshots, and what is left when somebody dies.

#![allow(clippy::unwrap_used)]

mod basics;
mod damage;
mod death;
mod support;
