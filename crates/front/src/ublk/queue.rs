//! The thread of one queue.
//!
//! Promise: every request is answered once; one that waits for a slow flush holds up nobody. It
//! ends when the device is stopped, with all that was asked answered, or when it is told to: then
//! what is not answered is sent again, to the next process.
//! Never: touches another queue.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex};
use std::thread::Scope;

use holdfast_io::Blocks;

use super::raw::{QueueRing, Requests};
use super::serve::{Data, Performer};
use super::wire::{COMMIT_AND_FETCH, Description, FETCH, data_at, of_queue};
use crate::abort::AbortOnPanic;
use crate::complaints::Complaints;
use crate::flusher::{Flushed, Flusher};
use crate::wake::WakeUp;

/// Cookies of what is no request; tags are below them.
const TOLD_TO_STOP: u64 = u64::MAX;
const FLUSH_ENDED: u64 = u64::MAX - 1;

/// Commands at a time beside those of requests: one for each of these cookies.
const WATCHED: u32 = 2;

/// What a queue's thread works with.
pub(crate) struct Worker<'scope, 'env> {
    pub(crate) index: u16,
    pub(crate) depth: u16,
    pub(crate) file: Arc<File>,
    pub(crate) blocks: &'env dyn Blocks,
    pub(crate) stop: Arc<WakeUp>,
    pub(crate) complaints: Arc<Mutex<Complaints>>,
    pub(crate) scope: &'scope Scope<'scope, 'env>,
}

/// A queue being served.
struct Served<'scope, 'env> {
    worker: Worker<'scope, 'env>,
    ring: QueueRing,
    requests: Requests,
    performer: Performer<'env>,
    flusher: Flusher<'scope, 'env>,
    /// Of each tag that waits for a flush: what it came to.
    waiting: Vec<i32>,
    /// Tags that the kernel still has something for.
    open: u16,
    is_flush_watched: bool,
    is_told_to_stop: bool,
}

impl Worker<'_, '_> {
    /// Serves until the device is stopped, or until it is told to stop.
    pub(crate) fn work(self) {
        let _guard = AbortOnPanic;
        let index = self.index;
        let served = Served::begin(self).and_then(Served::serve);
        // A device with a queue that nobody serves is none: another process takes all of it up.
        served.unwrap_or_else(|error| panic!("queue {index} cannot be served: {error}"));
    }
}

impl<'scope, 'env> Served<'scope, 'env> {
    fn begin(worker: Worker<'scope, 'env>) -> io::Result<Self> {
        let (index, depth) = (worker.index, worker.depth);
        let mut ring = QueueRing::new(worker.file.clone(), u32::from(depth) + WATCHED)?;
        for tag in 0..depth {
            ring.command(FETCH, of_queue(index, tag, 0), tag.into());
        }
        ring.watch(worker.stop.as_fd(), TOLD_TO_STOP);
        Ok(Self {
            ring,
            requests: Requests::of(&worker.file, index, depth)?,
            performer: Performer::new(worker.blocks),
            flusher: Flusher::new(worker.scope),
            waiting: vec![0; depth.into()],
            open: depth,
            is_flush_watched: false,
            is_told_to_stop: false,
            worker,
        })
    }

    fn serve(mut self) -> io::Result<()> {
        while self.open > 0 && !self.is_told_to_stop {
            self.ring.wait()?;
            while let Some((cookie, result)) = self.ring.next() {
                self.heard(cookie, result)?;
            }
            self.answer_flushed();
            self.watch_flusher();
        }
        Ok(())
    }

    fn heard(&mut self, cookie: u64, result: i32) -> io::Result<()> {
        match (cookie, result) {
            (TOLD_TO_STOP, _) => self.is_told_to_stop = true,
            (FLUSH_ENDED, _) => self.is_flush_watched = false,
            (tag, 0) => self.request(tag as u16),
            (_, error) if error == -libc::ENODEV => self.open -= 1,
            (_, error) => return Err(io::Error::from_raw_os_error(-error)),
        }
        Ok(())
    }

    fn request(&mut self, tag: u16) {
        let asked = Description::from_bytes(&self.requests.get(tag));
        let data = Data { file: &self.worker.file, start: data_at(self.worker.index, tag) };
        let answer = match self.performer.perform(&asked, data) {
            Ok(answer) => answer,
            Err(failure) => {
                self.complain(&failure);
                return self.answer(tag, failure.result());
            }
        };
        if !answer.needs_flush {
            return self.answer(tag, answer.bytes);
        }
        self.waiting[usize::from(tag)] = answer.bytes;
        let flushed = self.flusher.flush(tag.into(), self.worker.blocks);
        flushed.into_iter().for_each(|flushed| self.answer_one(flushed));
    }

    fn answer_flushed(&mut self) {
        self.flusher.take().into_iter().for_each(|flushed| self.answer_one(flushed));
    }

    fn answer_one(&mut self, Flushed { cookies, result }: Flushed) {
        if let Err(error) = &result {
            self.complain(&format_args!("a flush failed: {error}"));
        }
        for tag in cookies {
            let done = self.waiting[tag as usize];
            self.answer(tag as u16, if result.is_ok() { done } else { -libc::EIO });
        }
    }

    fn answer(&mut self, tag: u16, result: i32) {
        let command = of_queue(self.worker.index, tag, result);
        self.ring.command(COMMIT_AND_FETCH, command, tag.into());
    }

    /// Has the ring tell of flushes that other threads do.
    fn watch_flusher(&mut self) {
        if let Some(descriptor) = self.flusher.waited_for().filter(|_| !self.is_flush_watched) {
            self.ring.watch(descriptor, FLUSH_ENDED);
            self.is_flush_watched = true;
        }
    }

    fn complain(&self, what: &dyn std::fmt::Display) {
        self.worker.complaints.lock().expect("panics abort").say(what);
    }
}
