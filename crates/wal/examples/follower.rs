//! A writer and a follower: what one thread appends, another sees as soon as it is durable.
//!
//! `follower DIRECTORY COUNT` writes so many numbers and prints how many were seen.
//!
//! Promise: the follower sees every number, in order, and none that a crash could take back.
//! Never: polls; waits for the device in the writer.

use std::error::Error;
use std::io::{Write, stdout};
use std::path::Path;
use std::thread;
use std::time::Duration;

use holdfast_wal::{Background, Log, Options, ReplayError, Tail, format::MessagePack};

/// How long the follower waits for another number.
const PATIENCE: Duration = Duration::from_secs(10);

/// Writes the numbers below `count`, and returns what a follower saw meanwhile.
pub(crate) fn run(directory: &Path, count: u64) -> Result<Vec<u64>, Box<dyn Error>> {
    let options = Options::new().with_background(Background::DrainAndPrepare);
    let (log, recovery) = Log::<u64, MessagePack>::open_or_create(directory, &options)?;
    let tail = log.tail(recovery.end);
    thread::scope(|scope| {
        let follower = scope.spawn(move || follow(tail, count));
        let mut last = None;
        for number in 0..count {
            last = Some(log.append(&number)?);
        }
        // One wait covers all that was appended before.
        last.map_or(Ok(()), |ticket| ticket.wait())?;
        Ok(follower.join().map_err(|_| "the follower panicked")??)
    })
}

fn follow(mut tail: Tail<u64, MessagePack>, count: u64) -> Result<Vec<u64>, ReplayError> {
    let mut seen = Vec::new();
    while (seen.len() as u64) < count {
        match tail.next(PATIENCE)? {
            Some(entry) => seen.push(entry.record),
            None => break,
        }
    }
    Ok(seen)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, count] = &arguments[..] else { return Err("follower DIRECTORY COUNT".into()) };
    let seen = run(Path::new(directory), count.parse()?)?;
    Ok(writeln!(stdout(), "{} numbers seen", seen.len())?)
}
