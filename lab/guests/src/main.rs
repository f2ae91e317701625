//! The command that ends guests again and again.
//!
//! Promise: does what the crate does.
//! Never: anything else.

use std::process::ExitCode;

fn main() -> ExitCode {
    holdfast_guests::main()
}
