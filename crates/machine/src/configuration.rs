//! The configuration file, read on the machine that it is about.
//!
//! Promise: no two paths of what is returned lead to one place here.
//! Never: changes what the file says.

use crate::places::shared::shared;
use holdfast_config::Config;
use holdfast_config::problem::Outcome;
use std::path::Path;

/// Reads and checks the file.
pub fn load(path: &Path) -> Outcome<Config> {
    Config::load(path, shared)
}
