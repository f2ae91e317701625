//! Reading ahead: threads that fetch the next stretches while the last is looked at.
//!
//! Each has one stretch at a time: a device gives more to several who ask than to one, who is not
//! asking while he takes what he got.
//!
//! Promise: stretches come back in the order in which they were asked for, each with its outcome;
//! the threads end with their owner. A child that was forked has none of them, and takes nothing.
//! Never: decides what is read; has more in memory than what is asked for.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use holdfast_core::Lsn;
use holdfast_io::Opener;

use crate::format::buffer::Buffer;
use crate::segments::segment::Segment;

/// Most stretches under way.
pub(crate) const STRETCHES_MAX: usize = 4;

/// What a buffer has in front of its stretch: room for what is left of the stretch before.
pub(crate) const ROOM_BYTES: usize = 512 << 10;

/// Whole blocks of a segment, inside one span.
pub(crate) struct Piece {
    pub(crate) segment: Segment,
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

/// A stretch in memory, behind [`ROOM_BYTES`].
pub(crate) struct Fetched {
    pub(crate) to: Lsn,
    pub(crate) buffer: Buffer,
    pub(crate) outcome: io::Result<()>,
}

/// What was asked for, in order, and the threads that read it.
#[derive(Default)]
pub(crate) struct Ahead {
    asked: VecDeque<Asked>,
    idle: Vec<Reader>,
    spare: Vec<Buffer>,
}

/// A stretch under way.
struct Asked {
    from: Lsn,
    to: Lsn,
    reader: Reader,
}

impl Ahead {
    /// How many stretches are under way.
    pub(crate) fn pending(&self) -> usize {
        self.asked.len()
    }

    /// Where the last one ends that is under way.
    pub(crate) fn end(&self) -> Option<Lsn> {
        self.asked.back().map(|asked| asked.to)
    }

    /// Has a stretch read.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(crate) fn ask(&mut self, stretch: Piece) -> io::Result<()> {
        assert!(self.asked.len() + self.spare.len() <= STRETCHES_MAX, "memory is bounded");
        let reader = self.idle.pop().map_or_else(Reader::start, Ok)?;
        let (from, to) = (stretch.from, stretch.to);
        let bytes = ROOM_BYTES + to.since(from) as usize;
        let fits = |buffer: &Buffer| buffer.bytes().len() >= bytes;
        let buffer = self.spare.pop().filter(fits).unwrap_or_else(|| Buffer::zeroed(bytes));
        reader.ask(stretch, buffer);
        self.asked.push_back(Asked { from, to, reader });
        Ok(())
    }

    /// Waits for the next stretch, if it begins here.
    pub(crate) fn take(&mut self, from: Lsn) -> Option<Fetched> {
        let is_it = |asked: &mut Asked| asked.from == from && asked.reader.opener.is_here();
        let asked = self.asked.pop_front_if(is_it)?;
        let fetched = asked.reader.take();
        self.idle.push(asked.reader);
        Some(fetched)
    }

    /// Takes back a buffer that is no longer looked at.
    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.spare.push(buffer);
    }
}

/// A thread that reads.
struct Reader {
    jobs: Option<Sender<(Piece, Buffer)>>,
    fetched: Receiver<Fetched>,
    thread: Option<JoinHandle<()>>,
    opener: Opener,
}

impl Reader {
    fn start() -> io::Result<Reader> {
        let (jobs, todo) = channel();
        let (done, fetched) = channel();
        let named = Builder::new().name("holdfast-ahead".to_owned());
        let thread = Some(named.spawn(move || run(&todo, &done))?);
        Ok(Reader { jobs: Some(jobs), fetched, thread, opener: Opener::this_process() })
    }

    fn ask(&self, stretch: Piece, buffer: Buffer) {
        let jobs = self.jobs.as_ref().expect("taken away only when dropped");
        // A thread that is gone has panicked; `take` says so.
        let _ = jobs.send((stretch, buffer));
    }

    fn take(&self) -> Fetched {
        self.fetched.recv().expect("the thread panics in no read")
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.jobs.take());
        if let Some(thread) = self.thread.take() {
            self.opener.join(thread);
        }
    }
}

fn run(todo: &Receiver<(Piece, Buffer)>, done: &Sender<Fetched>) {
    for (Piece { segment, from, to }, mut buffer) in todo {
        let into = &mut buffer.bytes_mut()[ROOM_BYTES..][..to.since(from) as usize];
        let outcome = segment.read(from, into);
        if done.send(Fetched { to, buffer, outcome }).is_err() {
            return;
        }
    }
}
