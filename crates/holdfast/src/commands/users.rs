//! Serving a volume to its users: through a mount, through sockets, or both.
//!
//! Promise: serves until the volume is to be given back: until it was unmounted or, where nothing
//! is mounted, until somebody said so (SIGINT). Then nobody is served any more. SIGTERM ends the
//! process, with what it took answered, and with the connections left to the next process.
//! Never: opens a volume or gives it back.

mod handover;
mod tls;

use super::home::Volume;
use crate::config::Protocol;
use crate::orders::Orders;
use crate::raw::inherited;
use handover::Handover;
use holdfast_front::{fuse, nbd, vhost_user};
use holdfast_io::Blocks;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register;
use signal_hook::low_level::emulate_default_handler;
use std::error::Error;
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;
pub(super) use tls::tls_of;

/// Far more than a hypervisor or a kernel opens to one disk.
const CLIENTS: nbd::NbdConfig = nbd::NbdConfig {
    connections_max: 64,
    negotiation_patience: Duration::from_secs(10),
    tls: None,
};

/// Queues of a virtual machine: one for each of its processors, up to this.
const QUEUES_MAX: u16 = 16;

/// The ways to a volume's users.
pub(super) struct Users {
    fuse: Option<fuse::Session>,
    sockets: Option<Sockets>,
    /// Nobody is served any longer.
    stop: Arc<AtomicBool>,
}

/// Where users of a disk connect.
struct Sockets {
    nbd: Vec<nbd::Listener>,
    /// What they have to speak who connect there.
    tls: Option<nbd::Tls>,
    vhost_user: Vec<UnixListener>,
    handover: Handover,
    /// Another process will serve those who are connected.
    hands_on: Arc<AtomicBool>,
}

/// What is served, under which name, until when.
#[derive(Clone, Copy)]
struct Disk<'a> {
    name: &'a str,
    blocks: &'a dyn Blocks,
    stop: &'a AtomicBool,
}

impl Users {
    /// Users behind a connection to the kernel, and behind the sockets of the orders.
    pub(super) fn of(
        fuse: Option<OwnedFd>,
        orders: &Orders,
        tls: Option<nbd::Tls>,
    ) -> io::Result<Users> {
        let stop = Arc::new(AtomicBool::new(false));
        let handover = orders.handover.as_ref().map(Handover::of).transpose()?;
        let sockets =
            handover.map(|handover| Sockets::of(orders, handover, tls, &stop)).transpose()?;
        match (&fuse, &sockets) {
            (None, None) => return Err(io::ErrorKind::InvalidInput.into()),
            (None, Some(_)) => drop(register(SIGINT, stop.clone())?),
            // Only who unmounts the volume ends its use.
            (Some(_), _) => {}
        }
        Ok(Users { fuse: fuse.map(fuse::Session::adopt), sockets, stop })
    }

    /// Has the kernel send again what an earlier process has not answered.
    pub(super) fn ask_again(&self) {
        // Refused only when the mount is gone, which listening then tells.
        let _ = self.fuse.as_ref().map(fuse::Session::resend);
    }

    /// Set by whoever has their use end.
    pub(super) fn stop(&self) -> Arc<AtomicBool> {
        self.stop.clone()
    }

    /// Serves those behind sockets.
    pub(super) fn serve_disk(self, name: &str, blocks: &dyn Blocks) {
        let Users { sockets, stop, .. } = self;
        sockets.into_iter().for_each(|sockets| sockets.serve(Disk { name, blocks, stop: &stop }));
    }

    /// Serves them all.
    pub(super) fn serve(
        self,
        name: &str,
        volume: &Volume,
        config: &fuse::FuseConfig,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let Users { fuse, sockets, stop } = self;
        thread::scope(|scope| {
            if let Some(sockets) = sockets {
                let blocks = volume.blocks().ok_or(io::Error::from(io::ErrorKind::InvalidInput))?;
                let disk = Disk { name, blocks, stop: &stop };
                scope.spawn(move || sockets.serve(disk));
            }
            let Some(fuse) = fuse else { return Ok(()) };
            let served = fuse::serve(&fuse, volume.tree(), config);
            stop.store(true, Ordering::Relaxed);
            Ok(served?)
        })
    }
}

impl Sockets {
    fn of(
        orders: &Orders,
        handover: Handover,
        tls: Option<nbd::Tls>,
        stop: &Arc<AtomicBool>,
    ) -> io::Result<Sockets> {
        let hands_on = Arc::new(AtomicBool::new(false));
        let (mut nbd, mut vhost_user) = (Vec::new(), Vec::new());
        for socket in &orders.sockets {
            let listener = inherited(socket.socket_fd)?;
            match socket.protocol {
                Protocol::Nbd => nbd.push(nbd::Listener::new(listener)?),
                Protocol::VhostUser => vhost_user.push(listener.into()),
            }
        }
        // In this order: who sees that it is to stop knows why.
        register(SIGTERM, hands_on.clone())?;
        register(SIGTERM, stop.clone())?;
        Ok(Sockets { nbd, tls, vhost_user, handover, hands_on })
    }

    fn serve(self, disk: Disk<'_>) {
        let Sockets { nbd, tls, vhost_user, handover, hands_on } = self;
        let sessions = thread::scope(|scope| {
            for listener in vhost_user {
                scope.spawn(move || whole(serve_machines(listener, disk)));
            }
            whole(serve_clients(nbd, tls, &handover, disk))
        });
        if hands_on.load(Ordering::Relaxed) {
            leave(sessions, &handover);
            whole(emulate_default_handler(SIGTERM));
        }
    }
}

/// Half of a front end is none: it ends, and the keeper starts a whole one.
fn whole<T, E: fmt::Display>(served: Result<T, E>) -> T {
    served.unwrap_or_else(|error| panic!("users of a disk are not served: {error}"))
}

/// Serves hypervisors. They connect again by themselves, and their guests' rings say what is still
/// to be done.
fn serve_machines(listener: UnixListener, disk: Disk<'_>) -> Result<(), vhost_user::ListenError> {
    let name = disk.name.to_owned();
    let config = vhost_user::VhostUserConfig { name, queues_max: QUEUES_MAX };
    vhost_user::serve(listener, disk.blocks, &config, disk.stop)
}

/// Serves clients of NBD. Returns the connections that there are when it is to stop.
fn serve_clients(
    listeners: Vec<nbd::Listener>,
    tls: Option<nbd::Tls>,
    handover: &Handover,
    disk: Disk<'_>,
) -> Result<Vec<nbd::Session>, nbd::ListenError> {
    let adopt = |(connection, state): (OwnedFd, Vec<u8>)| {
        let adopted = nbd::Session::adopt(connection, &state);
        adopted.inspect_err(|error| tracing::warn!(%error, "a connection is not taken over")).ok()
    };
    let sessions = handover.take_all(Protocol::Nbd).into_iter().filter_map(adopt).collect();
    let exports = [nbd::Export { name: disk.name, blocks: disk.blocks, read_only: false }];
    let config = nbd::NbdConfig { tls, ..CLIENTS };
    nbd::serve(listeners, sessions, &exports, &config, disk.stop)
}

fn leave(sessions: Vec<nbd::Session>, handover: &Handover) {
    for session in sessions {
        let (connection, state) = session.into_parts();
        if let Err(error) = handover.leave(Protocol::Nbd, &connection, &state) {
            tracing::warn!(%error, "a connection cannot be handed on, and ends");
        }
    }
}
