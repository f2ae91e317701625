//! Descriptors that a peer sends, whose last reference takes an hour to drop.
//!
//! The tests' sockets take descriptors, as all do before Linux 6.16.

use crate::raw::{connect, hello};
use crate::strangers::{Guarded, NOBODY, OTHER, USERS, as_user, session};
use crate::support::{NAME, Numbers, Place, seed, seeds_factor};
use holdfast_client::protocol::HELLO_BYTES;
use rustix::net::sockopt::{set_socket_linger, set_socket_recv_buffer_size};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{IoSlice, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::mpsc;
use std::time::Duration;

/// How long it takes to drop what is sent.
const LINGER: Duration = Duration::from_secs(3600);

/// A machine may be slow; nothing here waits for so long but for somebody else.
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket that is closed when its peer has read what nobody reads, or after an hour.
struct Lingering {
    socket: TcpStream,
    _never_reads: TcpStream,
}

impl Lingering {
    fn new() -> Lingering {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        set_socket_recv_buffer_size(&listener, 4096).unwrap();
        let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (_never_reads, _) = listener.accept().unwrap();
        socket.set_nonblocking(true).unwrap();
        while socket.write(&[0; 65536]).is_ok() {}
        set_socket_linger(&socket, Some(LINGER)).unwrap();
        Lingering { socket, _never_reads }
    }

    /// Sends the last reference with these bytes. What comes back keeps the other end as it is.
    ///
    /// A server may have let go of it before this end does, which is then the one that stands in
    /// its `close` for an hour: in a thread that nobody waits for.
    fn send(self, to: &UnixStream, bytes: &[u8], flags: SendFlags) -> TcpStream {
        let (to, Lingering { socket, _never_reads }) = (to.try_clone().unwrap(), self);
        let (bytes, (tell, told)) = (bytes.to_vec(), mpsc::channel::<()>());
        std::thread::spawn(move || {
            let _tells_by_its_end = tell;
            send_beside(&socket, &to, &bytes, flags);
            drop(to);
            drop(socket);
        });
        let _it_may_stand = told.recv_timeout(Duration::from_secs(1));
        _never_reads
    }
}

/// Sends these bytes with a reference to the socket, which does not linger if that cannot be.
fn send_beside(socket: &TcpStream, to: &UnixStream, bytes: &[u8], flags: SendFlags) {
    let descriptors = [socket.as_fd()];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut beside = SendAncillaryBuffer::new(&mut space);
    assert!(beside.push(SendAncillaryMessage::ScmRights(&descriptors)));
    let flags = flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    if sendmsg(to, &[IoSlice::new(bytes)], &mut beside, flags).is_err() {
        set_socket_linger(socket, None).unwrap();
    }
}

/// Has the server come to what was done meanwhile, all at once.
fn while_it_stands<T>(server: &Guarded, act: impl FnOnce() -> T) -> T {
    let process = Pid::from_raw(server.process.id().cast_signed()).unwrap();
    kill_process(process, Signal::STOP).unwrap();
    let done = act();
    kill_process(process, Signal::CONT).unwrap();
    done
}

#[test]
fn descriptors_of_a_user_that_no_service_allows_keep_nobody_waiting() {
    let server = Guarded::start();
    let kept: Vec<_> = (0..5).map(|_| Lingering::new()).collect();
    let _kept = while_it_stands(&server, || {
        let send = |it: Lingering| {
            let peer = as_user(NOBODY, || UnixStream::connect(server.place.socket()).unwrap());
            (it.send(&peer, b"H", SendFlags::empty()), peer)
        };
        kept.into_iter().map(send).collect::<Vec<_>>()
    });
    server.serve_good_client();
    server.check("descriptors");
}

/// One peer that sends anything in any order, descriptors among it.
struct Burden {
    peer: UnixStream,
    said: usize,
}

impl Burden {
    fn say(&mut self, numbers: &mut Numbers) -> Option<TcpStream> {
        let hello = hello([3; 16], &format!("log/{OTHER}"));
        let rest = &hello[self.said.min(HELLO_BYTES)..];
        let bytes = match numbers.below(4) {
            0 => &[7; 3][..],
            1 => rest,
            _ => &rest[..rest.len().min(1 + numbers.below(40) as usize)],
        };
        let bytes = if bytes.is_empty() { b"x" } else { bytes };
        self.said += bytes.len();
        let flags = if numbers.below(4) == 0 { SendFlags::OOB } else { SendFlags::empty() };
        if numbers.below(2) == 0 {
            return Some(Lingering::new().send(&self.peer, bytes, flags));
        }
        let flags = flags | SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.peer, bytes, flags);
        None
    }
}

#[test]
fn whatever_descriptors_come_with_a_good_client_is_served() {
    let first = seed("burdens::whatever_descriptors_come_with");
    for seed in (0..2 * seeds_factor()).map(|more| first + more) {
        let (server, mut numbers) = (Guarded::start(), Numbers(seed));
        let (mut peers, mut kept): (Vec<Burden>, Vec<TcpStream>) = (Vec::new(), Vec::new());
        for step in 0..40 {
            let act = || {
                for _ in 0..1 + numbers.below(4) {
                    if numbers.below(2) == 0 || peers.is_empty() {
                        let uid = [NOBODY, USERS[0]][numbers.below(2) as usize];
                        let open = || UnixStream::connect(server.place.socket()).unwrap();
                        peers.push(Burden { peer: as_user(uid, open), said: 0 });
                    }
                    let at = numbers.below(peers.len() as u64) as usize;
                    kept.extend(peers[at].say(&mut numbers));
                    if numbers.below(8) == 0 {
                        drop(peers.swap_remove(at));
                    }
                }
            };
            while_it_stands(&server, act);
            println!("seed {seed}, step {step}: a good client comes");
            server.serve_good_client();
            server.check(&format!("seed {seed}, step {step}"));
        }
    }
}

#[test]
fn a_session_that_was_sent_descriptors_gives_its_seat_back() {
    let server = Guarded::start();
    for number in 0..20 {
        let raw = session(&server.place, USERS[0], number).unwrap();
        let _kept = Lingering::new().send(&raw.stream, b"H", SendFlags::empty());
        server.wait_for_clients(0, 0);
    }
    server.serve_good_client();
    server.check("at the end");
}

#[test]
fn a_server_that_was_sent_descriptors_stops() {
    let place = Place::new();
    let server = place.serve();
    let raws: Vec<_> =
        (0..4u8).map(|it| connect(&place, [it; 16], &format!("log/{NAME}")).unwrap()).collect();
    let send = |raw| Lingering::new().send(raw, b"H", SendFlags::empty());
    let _kept: Vec<_> = raws.iter().map(|raw| send(&raw.stream)).collect();
    let silent = UnixStream::connect(place.socket()).unwrap();
    let _kept_too = send(&silent);
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        drop(server);
        tell.send(()).unwrap();
    });
    told.recv_timeout(PATIENCE).expect("it waits for what it was sent");
}
