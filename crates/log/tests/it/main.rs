//! Behaviour of the log as its users see it, on a disk that tears, loses, damages and fails.
//!
//! Every test that draws from a seed prints it, with the command that replays it, when it fails.

mod ahead;
mod back;
mod basics;
mod canary;
mod check;
mod cut_parity;
mod damage;
mod death;
mod device;
mod emptied;
mod faults;
mod filled;
mod forged;
mod hosts;
mod lacking;
mod mend;
mod older;
mod on_device;
mod parity;
mod policy;
mod power;
mod reader;
mod real;
mod refusals;
mod remade;
mod repair;
mod returned;
mod ring_bits;
mod second_reader;
mod support;
mod survivor;
mod threads;
mod truncate;
mod watch;
