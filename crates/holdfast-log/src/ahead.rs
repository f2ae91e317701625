//! Reading ahead: a thread that fetches the next stretches while the last is looked at.
//!
//! Promise: stretches come back in the order in which they were asked for, each with its outcome;
//! the thread ends with its owner.
//! Never: decides what is read; has more in memory than what is asked for.

use std::collections::VecDeque;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{Builder, JoinHandle};

use holdfast_core::Lsn;

use crate::buffer::Buffer;
use crate::segment::Segment;

/// Most stretches under way.
pub(crate) const STRETCHES_MAX: usize = 16;

/// Whole blocks of a segment, inside one span.
pub(crate) struct Piece {
    pub(crate) segment: Segment,
    pub(crate) from: Lsn,
    pub(crate) to: Lsn,
}

/// A stretch in memory.
pub(crate) struct Fetched {
    pub(crate) to: Lsn,
    pub(crate) buffer: Buffer,
    pub(crate) outcome: io::Result<()>,
}

/// A thread that reads.
pub(crate) struct Ahead {
    jobs: Option<Sender<(Piece, Buffer)>>,
    fetched: Option<Receiver<Fetched>>,
    thread: Option<JoinHandle<()>>,
    /// Where those begin and end that were asked for.
    asked: VecDeque<(Lsn, Lsn)>,
    spare: Vec<Buffer>,
}

impl Ahead {
    pub(crate) fn start() -> io::Result<Ahead> {
        let (jobs, todo) = channel();
        let (done, fetched) = channel();
        let named = Builder::new().name("holdfast-ahead".to_owned());
        let thread = Some(named.spawn(move || run(&todo, &done))?);
        let (asked, spare) = (VecDeque::new(), Vec::new());
        Ok(Ahead { jobs: Some(jobs), fetched: Some(fetched), thread, asked, spare })
    }

    /// How many stretches are under way.
    pub(crate) fn pending(&self) -> usize {
        self.asked.len()
    }

    /// Where the last one ends that is under way.
    pub(crate) fn end(&self) -> Option<Lsn> {
        self.asked.back().map(|(_, to)| *to)
    }

    /// Has a stretch read.
    pub(crate) fn ask(&mut self, stretch: Piece) {
        assert!(self.asked.len() + self.spare.len() <= STRETCHES_MAX, "memory is bounded");
        let bytes = stretch.to.since(stretch.from) as usize;
        let fits = |buffer: &Buffer| buffer.bytes().len() >= bytes;
        let buffer = self.spare.pop().filter(fits).unwrap_or_else(|| Buffer::zeroed(bytes));
        self.asked.push_back((stretch.from, stretch.to));
        let jobs = self.jobs.as_ref().expect("taken away only when dropped");
        // A thread that is gone has panicked; `take` says so.
        let _ = jobs.send((stretch, buffer));
    }

    /// Waits for the next stretch, if it begins here.
    pub(crate) fn take(&mut self, from: Lsn) -> Option<Fetched> {
        self.asked.pop_front_if(|asked| asked.0 == from)?;
        let fetched = self.fetched.as_ref().expect("taken away only when dropped");
        Some(fetched.recv().expect("the thread panics in no read"))
    }

    /// Takes back a buffer that is no longer looked at.
    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        self.spare.push(buffer);
    }
}

impl Drop for Ahead {
    fn drop(&mut self) {
        // The thread finds nobody to give its stretch to, and leaves the others.
        drop((self.fetched.take(), self.jobs.take()));
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join();
        }
    }
}

fn run(todo: &Receiver<(Piece, Buffer)>, done: &Sender<Fetched>) {
    for (Piece { segment, from, to }, mut buffer) in todo {
        let outcome = segment.read(from, &mut buffer.bytes_mut()[..to.since(from) as usize]);
        if done.send(Fetched { to, buffer, outcome }).is_err() {
            return;
        }
    }
}
