//! The configuration of Holdfast: what is asked for, what an acknowledgement means then, and what
//! is wrong, in words for whoever runs it.
//!
//! Promise: what comes from here was checked wherever a file can be checked, and what it claims to
//! survive is computed.
//! Never: starts anything, or asks the machine what it has.

#![deny(unsafe_code)]

mod access;
pub mod claims;
mod config;
pub mod exit;
mod kinds;
mod nbd_tls;
mod power;
pub mod problem;
mod regions;
mod section;
mod server;
pub mod shortage;
pub mod sizes;
mod sockets;
mod standby;
mod values;
mod verdict_text;

pub use config::{Config, KeeperConfig, SOCKET_DEFAULT, Shared};
pub use kinds::disk::{DiskConfig, DiskMemory, way_default};
pub use kinds::log::ServedLogConfig;
pub use kinds::snapshot::SnapshotConfig;
pub use kinds::table::{TableConfig, durability_of};
pub use kinds::volume::VolumeConfig;
pub use nbd_tls::NbdTls;
pub use power::{NutConfig, PowerConfig};
pub use regions::region_of;
pub use section::Section;
pub use server::ServerConfig;
pub use sockets::{Address, Protocol};
pub use standby::StandbyConfig;
pub use values::{Cache, MemoryConfig, Way, claims_problem, medium_at};
pub use verdict_text::{verdict_lines, verdict_text};
