//! What a volume promises, tried on a machine that loses power and processes.

// A failing test prints the seed that repeats it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod behaviour;
mod block;
mod block_power;
mod death;
mod disk;
mod elsewhere;
mod faults;
mod forget;
mod model;
mod names;
mod power;
mod roster;
mod seeds;
mod threads;
mod wal;
mod world;
