//! What a volume promises, tried on a machine that loses power and processes.

// A failing test prints the seed that repeats it.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod aside;
mod behaviour;
mod beside;
mod between;
mod block;
mod block_power;
mod borders;
mod cached;
mod charged;
mod clusters;
mod death;
mod disk;
mod elsewhere;
mod faults;
mod forget;
mod hurried;
mod inodes;
mod labels;
mod limits;
mod lists;
mod model;
mod moved;
mod nameless;
mod names;
mod power;
mod progress;
mod repeated;
mod reserved;
mod room;
mod roster;
mod rules;
mod seeds;
mod shares;
mod stuck;
mod swapped;
mod threads;
mod touched;
mod wal;
mod world;
mod zeros;
