//! Payload: data copied through a session's memory, a request for each piece.
//!
//! Promise: counts a byte once that was copied in by one process and out by the other, on two
//! cores.
//! Never: checks the bytes; the tests of the memory do.

use std::error::Error;
use std::time::{Duration, Instant};

use holdfast_figures::{Better, Figure};
use holdfast_memory::SessionMemory;
use holdfast_memory::queue::{Request, Response, SPINS};

use crate::rounds::{CORE, Effort, PLACES};
use crate::ways::{self, Echo, ask_queue};

/// How the echoing process is told.
pub(crate) const NAME: &str = "payload";

/// Bytes of a piece.
const SIZES: [u32; 5] = [4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20];

const BUFFER_BYTES: u32 = 1 << 20;

/// Longer than any piece takes.
const PATIENCE: Duration = Duration::from_secs(60);

/// Bytes a second of each size.
pub(crate) fn measure(effort: &Effort) -> Result<Vec<Figure>, Box<dyn Error>> {
    ways::pin(CORE)?;
    let (session, file) = SessionMemory::create_sealed(BUFFER_BYTES)?;
    let [.., (core, _)] = PLACES;
    let _echo = Echo::start(NAME, core, [file.try_clone()?, file])?;
    let mut runs: [Vec<f64>; SIZES.len()] = Default::default();
    for _ in 0..effort.rounds {
        for (runs, bytes) in runs.iter_mut().zip(SIZES) {
            runs.push(rate(&session, bytes, effort.time / 2)?);
        }
    }
    let figures = runs.into_iter().zip(SIZES).map(|(runs, bytes)| {
        let id = format!("queue.payload.{}k.bytes_per_s", bytes >> 10);
        Figure::of(id, "bytes/s", Better::Higher, runs)
    });
    Ok(figures.collect())
}

/// Bytes a second in pieces of this size.
fn rate(session: &SessionMemory, bytes: u32, time: Duration) -> Result<f64, Box<dyn Error>> {
    let piece = vec![0x5a; bytes as usize];
    let (began, mut carried) = (Instant::now(), 0_u64);
    while began.elapsed() < time {
        session.copy_in(0, &piece)?;
        ask_queue(session.queue(), SPINS, Request { bytes, ..Request::default() })?;
        carried += u64::from(bytes);
    }
    Ok(carried as f64 / began.elapsed().as_secs_f64())
}

/// Takes pieces for ever.
pub(crate) fn echo() -> Result<(), Box<dyn Error>> {
    let session = SessionMemory::map(rustix::stdio::stdin())?;
    let mut piece = vec![0; BUFFER_BYTES as usize];
    loop {
        if session.queue().wait_for_work(SPINS, PATIENCE) {
            while let Some(taken) = session.queue().take()? {
                let bytes = taken.request.bytes.min(BUFFER_BYTES);
                session.copy_out(taken.request.buffer, &mut piece[..bytes as usize])?;
                session.queue().complete(taken.slot, &Response::default())?;
            }
        }
    }
}
