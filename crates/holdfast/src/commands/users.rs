//! Serving a volume to its users: through a mount, as a network block device, or both.
//!
//! Promise: serves until the volume is to be given back: until it was unmounted or, where nothing
//! is mounted, until somebody said so (SIGTERM). Then nobody is served any more.
//! Never: opens a volume or gives it back.

use super::home::Volume;
use holdfast_front::{fuse, nbd};
use signal_hook::consts::SIGTERM;
use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Far more than a hypervisor or a kernel opens to one disk.
const CLIENTS: nbd::NbdConfig =
    nbd::NbdConfig { connections_max: 64, negotiation_patience: Duration::from_secs(10) };

/// The ways to a volume's users.
pub(super) struct Users {
    fuse: Option<fuse::Session>,
    nbd: Vec<nbd::Listener>,
    stop: Arc<AtomicBool>,
}

impl Users {
    /// Users behind a connection to the kernel and behind sockets that listen.
    pub(super) fn of(fuse: Option<OwnedFd>, nbd: Vec<OwnedFd>) -> io::Result<Users> {
        let stop = Arc::new(AtomicBool::new(false));
        match fuse {
            // Whoever ends a process that serves a mount wants another one, and gets it.
            Some(_) => {}
            None if nbd.is_empty() => return Err(io::ErrorKind::InvalidInput.into()),
            None => drop(signal_hook::flag::register(SIGTERM, stop.clone())?),
        }
        let nbd = nbd.into_iter().map(nbd::Listener::new).collect::<io::Result<_>>()?;
        Ok(Users { fuse: fuse.map(fuse::Session::adopt), nbd, stop })
    }

    /// Has the kernel send again what an earlier process has not answered.
    pub(super) fn ask_again(&self) {
        // Refused only when the mount is gone, which listening then tells.
        let _ = self.fuse.as_ref().map(fuse::Session::resend);
    }

    /// Serves them all.
    pub(super) fn serve(
        self,
        name: &str,
        volume: &Volume,
        config: &fuse::FuseConfig,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Users { fuse, nbd, stop } = self;
        let exports: Vec<nbd::Export<'_>> = volume
            .blocks()
            .map(|blocks| nbd::Export { name, blocks, read_only: false })
            .into_iter()
            .collect();
        if nbd.is_empty() || exports.is_empty() {
            let fuse = fuse.ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
            return Ok(fuse::serve(&fuse, volume.tree(), config)?);
        }
        let clients = || nbd::serve(nbd, Vec::new(), &exports, &CLIENTS, &stop).map(drop);
        let Some(fuse) = fuse else { return Ok(clients()?) };
        std::thread::scope(|scope| {
            // Half of a front end is none: the keeper starts a whole one.
            scope.spawn(|| clients().unwrap_or_else(|error| panic!("no clients: {error}")));
            let served = fuse::serve(&fuse, volume.tree(), config);
            stop.store(true, Ordering::Relaxed);
            Ok(served?)
        })
    }
}
