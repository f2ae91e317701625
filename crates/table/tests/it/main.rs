//! Tables as their clients see them, on machines that fail.

// A test that unwraps says where it failed, and so does a helper of one.
#![allow(clippy::unwrap_used)]
// Seeds that failed, and how much was tried.
#![allow(clippy::print_stdout)]

mod basics;
mod clients;
mod examples;
mod fuzzed;
mod life;
mod model;
mod once;
mod power;
mod threads;
mod touched;

/// A small store on a modelled machine, as the store's own tests have it.
#[allow(dead_code)]
#[path = "../../../store/tests/it/support.rs"]
mod support;
