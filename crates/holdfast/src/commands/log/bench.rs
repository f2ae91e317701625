//! `holdfast log bench`.
//!
//! Promise: measures in a folder of its own, which is gone afterwards; every figure is of records
//! that are on the disk.
//! Never: compares; `make bench-log` does.

use super::opened::{AnyLog, what, write_problem};
use crate::commands::folder::Folder;
use crate::output::{Output, Progress};
use holdfast_config::exit::Exit;
use holdfast_config::problem::{Outcome, Problem};
use holdfast_figures::percentile;
use holdfast_wal::{Background, Options};
use serde_json::{Value, json};
use std::fmt::Display;
use std::path::Path;
use std::time::{Duration, Instant};

/// What it does, for messages.
const DOING: &str = "measuring";

/// Threads that wait for their records.
const THREADS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Bytes of every record.
const RECORD_BYTES: usize = 113;

/// What a measurement came to.
struct Rate {
    name: String,
    records_per_s: f64,
    /// Half of the records waited at most so long, and all but one of a hundred.
    waits_us: Option<(f64, f64)>,
}

/// Measures.
pub(super) fn bench(directory: &Path, seconds: f64, output: Output) -> Outcome<()> {
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    let time = time.ok_or_else(|| {
        let why = format!("{seconds} seconds are no time");
        Problem::new(Exit::Usage, what(DOING, directory), why, "correct --seconds")
    })?;
    let failed = |error: &dyn Display| write_problem(DOING, directory, error);
    let whole = Folder::make(directory).map_err(|error| failed(&error))?;
    let mut progress = Progress::new();
    let mut rates = Vec::new();
    for threads in THREADS {
        progress.say(&format!("{threads} threads, a durable record each"));
        rates.push(synced(whole.path(), threads, time).map_err(|error| failed(&*error))?);
    }
    progress.say("records that are waited for once");
    rates.push(pipelined(whole.path(), time).map_err(|error| failed(&*error))?);
    drop(progress);
    let text: String = rates.iter().map(Rate::text).collect();
    output.result(&rates.iter().map(Rate::json).collect::<Vec<_>>(), &text);
    Ok(())
}

type Measured<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn log(whole: &Path, background: Background) -> Measured<(AnyLog, Folder)> {
    let folder = Folder::new(whole.join("log"))?;
    let (log, _) =
        AnyLog::open_or_create(folder.path(), &Options::new().with_background(background))?;
    Ok((log, folder))
}

fn synced(whole: &Path, threads: usize, time: Duration) -> Measured<Rate> {
    let (log, _folder) = log(whole, Background::Prepare)?;
    let began = Instant::now();
    let mut waits_ns = std::thread::scope(|scope| {
        let run = || scope.spawn(|| appended_for(&log, began, time));
        let running: Vec<_> = (0..threads).map(|_| run()).collect();
        let waits = running.into_iter().map(|thread| thread.join().map_err(|_| "a thread died")?);
        waits.collect::<Measured<Vec<_>>>()
    })?
    .concat();
    let seconds = began.elapsed().as_secs_f64();
    log.close()?;
    waits_ns.sort_unstable();
    let us = |percent| percentile(&waits_ns, percent) as f64 / 1000.0;
    Ok(Rate {
        name: format!("{threads} threads"),
        records_per_s: waits_ns.len() as f64 / seconds,
        waits_us: Some((us(50), us(99))),
    })
}

/// How long each record of one thread took until it was durable.
fn appended_for(log: &AnyLog, began: Instant, time: Duration) -> Measured<Vec<u64>> {
    let (record, mut waits_ns) = (vec![0x5a; RECORD_BYTES], Vec::new());
    loop {
        let asked = Instant::now();
        log.append_durable(&record)?;
        waits_ns.push(u64::try_from(asked.elapsed().as_nanos())?);
        // Behind the first one: a busy machine may begin late.
        if began.elapsed() >= time {
            return Ok(waits_ns);
        }
    }
}

fn pipelined(whole: &Path, time: Duration) -> Measured<Rate> {
    let (log, _folder) = log(whole, Background::DrainAndPrepare)?;
    let (record, mut count) = (vec![0x5a; RECORD_BYTES], 0_u64);
    let began = Instant::now();
    while began.elapsed() < time {
        log.append(&record)?;
        count += 1;
    }
    log.commit()?;
    let records_per_s = count as f64 / began.elapsed().as_secs_f64();
    log.close()?;
    Ok(Rate { name: "pipelined".to_owned(), records_per_s, waits_us: None })
}

impl Rate {
    fn text(&self) -> String {
        let waits = self.waits_us.map_or_else(String::new, |(p50, p99)| {
            format!(", half within {p50:.0} us, 99 of 100 within {p99:.0} us")
        });
        format!("{:<10} {:>12.0} records/s{waits}\n", self.name, self.records_per_s)
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "records_per_s": self.records_per_s,
            "p50_us": self.waits_us.map(|waits| waits.0),
            "p99_us": self.waits_us.map(|waits| waits.1),
            "class": "disk",
        })
    }
}
