//! `[server]`: where the server listens, and whom it has room for.
//!
//! Promise: as for volumes: what is returned was checked without looking at the machine.
//! Never: says what is served.

use crate::access::{check_clients, clients_default};
use crate::values::check_path;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Where the server listens unless the configuration says otherwise.
const SOCKET_DEFAULT: &str = "/run/holdfast/server.sock";
/// `[server]`
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// The socket that clients connect to.
    #[serde(default = "socket_default")]
    pub socket: PathBuf,
    /// Most clients at a time, over all logs and disks.
    #[serde(default = "clients_default")]
    pub clients_max: u32,
}

impl ServerConfig {
    /// Most clients at a time of a service that lets in this many by itself.
    pub fn clients_of(&self, service_max: u32) -> u32 {
        service_max.min(self.clients_max)
    }
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig { socket: socket_default(), clients_max: clients_default() }
    }
}

fn socket_default() -> PathBuf {
    SOCKET_DEFAULT.into()
}

impl ServerConfig {
    pub(crate) fn check(&self) -> Result<(), String> {
        check_path("socket", &self.socket)?;
        check_clients(self.clients_max)
    }
}
