//! Serving a volume or a disk to its users: through a mount, through sockets, as a block device, or
//! as all.
//!
//! Promise: serves until the volume is to be given back: until it was unmounted or, where nothing
//! is mounted, until somebody said so (SIGINT). Then nobody is served any more. SIGTERM ends the
//! process, with what it took answered, and with the connections left to the next process.
//! Never: opens a volume or gives it back.

mod handover;
mod tls;

use handover::Handover;
use holdfast_config::Protocol;
use holdfast_config::shortage::{LACKING, passes};
use holdfast_front::{fuse, nbd, ublk, vhost_user};
use holdfast_io::Blocks;
use holdfast_io::tree::Tree;
use holdfast_keeper::orders::Orders;
use holdfast_machine::raw::inherited;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag::register;
use signal_hook::low_level::emulate_default_handler;
use std::error::Error;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Builder, Scope};
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

/// What users see: through a mount, and through sockets if it is a disk.
pub(super) struct Seen<'a> {
    pub tree: &'a dyn Tree,
    pub blocks: Option<&'a dyn Blocks>,
    /// Called once nobody is to be served any more, for threads that still wait for a home.
    pub let_go: &'a (dyn Fn() + Sync),
}

/// How serving ended.
type Served = Result<(), Box<dyn Error + Send + Sync>>;

/// How often it is looked whether anybody is to be served.
const LOOK: Duration = Duration::from_millis(100);

/// The ways to the users of a volume or disk.
pub(super) struct Users {
    fuse: Option<fuse::Session>,
    sockets: Option<Sockets>,
    device: Option<ublk::UblkConfig>,
    /// Nobody is served any longer.
    stop: Arc<AtomicBool>,
    /// Another process will serve those who are there.
    hands_on: Arc<AtomicBool>,
}

/// Where users of a disk connect.
struct Sockets {
    nbd: Vec<nbd::Listener>,
    /// What they have to speak who connect there.
    tls: Option<nbd::Tls>,
    vhost_user: Vec<UnixListener>,
    handover: Handover,
}

/// Those of a disk's users who need no mount.
struct DiskUsers {
    sockets: Option<Sockets>,
    device: Option<ublk::Device>,
}

/// What is served, under which name, until when.
#[derive(Clone, Copy)]
struct Disk<'a> {
    name: &'a str,
    blocks: &'a dyn Blocks,
    stop: &'a AtomicBool,
    hands_on: &'a AtomicBool,
}

impl Users {
    /// Users behind a connection to the kernel, and behind the sockets of the orders.
    pub(super) fn of(
        fuse: Option<OwnedFd>,
        orders: &Orders,
        tls: Option<nbd::Tls>,
    ) -> io::Result<Users> {
        let (stop, hands_on) = (Arc::default(), Arc::default());
        let handover = orders.handover.as_ref().map(Handover::of).transpose()?;
        let sockets = handover.map(|handover| Sockets::of(orders, handover, tls)).transpose()?;
        let device = orders.ublk();
        match (&fuse, sockets.is_some() || device.is_some()) {
            (None, false) => return Err(io::ErrorKind::InvalidInput.into()),
            (None, true) => drop(register(SIGINT, Arc::clone(&stop))?),
            // Only who unmounts the volume ends its use.
            (Some(_), _) => {}
        }
        if sockets.is_some() {
            // In this order: who sees that it is to stop knows why.
            register(SIGTERM, Arc::clone(&hands_on))?;
            register(SIGTERM, Arc::clone(&stop))?;
        }
        Ok(Users { fuse: fuse.map(fuse::Session::adopt), sockets, device, stop, hands_on })
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

    /// Serves them all. `ready` is called once they can come.
    pub(super) fn serve(
        self,
        name: &str,
        seen: &Seen<'_>,
        config: &fuse::FuseConfig,
        ready: impl FnOnce() + Send,
    ) -> Served {
        let Users { fuse, sockets, device, stop, hands_on } = self;
        let have_ended = AtomicBool::new(false);
        let end = End { fuse: fuse.as_ref(), stop: &stop, hands_on: &hands_on };
        thread::scope(|scope| {
            let watch = || end.watch(&have_ended, seen.let_go);
            let watched = Builder::new().name("end".into()).spawn_scoped(scope, watch);
            let served = match seen.blocks {
                _ if watched.is_err() => watched.map(drop).map_err(Into::into),
                Some(blocks) => {
                    let disk = Disk { name, blocks, stop: &stop, hands_on: &hands_on };
                    end.serve_disk(disk, (sockets, device), (seen, config), ready)
                }
                None => {
                    ready();
                    end.serve_mount(seen, config)
                }
            };
            have_ended.store(true, Ordering::Relaxed);
            served
        })
    }
}

fn prepare(
    device: Option<ublk::UblkConfig>,
    blocks: &dyn Blocks,
) -> Result<Option<ublk::Device>, ublk::DeviceError> {
    device.map(|device| ublk::Device::prepare(device, blocks.size_bytes())).transpose()
}

impl DiskUsers {
    /// Serves them on threads of their own, which are there before anybody is told to come. Where
    /// one of them cannot be made the others serve until `disk.stop`.
    fn serve<'scope, 'env>(
        self,
        disk: Disk<'env>,
        scope: &'scope Scope<'scope, 'env>,
        ready: impl FnOnce() + Send + 'scope,
    ) -> io::Result<()> {
        if let Some(sockets) = self.sockets {
            sockets.serve(disk, scope)?;
        }
        let Some(device) = self.device else {
            ready();
            return Ok(());
        };
        let until = ublk::Until { stop: disk.stop, is_left: disk.hands_on };
        let serve = move || whole(device.serve(disk.blocks, until, ready));
        Builder::new().name("device".into()).spawn_scoped(scope, serve).map(drop)
    }
}

impl Sockets {
    fn of(orders: &Orders, handover: Handover, tls: Option<nbd::Tls>) -> io::Result<Sockets> {
        let (mut nbd, mut vhost_user) = (Vec::new(), Vec::new());
        for socket in &orders.sockets {
            let listener = inherited(socket.socket_fd)?;
            match socket.protocol {
                Protocol::Nbd => nbd.push(nbd::Listener::new(listener)?),
                Protocol::VhostUser => vhost_user.push(listener.into()),
            }
        }
        Ok(Sockets { nbd, tls, vhost_user, handover })
    }

    fn serve<'scope, 'env>(
        self,
        disk: Disk<'env>,
        scope: &'scope Scope<'scope, 'env>,
    ) -> io::Result<()> {
        let Sockets { nbd, tls, vhost_user, handover } = self;
        let of_machines = |listener| {
            let serve = move || whole(serve_machines(listener, disk));
            Builder::new().name("machines".into()).spawn_scoped(scope, serve)
        };
        let machines: io::Result<Vec<_>> = vhost_user.into_iter().map(of_machines).collect();
        let machines = machines?;
        let serve = move || {
            let sessions = whole(serve_clients(nbd, tls, &handover, disk));
            machines.into_iter().for_each(|thread| thread.join().expect("panics abort"));
            if disk.hands_on.load(Ordering::Relaxed) {
                leave(sessions, &handover);
                whole(emulate_default_handler(SIGTERM));
            }
        };
        Builder::new().name("clients".into()).spawn_scoped(scope, serve).map(drop)
    }
}

/// What says that nobody is to be served any more.
#[derive(Clone, Copy)]
struct End<'a> {
    fuse: Option<&'a fuse::Session>,
    stop: &'a AtomicBool,
    hands_on: &'a AtomicBool,
}

impl End<'_> {
    /// Serves a disk to all its users.
    fn serve_disk(
        self,
        disk: Disk<'_>,
        (sockets, device): (Option<Sockets>, Option<ublk::UblkConfig>),
        (seen, config): (&Seen<'_>, &fuse::FuseConfig),
        ready: impl FnOnce() + Send,
    ) -> Served {
        let users = DiskUsers { sockets, device: prepare(device, disk.blocks)? };
        thread::scope(|scope| {
            if let Err(error) = users.serve(disk, scope, ready) {
                self.stop.store(true, Ordering::Relaxed);
                return Err(error.into());
            }
            self.serve_mount(seen, config)
        })
    }

    /// Serves the mount, if there is one, to its end, which is that of all.
    fn serve_mount(self, seen: &Seen<'_>, config: &fuse::FuseConfig) -> Served {
        let Some(fuse) = self.fuse else { return Ok(()) };
        let served = fuse::serve(fuse, seen.tree, config);
        self.stop.store(true, Ordering::Relaxed);
        Ok(served?)
    }

    /// Lets go of who still waits then: who waits cannot see it himself. Those whom another process
    /// will serve go on waiting.
    fn watch(&self, have_ended: &AtomicBool, let_go: &(dyn Fn() + Sync)) {
        while !have_ended.load(Ordering::Relaxed) {
            if self.has_come() {
                return let_go();
            }
            thread::sleep(LOOK);
        }
    }

    fn has_come(&self) -> bool {
        let is_to_stop = self.stop.load(Ordering::Relaxed);
        let is_unmounted = self.fuse.is_some_and(fuse::Session::is_over);
        is_unmounted || is_to_stop && !self.hands_on.load(Ordering::Relaxed)
    }
}

/// Half of a front end is none: it ends, and the keeper starts a whole one; if it merely lacks
/// something, as soon as there is that.
fn whole<T, E: Error + 'static>(served: Result<T, E>) -> T {
    served.unwrap_or_else(|error| {
        if passes(&error) {
            tracing::error!("users of a disk are not served for now: {error}");
            std::process::exit(LACKING);
        }
        panic!("users of a disk are not served: {error}")
    })
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
