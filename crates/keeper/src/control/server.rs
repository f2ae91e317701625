//! Listening for commands.
//!
//! Promise: a client that is slow, silent or gone delays nobody else; a line that is not understood
//! is answered with a failure; what nobody waits for any more is not begun; a socket whose name was
//! taken away has it again within [`LOOK_EVERY`].
//! Never: outlives its keeper; lets the keeper's process end between an act and its answer.

use super::protocol::{Answer, Command, Line, PROTOCOL, Request};
use super::whose_file::refuse_other;
use crate::keeper::Keeper;
use crate::taken;
use holdfast_config::Address;
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_io::private::NamedListener;
use holdfast_machine::threads::{beside, thread};
use holdfast_peers::refuse_descriptors;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Only the keeper's own user can connect.
const SOCKET_MODE: u32 = 0o600;
/// No request is longer.
const REQUEST_BYTES_MAX: u64 = 16 << 10;
/// A client that connects speaks at once or is let go.
const REQUEST_PATIENCE: Duration = Duration::from_secs(5);

/// How often is looked whether the socket still has its name.
const LOOK_EVERY: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// How long is waited after a client that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// How long the end of the keeper waits for answers that are on their way.
const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// The listening socket. Its file goes when this is dropped, after the last answer has gone out.
#[derive(Debug)]
pub struct Server {
    socket: Arc<Mutex<Socket>>,
    unanswered: Arc<Unanswered>,
}

/// None once the keeper ends.
type Socket = Option<NamedListener>;

/// How many requests were read and not yet answered.
#[derive(Debug, Default)]
struct Unanswered {
    count: Mutex<usize>,
    changed: Condvar,
}

impl Unanswered {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request for as long as `answer` works on it.
    fn during(&self, answer: impl FnOnce()) {
        *self.lock() += 1;
        answer();
        *self.lock() -= 1;
        self.changed.notify_all();
    }

    fn wait_for_none(&self, patience: Duration) {
        drop(self.changed.wait_timeout_while(self.lock(), patience, |count| *count > 0));
    }
}

impl Server {
    /// Binds the socket, in place of one that an earlier keeper left, and serves it in the
    /// background. The caller holds the keeper's lock, so nobody else listens there.
    pub fn start(path: &Path, keeper: Arc<Keeper>) -> Outcome<Server> {
        let failed = |error: io::Error| {
            let what = format!("listening at {}", path.display());
            taken::refused(what, &Address::Unix(path.to_owned()), "keeper.socket", &error)
        };
        let socket = NamedListener::bind(path, SOCKET_MODE).map_err(failed)?;
        refuse_descriptors(socket.listener());
        let socket = Arc::new(Mutex::new(Some(socket)));
        let unanswered = Arc::new(Unanswered::default());
        let (counted, named) = (unanswered.clone(), socket.clone());
        let listen = move || {
            let mut told = false;
            while let Some(listener) = listener_now(&named, &mut told) {
                let Some(stream) = listener.and_then(|it| next_client(&it)).transpose() else {
                    continue;
                };
                let Ok(stream) = stream else {
                    std::thread::sleep(PAUSE);
                    continue;
                };
                let (keeper, counted) = (keeper.clone(), counted.clone());
                beside("command", move |own| serve(stream, &keeper, (&counted, own)));
            }
        };
        thread("commands", listen)?;
        Ok(Server { socket, unanswered })
    }
}

fn lock(socket: &Mutex<Socket>) -> MutexGuard<'_, Socket> {
    socket.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What takes clients now: another than before if the name had been taken away. None at the end.
fn listener_now(socket: &Mutex<Socket>, told: &mut bool) -> Option<io::Result<UnixListener>> {
    let mut socket = lock(socket);
    let socket = socket.as_mut()?;
    let mended = socket.mend();
    match &mended {
        Ok(true) => {
            refuse_descriptors(socket.listener());
            tracing::warn!("the control socket was taken away, and is there again");
        }
        Err(error) if !*told => tracing::error!(%error, "the control socket was taken away"),
        _ => {}
    }
    *told = mended.is_err();
    Some(socket.listener().try_clone())
}

/// A client that comes within [`LOOK_EVERY`].
fn next_client(listener: &UnixListener) -> io::Result<Option<UnixStream>> {
    let mut coming = [PollFd::new(listener, PollFlags::IN)];
    match poll(&mut coming, Some(&LOOK_EVERY))? {
        0 => Ok(None),
        _ => listener.accept().map(|(stream, _)| Some(stream)),
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.unanswered.wait_for_none(ANSWER_PATIENCE);
        let socket = lock(&self.socket).take();
        let _may_be_gone = socket.map(|socket| socket.remove());
    }
}

/// `own` is why this thread is not the client's own, if it is not: then nothing is begun that
/// others would have to wait for. Whoever asks for the end hears a second time, how it was.
fn serve(mut stream: UnixStream, keeper: &Keeper, (unanswered, own): (&Unanswered, Outcome<()>)) {
    let is_own = own.is_ok();
    let request = read_request(&stream);
    let request = request.and_then(|request| meant_for(keeper, request));
    let request = request.and_then(|command| match (&command, own) {
        (Command::Status | Command::Shutdown, _) | (_, Ok(())) => Ok(command),
        (_, Err(problem)) => Err(problem),
    });
    let waits_for_end = is_own && request == Ok(Command::Shutdown);
    unanswered.during(|| {
        answer(&mut stream, request, keeper);
        if waits_for_end {
            keeper.hear_how_it_ended(|how| {
                let how = how.map(|()| Answer::Text("everything is given back".to_owned()));
                let _may_not_wait = send(&mut stream, &last_line(how));
            });
        }
    });
}

/// What is asked, unless it would change something and was meant for a keeper of another
/// configuration. The status says of which this one is.
fn meant_for(keeper: &Keeper, request: Request) -> Outcome<Command> {
    let Request { command, configuration, .. } = request;
    if command != Command::Status {
        let what = format!("asking the keeper at {}", keeper.socket().display());
        refuse_other(&what, configuration.as_deref(), keeper.configuration().as_deref())?;
    }
    Ok(command)
}

fn answer(stream: &mut UnixStream, request: Outcome<Command>, keeper: &Keeper) {
    let answer = match request {
        Ok(command) if has_hung_up(stream) => Err(not_begun(&command)),
        Ok(command) => keeper.obey(command, &mut |text| {
            let _ = send(stream, &Line::Progress(text.to_owned()));
        }),
        Err(problem) => Err(problem),
    };
    if let Err(error) = send(stream, &last_line(answer)) {
        tracing::debug!(%error, "the client did not wait for its answer");
    }
}

fn last_line(answer: Outcome<Answer>) -> Line {
    answer.map_or_else(Line::Failed, Line::Done)
}

/// Whether whoever asked has gone: ended by somebody, or out of patience with a keeper that stood
/// still, and then has said that it failed.
fn has_hung_up(stream: &UnixStream) -> bool {
    let mut asker = [PollFd::new(stream, PollFlags::empty())];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    // Who only says no more still listens, and is no end of the connection.
    poll(&mut asker, Some(&at_once)).is_ok() && asker[0].revents().contains(PollFlags::HUP)
}

fn not_begun(command: &Command) -> Problem {
    let why = "whoever asked has gone before it was begun";
    tracing::warn!(?command, "not done: {why}");
    Problem::new(Exit::Failed, "doing what was asked", why, "ask again")
}

fn read_request(stream: &UnixStream) -> Outcome<Request> {
    let refused = |why: &dyn std::fmt::Display| {
        let what = "understanding a request";
        Problem::new(Exit::Usage, what, why, "use the `holdfast` command of the keeper's version")
    };
    stream.set_read_timeout(Some(REQUEST_PATIENCE)).map_err(|error| refused(&error))?;
    let mut line = String::new();
    let mut limited = BufReader::new(stream.take(REQUEST_BYTES_MAX));
    limited.read_line(&mut line).map_err(|error| refused(&error))?;
    let request: Request = serde_json::from_str(&line).map_err(|error| refused(&error))?;
    match request.protocol {
        PROTOCOL => Ok(request),
        other => Err(refused(&format!("it speaks protocol {other}, this keeper {PROTOCOL}"))),
    }
}

fn send(stream: &mut UnixStream, line: &Line) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(line)?;
    bytes.push(b'\n');
    stream.write_all(&bytes)
}
