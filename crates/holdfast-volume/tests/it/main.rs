//! What a volume promises, tried on a machine that loses power and processes.

mod behaviour;
mod death;
mod model;
mod power;
mod world;
