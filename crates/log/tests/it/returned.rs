//! A segment file of an earlier moment is put back beside a log that was truncated since.

use std::path::Path;

use holdfast_io::fake::{FakeFiles, Random};
use holdfast_io::{Files, OpenHow};
use holdfast_log::{CheckVerdict, Damage, Log, LogConfig, OpenError, Verified};

use crate::device::{ON_DEVICE, new_log, one, open, read};
use crate::lacking::{contents_of, image, segments_of};
use crate::support::{Put, replay, seeds};
use crate::survivor::{PLAIN, SHORT};

/// A log that was truncated now and then.
struct Lived {
    files: FakeFiles,
    /// What was put into it and not cut off.
    sure: Vec<Put>,
    /// As it was at moments before.
    before: Vec<FakeFiles>,
}

fn lived(config: LogConfig, seed: u64) -> Lived {
    let mut random = Random::new(seed);
    let (files, mut log) = new_log(seed, config);
    let (mut sure, mut before, mut next, mut applied) = (Vec::<Put>::new(), Vec::new(), 0, 0);
    for _ in 0..5 + random.below(12) {
        before.push(image(&files));
        match random.below(12) {
            0..6 => {
                for _ in 0..=random.below(25) {
                    sure.push(one(&log, next).expect("the disk is sound"));
                    next += 1;
                }
                log.commit(log.marks().tail).expect("the disk is sound");
            }
            6..9 if applied < sure.len() => {
                let kept = applied + random.below((sure.len() - applied) as u64) as usize;
                log.truncate_after(sure[kept].lsn).expect("a frame begins there");
                sure.truncate(kept);
            }
            9 if applied < sure.len() => {
                applied += 1 + random.below((sure.len() - applied) as u64) as usize;
                log.mark(sure[applied - 1].end).expect("the disk is sound");
                log.commit(log.marks().tail).expect("the disk is sound");
            }
            10 => {
                log.close().expect("the disk is sound");
                drop(log);
                log = open(&files, config).expect("it is whole").0;
            }
            _ => {
                log.prepare().expect("the disk is sound");
            }
        }
    }
    if random.chance(50) {
        log.close().expect("the disk is sound");
    }
    Lived { files, sure, before }
}

/// With one file of another image.
fn with_older(files: &FakeFiles, before: &FakeFiles, name: &str) -> FakeFiles {
    let (image, bytes) = (image(files), contents_of(before, name));
    let how = OpenHow { write: true, ..OpenHow::default() };
    let file = image.open(Path::new(name), how).expect("it is there");
    file.write_all_at(&bytes, 0).expect("the disk is sound");
    file.sync_data().expect("the disk is sound");
    image
}

/// Whether each of these is in the log, in order.
fn are_of(found: &[Put], sure: &[Put]) -> Result<(), String> {
    let mut rest = sure.iter();
    match found.iter().find(|put| !rest.any(|it| it == *put)) {
        Some(put) => Err(format!("the frame at {} is back", put.lsn)),
        None => Ok(()),
    }
}

/// What a look says is what an open and its readers come to; nobody sees what was cut off.
fn agree(files: &FakeFiles, config: LogConfig, sure: &[Put]) -> Result<bool, String> {
    let looked = Log::verify(files, &mut |_| {});
    let opened = open(&image(files), config);
    let repaired = FakeFiles::new(9);
    if Log::repair(files, Some(&repaired), &mut |_| {}).is_ok() {
        let (log, _) = open(&repaired, config).map_err(|error| format!("repaired: {error}"))?;
        are_of(&read(&log).0, sure).map_err(|error| format!("repaired: {error}"))?;
    }
    let (looked, log) = match (looked, opened) {
        (Err(_) | Ok(Verified { verdict: CheckVerdict::Corrupt { .. }, .. }), Err(_)) => {
            return Ok(true);
        }
        (Ok(looked), Ok((log, _))) => (looked, log),
        (looked, opened) => return Err(disagree(&looked, opened.map(drop))),
    };
    let (found, error) = read(&log);
    are_of(&found, sure)?;
    // An open knows of newer marks than the catalogue, and what lies below is not needed.
    let is_needed = |damage: &&Damage| damage.stretch.to > log.first();
    let lost = looked.damaged.iter().filter(is_needed).any(|damage| !damage.mendable);
    if lost != error.is_some() {
        return Err(format!("{:?}, and a reader: {error:?}", looked.damaged));
    }
    let from = sure.partition_point(|put| found.first().is_some_and(|first| put.lsn < first.lsn));
    if error.is_none() && !sure[from..].starts_with(&found) {
        return Err("some are left out".to_owned());
    }
    let (mut back, mut backwards) = (log.back_cursor(log.marks().durable), Vec::new());
    while let Ok(Some(frame)) = back.next_frame() {
        backwards.push(Put::of(&frame));
    }
    backwards.reverse();
    are_of(&backwards, sure).map_err(|error| format!("backwards: {error}"))?;
    if error.is_none() && backwards != found {
        return Err(format!("{} backwards, {} forwards", backwards.len(), found.len()));
    }
    drop(log);
    Ok(lost)
}

fn disagree(looked: &Result<Verified, OpenError>, opened: Result<(), OpenError>) -> String {
    format!("looked {looked:?}, opened {opened:?}")
}

/// Every older file in its turn. How many were put back, and how many were told as damage.
fn every_older_file(config: LogConfig, seed: u64) -> Result<(u64, u64), String> {
    let Lived { files, sure, before } = lived(config, seed);
    agree(&files, config, &sure).map_err(|error| format!("as it is: {error}"))?;
    let (mut put_back, mut told) = (0, 0);
    for (moment, before) in before.iter().enumerate() {
        for name in segments_of(before) {
            let is_there = segments_of(&files).contains(&name);
            if !is_there || contents_of(before, &name) == contents_of(&files, &name) {
                continue;
            }
            put_back += 1;
            let outcome = agree(&with_older(&files, before, &name), config, &sure);
            let damaged = outcome.map_err(|error| format!("{name} of moment {moment}: {error}"))?;
            told += u64::from(damaged);
        }
    }
    Ok((put_back, told))
}

#[test]
fn what_was_truncated_does_not_come_back_with_an_older_file() {
    let (mut put_back, mut told) = (0, 0);
    for seed in seeds(40) {
        let config = [ON_DEVICE, PLAIN, SHORT][(seed % 3) as usize];
        match every_older_file(config, seed) {
            Ok((files, damaged)) => (put_back, told) = (put_back + files, told + damaged),
            Err(error) => {
                panic!("{error}; {}", replay("what_was_truncated_does_not_come_back", seed))
            }
        }
    }
    println!("{put_back} files were put back, {told} were told as damage");
}
