//! One client's bytes, from its socket to its conversation and back.
//!
//! Promise: requests are answered in the order of their arrival, except that one which waits for a
//! slow flush holds up nobody; many requests are received, and many replies sent, at once. A client
//! that is slow, silent or gone keeps its own thread from going on, and nothing else.
//! Never: looks inside a message, or gives up a byte when it is stopped.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::thread::Scope;
use std::time::{Duration, Instant};

use holdfast_io::{Blocks, Receiving, SendError};
use holdfast_peers::in_hand::{Doing, InHand};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::net::sockopt::{self, Timeout};
use rustix::net::{AddressFamily, RecvFlags, SendFlags, getpeername, recv, send};

use super::buffers::{Received, Replies};
use super::exchange::Exchange;
use super::gate::{Crowded, Entry};
use super::looks::{LOOK, Looks};
use super::session::Session;
use super::shared::Shared;
use super::step::{Over, Step};
use super::tls::Channel;
use crate::abort::AbortOnPanic;
use crate::complaints::Complaints;
use crate::flusher::{Flushed, Flusher};

/// A call that waits for the client returns after this, to see whether it is to stop. After one
/// such wait the thread sleeps until it is woken.
const PATIENCE: Duration = Duration::from_millis(20);

/// Replies are sent when there are so many bytes of them, or nothing more to answer.
const SEND_BYTES: usize = 256 << 10;

/// What the kernel is to hold of replies that the client has not taken: the next are put there
/// meanwhile. More than this is cold again when the client comes to it.
const SEND_BUFFER_BYTES: usize = 416 << 10;

/// Replies wait no longer than this for others to be sent with: a disk may be slow.
const GATHER: Duration = Duration::from_micros(100);

/// After this a client's machine is asked whether it is still there, and so often and so many times
/// before it is taken for gone.
const KEEP_ALIVE: (Duration, Duration, u32) = (Duration::from_secs(60), Duration::from_secs(10), 6);

/// Why a connection is not served any longer.
enum Ended {
    /// The conversation is over.
    Over(Over),
    /// The client closed the connection, or it broke.
    Gone(Option<io::Error>),
    /// It did not choose an export in time.
    Late,
    /// There is no place for it.
    Crowded(Crowded),
    /// TLS did not come about, or was broken.
    Insecure(io::Error),
    /// Somebody else will go on.
    Stopped,
}

/// A connection being served.
pub(crate) struct Connection<'scope, 'env> {
    shared: &'env Shared<'env>,
    socket: OwnedFd,
    /// Between them, once the client speaks TLS.
    channel: Option<Channel>,
    exchange: Exchange<'env>,
    received: Received,
    /// The write under way comes too slowly to be received where it will lie.
    is_slow: bool,
    looks: Looks,
    replies: Replies,
    flusher: Flusher<'scope, 'env>,
    /// Until when an export has to be chosen.
    deadline: Option<Instant>,
    /// What it counts as; behind all that it is made of.
    entry: Entry<'env>,
}

impl<'scope, 'env> Connection<'scope, 'env> {
    /// Takes a session up. `None` if it cannot be gone on with, which the log says.
    pub(crate) fn new(
        session: Session,
        shared: &'env Shared<'env>,
        scope: &'scope Scope<'scope, 'env>,
        entry: Entry<'env>,
    ) -> Option<Self> {
        let deadline = Instant::now() + shared.config.negotiation_patience;
        let deadline = (!session.has_chosen()).then_some(deadline);
        let Session { socket, state, unread, unsent } = session;
        let client = client_of(&socket);
        let complaints = Complaints::about("NBD", client, entry.peer(), &shared.complaints);
        if let Err(error) = prepare(&socket) {
            complaints.say(format_args!("its connection cannot be used: {error}"));
            return None;
        }
        let exchange = Exchange::resume(&state, shared.exports, complaints.clone());
        let Some(mut exchange) = exchange else {
            complaints.say("what it uses is not here as it was");
            return None;
        };
        if shared.config.tls.is_some() && !exchange.require_tls() {
            complaints.say("it does not speak TLS, and now has to");
            return None;
        }
        let mut replies = Replies::default();
        replies.put(&unsent);
        Some(Self {
            shared,
            socket,
            channel: None,
            exchange,
            received: Received::new(&unread),
            is_slow: false,
            looks: Looks::new(),
            replies,
            flusher: Flusher::new(scope),
            deadline,
            entry,
        })
    }

    /// Serves until the client goes, or until it is to stop: then the rest is another's.
    pub(crate) fn serve(mut self) -> Option<Session> {
        // It goes off before the socket is closed: a client must not take a panic for a farewell.
        let _guard = AbortOnPanic;
        let ended = loop {
            if let Err(ended) = self.turn() {
                break ended;
            }
        };
        if matches!(ended, Ended::Stopped) {
            self.exchange.finish_reading(&mut self.replies);
        }
        let flushed = self.flusher.finish();
        self.answer(flushed);
        match ended {
            Ended::Stopped if self.channel.is_some() => self.part(Over::Parted),
            Ended::Stopped if self.entry.is_pushed_out() => self.complain_of_room(),
            Ended::Insecure(error) => self.exchange.complain(format_args!("TLS: {error}")),
            Ended::Stopped => return Some(self.into_session()),
            Ended::Over(over) => self.part(over),
            Ended::Late => self.exchange.complain("it chose no export in time"),
            Ended::Crowded(Crowded::NoPlace) => self.exchange.complain("no place is free for it"),
            Ended::Crowded(Crowded::PushedOut) => self.complain_of_room(),
            Ended::Gone(_) if self.entry.is_pushed_out() => self.complain_of_room(),
            Ended::Gone(Some(error)) => self.exchange.complain(format_args!("it went: {error}")),
            Ended::Gone(None) if self.is_inside_message() => {
                self.exchange.complain("it went in the middle of a message");
            }
            Ended::Gone(None) => {}
        }
        None
    }

    fn complain_of_room(&mut self) {
        self.exchange.complain("others needed its room before it had chosen an export");
    }

    fn is_inside_message(&self) -> bool {
        !self.received.unused().is_empty() || self.exchange.is_inside_message()
    }

    fn turn(&mut self) -> Result<(), Ended> {
        let needs = self.serve_received()?;
        let flushed = self.flusher.take();
        self.answer(flushed);
        self.send()?;
        self.receive(needs)
    }

    /// Takes what was received as far as it goes; returns how many bytes the next step needs.
    fn serve_received(&mut self) -> Result<usize, Ended> {
        let mut sent = Instant::now();
        loop {
            if self.shared.is_closing() {
                return Err(Ended::Stopped);
            }
            if self.send_read()? {
                sent = Instant::now();
                continue;
            }
            let step = self.exchange.step(self.received.unused(), &mut self.replies);
            self.look_at_choice()?;
            if let Step::Needs(bytes) = step {
                return Ok(bytes);
            }
            self.take(step)?;
            if self.replies.unsent().len() >= SEND_BYTES || sent.elapsed() >= GATHER {
                self.send()?;
                sent = Instant::now();
            }
        }
    }

    /// Takes a step that needs nothing more.
    fn take(&mut self, step: Step) -> Result<(), Ended> {
        self.is_slow = false;
        match step {
            Step::Used(0) => {}
            Step::Used(bytes) => {
                self.received.used(bytes);
                self.entry.has_spoken();
            }
            Step::Needs(_) => {}
            Step::Flush { used, cookie } => {
                self.received.used(used);
                self.flush(cookie);
            }
            Step::Secure { used } => {
                self.received.used(used);
                self.secure()?;
            }
            Step::Over(over) => return Err(Ended::Over(over)),
        }
        Ok(())
    }

    fn flush(&mut self, cookie: u64) {
        let blocks: &'env dyn Blocks = self.exchange.blocks().expect("requests have an export");
        let flushed = self.flusher.flush(cookie, blocks);
        self.answer(flushed);
    }

    fn answer(&mut self, flushed: impl IntoIterator<Item = Flushed>) {
        for Flushed { cookies, result } in flushed {
            for cookie in cookies {
                self.exchange.flushed(cookie, result.as_ref().copied(), &mut self.replies);
            }
        }
    }

    /// Speaks TLS from here on. What came before could be from anybody.
    fn secure(&mut self) -> Result<(), Ended> {
        self.send()?;
        if !self.received.unused().is_empty() {
            let early = "it went on before TLS was agreed on";
            return Err(Ended::Insecure(io::Error::new(ErrorKind::InvalidData, early)));
        }
        let tls = self.shared.config.tls.as_ref().expect("TLS is agreed on where there is some");
        self.channel = Some(tls.channel().map_err(Ended::Insecure)?);
        Ok(())
    }

    fn send(&mut self) -> Result<(), Ended> {
        while !self.replies.unsent().is_empty() || self.channel.as_ref().is_some_and(Channel::owes)
        {
            let unsent = self.replies.unsent();
            let sent = match &mut self.channel {
                None => send(&self.socket, unsent, SendFlags::NOSIGNAL).map_err(io::Error::from),
                Some(channel) => channel.send(&self.socket, unsent),
            };
            match sent {
                Ok(bytes) => self.replies.sent(bytes),
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => self.wait(PollFlags::OUT, None)?,
                    _ => return Err(Ended::Gone(Some(error))),
                },
            }
        }
        Ok(())
    }

    /// Has the disk send of a long read what it can; false if a step has to go on.
    fn send_read(&mut self) -> Result<bool, Ended> {
        if self.channel.is_some() {
            return Ok(false);
        }
        let socket = self.socket.as_fd();
        let sent =
            self.exchange.send_read(&mut self.replies, |blocks, what| blocks.send(socket, what));
        match sent {
            None | Some(Err(SendError::Copy)) => return Ok(false),
            Some(Ok(())) => {}
            Some(Err(SendError::Socket(error))) => match error.kind() {
                ErrorKind::Interrupted => {}
                ErrorKind::WouldBlock => self.wait(PollFlags::OUT, None)?,
                _ => return Err(Ended::Gone(Some(error))),
            },
        }
        Ok(true)
    }

    /// Receives something, or returns because a flush has ended.
    fn receive(&mut self, needs: usize) -> Result<(), Ended> {
        if self.deadline.is_some() {
            self.look_at_deadline()?;
        }
        if let Some(flushed) = self.flusher.waited_for() {
            self.wait(PollFlags::IN, Some(flushed))?;
            return self.receive_some(needs, RecvFlags::DONTWAIT).map(drop);
        }
        if self.channel.is_none()
            && !self.is_slow
            && let Some(room) = self.exchange.receive()
        {
            return self.receive_in_place(room);
        }
        if self.look(|it| it.receive_some(needs, RecvFlags::DONTWAIT))? {
            return Ok(());
        }
        // One call for all of a long message, however many pieces it comes in.
        let is_exact = self.received.is_exact(needs);
        let flags = if is_exact { RecvFlags::WAITALL } else { RecvFlags::empty() };
        while !self.receive_some(needs, flags)? {
            self.wait(PollFlags::IN, None)?;
        }
        Ok(())
    }

    /// Receives a piece of a long write where it will lie. Of one that comes slowly the rest is
    /// received elsewhere: there is not room for many.
    fn receive_in_place(&mut self, mut room: Box<dyn Receiving + 'env>) -> Result<(), Ended> {
        let bytes = room.left_bytes();
        room.put(self.received.unused());
        self.received.used(bytes - room.left_bytes());
        while room.left_bytes() > 0 && !self.shared.is_closing() {
            let has_come = self.fill(&mut *room)? || self.look(|it| it.fill(&mut *room))?;
            if !has_come && !self.is_readable_soon()? {
                break;
            }
        }
        if room.left_bytes() > 0 {
            self.received.put(&room.take_back());
            self.is_slow = true;
            return Ok(());
        }
        self.received.be_sparing();
        let in_hand = InHand::take(Doing::Write);
        let step = self.exchange.received(bytes, room.commit(), &mut self.replies);
        drop(in_hand);
        self.take(step)
    }

    /// Receives what there is of a long write; false if there is nothing.
    fn fill(&self, room: &mut dyn Receiving) -> Result<bool, Ended> {
        match room.receive(self.socket.as_fd()) {
            Ok(0) => Err(Ended::Gone(None)),
            Ok(_) => Ok(true),
            Err(error) => match error.kind() {
                ErrorKind::Interrupted | ErrorKind::WouldBlock => Ok(false),
                _ => Err(Ended::Gone(Some(error))),
            },
        }
    }

    /// Sleeps until there is something to receive; false if nothing comes in time.
    fn is_readable_soon(&self) -> Result<bool, Ended> {
        let patience = Timespec::try_from(PATIENCE).expect("a short time");
        let mut ready = [PollFd::new(&self.socket, PollFlags::IN)];
        match poll(&mut ready, Some(&patience)) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(error) => Err(Ended::Gone(Some(error.into()))),
        }
    }

    /// Looks again and again for what `try_once` finds, if that is worth it.
    fn look(
        &mut self,
        mut try_once: impl FnMut(&mut Self) -> Result<bool, Ended>,
    ) -> Result<bool, Ended> {
        if !self.looks.are_due() {
            return Ok(false);
        }
        let began = Instant::now();
        loop {
            let found = try_once(self)?;
            if found || began.elapsed() >= LOOK {
                self.looks.note(found);
                return Ok(found);
            }
            std::hint::spin_loop();
        }
    }

    /// Receives what comes; false if nothing does in time.
    fn receive_some(&mut self, needs: usize, flags: RecvFlags) -> Result<bool, Ended> {
        loop {
            let room = self.received.room(needs);
            let received = match &mut self.channel {
                None => {
                    recv(&self.socket, room, flags).map(|(_, bytes)| bytes).map_err(io::Error::from)
                }
                Some(channel) => channel.receive(&self.socket, room, flags),
            };
            match received {
                Ok(0) => return Err(Ended::Gone(None)),
                Ok(bytes) => {
                    self.received.add(bytes);
                    return Ok(true);
                }
                Err(error) => match error.kind() {
                    ErrorKind::Interrupted => {}
                    ErrorKind::WouldBlock => return Ok(false),
                    ErrorKind::InvalidData => return Err(Ended::Insecure(error)),
                    _ => return Err(Ended::Gone(Some(error))),
                },
            }
        }
    }

    /// Sleeps until the socket is ready, `or` is readable, or something is to end.
    fn wait(&self, ready: PollFlags, or: Option<BorrowedFd<'_>>) -> Result<(), Ended> {
        let left = self.deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let left = left.and_then(|left| Timespec::try_from(left).ok());
        let mut ready = vec![
            PollFd::new(&self.socket, ready),
            PollFd::new(self.shared.closing(), PollFlags::IN),
        ];
        ready.extend(or.map(|or| PollFd::from_borrowed_fd(or, PollFlags::IN)));
        match poll(&mut ready, left.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(Ended::Gone(Some(error.into()))),
        }
        if self.shared.is_closing() {
            return Err(Ended::Stopped);
        }
        match self.deadline {
            Some(at) if Instant::now() >= at => Err(Ended::Late),
            _ => Ok(()),
        }
    }

    /// Before the first request of one that has chosen an export: is there a place for it?
    fn look_at_choice(&mut self) -> Result<(), Ended> {
        if self.deadline.is_some() && self.exchange.blocks().is_some() {
            self.entry.choose().map_err(Ended::Crowded)?;
            self.deadline = None;
        }
        Ok(())
    }

    fn look_at_deadline(&self) -> Result<(), Ended> {
        match self.deadline {
            Some(at) if Instant::now() >= at => Err(Ended::Late),
            _ => Ok(()),
        }
    }

    /// Sends what is owed, if the client takes it.
    fn part(&mut self, over: Over) {
        if let Over::Fault(fault) = over {
            self.exchange.complain(format_args!("it does not keep to the protocol: {fault}"));
        }
        self.deadline = Some(Instant::now() + PATIENCE);
        let _ = self.send();
        if let Some(channel) = &mut self.channel {
            channel.end();
            let _ = self.send();
        }
    }

    fn into_session(self) -> Session {
        let state = self.exchange.state();
        let (unread, unsent) = (self.received.unused().to_vec(), self.replies.unsent().to_vec());
        Session { socket: self.socket, state, unread, unsent }
    }
}

/// Waits on the socket end in time, small messages go at once, and a dead peer is found out.
fn prepare(socket: &OwnedFd) -> io::Result<()> {
    // The kernel cuts it to its own limit, `net.core.wmem_max`.
    sockopt::set_socket_send_buffer_size(socket, SEND_BUFFER_BYTES)?;
    sockopt::set_socket_timeout(socket, Timeout::Recv, Some(PATIENCE))?;
    sockopt::set_socket_timeout(socket, Timeout::Send, Some(PATIENCE))?;
    if sockopt::socket_domain(socket)? != AddressFamily::UNIX {
        let (idle, interval, count) = KEEP_ALIVE;
        sockopt::set_tcp_nodelay(socket, true)?;
        sockopt::set_socket_keepalive(socket, true)?;
        sockopt::set_tcp_keepidle(socket, idle)?;
        sockopt::set_tcp_keepintvl(socket, interval)?;
        sockopt::set_tcp_keepcnt(socket, count)?;
    }
    Ok(())
}

/// Who is at the other end, as far as the kernel knows.
pub(crate) fn client_of(socket: &impl AsFd) -> String {
    if sockopt::socket_domain(socket) == Ok(AddressFamily::UNIX) {
        let process = sockopt::socket_peercred(socket).ok();
        return process.map_or_else(String::new, |process| {
            format!("process {} of user {}", process.pid.as_raw_nonzero(), process.uid.as_raw())
        });
    }
    let address = getpeername(socket).ok().flatten();
    let address = address.and_then(|address| std::net::SocketAddr::try_from(address).ok());
    address.map_or_else(String::new, |address| address.to_string())
}
