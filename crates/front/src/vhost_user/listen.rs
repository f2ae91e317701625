//! Frontends that come and go.
//!
//! Promise: one frontend at a time; when it goes, all that its guest was answered stands, and the
//! next may come.
//! Never: knows the meaning of a message.

use std::io;
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use holdfast_io::Blocks;
use holdfast_peers::Peer;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use vhost::vhost_user::{BackendReqHandler, Error};

use super::VhostUserConfig;
use super::queue::Shared;
use super::serve::Disk;
use super::session::Session;
use crate::abort::AbortOnPanic;
use crate::complaints::Complaints;
use crate::wake::WakeUp;

/// How often it is looked whether to stop.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 20_000_000 };

/// How long a frontend may take for the rest of a message, or to take an answer.
const MESSAGE_PATIENCE: Duration = Duration::from_secs(5);

/// Pause after a frontend could not be taken, for something to get free.
const PAUSE: Duration = Duration::from_millis(100);

/// Why nobody is served any longer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ListenError {
    /// No frontend can come through the listener: it is none.
    #[error("cannot accept connections: {0}")]
    Listener(#[source] io::Error),
}

/// Serves `blocks` to one frontend after the other, until `stop` is set: then the queues answer
/// what they took, and the connection ends. The frontend connects again to whoever listens then,
/// and the guest goes on.
///
/// A panic in the disk ends the whole process.
pub fn serve(
    listener: UnixListener,
    blocks: &dyn Blocks,
    config: &VhostUserConfig,
    stop: &AtomicBool,
) -> Result<(), ListenError> {
    // Memory reclaim must not wait for the process that it may be writing through. Without the
    // right to say so, the front end works like any other process.
    let _ = rustix::process::configure_io_flusher_behavior(true);
    listener.set_nonblocking(true).map_err(ListenError::Listener)?;
    let all = Arc::default();
    while !stop.load(Ordering::Relaxed) {
        look(&listener);
        match listener.accept() {
            Ok((frontend, _)) => {
                let peer = Peer::of(&frontend);
                if let Err(error) = attend(frontend, blocks, (config, &all), stop) {
                    let what = format_args!("vhost-user: a frontend is not served: {error}");
                    all.say(peer, Instant::now(), what);
                    thread::sleep(PAUSE);
                }
            }
            Err(error) => pass_over(error)?,
        }
    }
    Ok(())
}

/// Whether a frontend that could not be taken is a reason to end.
fn pass_over(error: io::Error) -> Result<(), ListenError> {
    use io::ErrorKind::{ConnectionAborted, Interrupted, InvalidInput, NotConnected, WouldBlock};
    match error.kind() {
        WouldBlock | Interrupted | ConnectionAborted => Ok(()),
        InvalidInput | NotConnected => Err(ListenError::Listener(error)),
        _ => {
            tracing::warn!(%error, "vhost-user: a frontend cannot be taken");
            thread::sleep(PAUSE);
            Ok(())
        }
    }
}

/// Serves one frontend on a thread of its own, to be able to end it. What it cannot be served for
/// ends it alone: it connects again.
fn attend(
    frontend: UnixStream,
    blocks: &dyn Blocks,
    (config, all): (&VhostUserConfig, &Arc<holdfast_peers::Complaints>),
    stop: &AtomicBool,
) -> io::Result<()> {
    let ended = WakeUp::new()?;
    let ours = frontend.try_clone()?;
    thread::scope(|scope| {
        let work = || {
            let _guard = AbortOnPanic;
            converse_and_complain(frontend, blocks, config, all);
            ended.wake();
        };
        let thread = Builder::new().name("vhost-user".into()).spawn_scoped(scope, work);
        let thread = thread?;
        while !thread.is_finished() && !stop.load(Ordering::Relaxed) {
            look(&ended);
        }
        // It is over already, or is to be.
        let _ = ours.shutdown(Shutdown::Both);
        Ok(())
    })
}

/// Waits until something is there, for a moment; for another one if that cannot be seen for want of
/// memory.
fn look(at: &impl AsFd) {
    let mut at = [PollFd::new(at, PollFlags::IN)];
    match poll(&mut at, Some(&LOOK)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(_) => thread::sleep(PAUSE),
    }
}

/// Serves `blocks` to one frontend until it goes, breaks the protocol, or its socket is shut down.
pub fn converse(frontend: UnixStream, blocks: &dyn Blocks, config: &VhostUserConfig) {
    converse_and_complain(frontend, blocks, config, &Arc::default());
}

fn converse_and_complain(
    frontend: UnixStream,
    blocks: &dyn Blocks,
    config: &VhostUserConfig,
    all: &Arc<holdfast_peers::Complaints>,
) {
    let disk = Disk::new(blocks, &config.name);
    let (client, peer) = (client_of(&frontend), Peer::of(&frontend));
    let complaints = Mutex::new(Complaints::about("vhost-user", client, peer, all));
    let socket = match frontend.try_clone() {
        Ok(socket) => socket,
        Err(error) => {
            return complaints
                .lock()
                .expect("panics abort")
                .say(format_args!("no socket: {error}"));
        }
    };
    for end in [Timeout::Recv, Timeout::Send] {
        // It fails on no socket.
        let _ = set_socket_timeout(&socket, end, Some(MESSAGE_PATIENCE));
    }
    let shared = Arc::new(Shared { write_through: AtomicBool::new(false), complaints, socket });
    thread::scope(|scope| {
        let queues = config.queues_max.clamp(1, 256);
        let session = Session::new(scope, &disk, shared.clone(), queues);
        let session = Arc::new(Mutex::new(session));
        let mut handler = BackendReqHandler::from_stream(frontend, session.clone());
        let ended = loop {
            // What it sent with the beginning of a message may keep its own end open, so the rest
            // has to come in time; between two messages it may be silent for as long as it likes.
            let waited = wait_for(&shared.socket).map_err(Error::SocketBroken);
            if let Err(error) = waited.and_then(|()| handler.handle_request()) {
                break error;
            }
        };
        session.lock().expect("panics abort").stop();
        if !is_parting(&ended) {
            shared.complain(format_args!("the connection ends: {ended}"));
        }
    });
}

/// Waits until something comes, or nothing can.
fn wait_for(socket: &UnixStream) -> io::Result<()> {
    match poll(&mut [PollFd::new(socket, PollFlags::IN)], None) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Whether nothing but the end of the connection was heard.
fn is_parting(error: &Error) -> bool {
    matches!(error, Error::Disconnected | Error::PartialMessage | Error::SocketBroken(_))
}

/// Who is at the other end, as far as the kernel knows.
fn client_of(socket: &UnixStream) -> String {
    let process = rustix::net::sockopt::socket_peercred(socket).ok();
    process.map_or_else(String::new, |process| {
        format!("process {} of user {}", process.pid.as_raw_nonzero(), process.uid.as_raw())
    })
}
