//! `nbd_tls = { ... }`: by what the clients of a network block device know the server, and it them.
//!
//! Promise: what is returned names files by absolute paths, beside an `nbd` that uses them.
//! Never: opens a file.

use crate::sockets::Address;
use crate::values::check_path;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// Files in PEM. With it, all clients of `nbd` have to speak TLS.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NbdTls {
    /// The server's certificate, and behind it those of who signed it.
    pub certificate: PathBuf,
    /// The key that belongs to it.
    pub key: PathBuf,
    /// The certificates of those who sign clients'; without it any client is served.
    #[serde(default)]
    pub clients: Option<PathBuf>,
}

impl NbdTls {
    /// The files, by their keys.
    fn paths(&self) -> impl Iterator<Item = (&'static str, &Path)> {
        let own = [("nbd_tls.certificate", &*self.certificate), ("nbd_tls.key", &*self.key)];
        own.into_iter().chain(self.clients.as_deref().map(|path| ("nbd_tls.clients", path)))
    }
}

/// What is wrong with it.
pub(crate) fn check(tls: Option<&NbdTls>, nbd: &[Address]) -> Result<(), String> {
    let Some(tls) = tls else { return Ok(()) };
    if nbd.is_empty() {
        return Err(
            "nbd_tls is set, but nbd is not: say where, as nbd = [\"tcp:ADDRESS:PORT\"]".into()
        );
    }
    tls.paths().try_for_each(|(key, path)| check_path(key, path))
}
