//! A process that has a log open forks, and the child goes on with what it was given.
//!
//! The process that forks is this test's program, started again for one test alone, so that no
//! thread of another test has a lock that the child would wait for.

use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::pin::Pin;
use std::process::Command;
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use holdfast_io::fake::Forked;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{
    AppendError, Background, CheckpointError, CommitError, Log, OpenError, Replay, ReplayError,
    TruncateError,
};

use crate::support::{SMALL, Work, WorkLog, records, work, works};

/// The directory that a process is told to log in, and to fork.
const DIRECTORY: &str = "HOLDFAST_WAL_FORKED_IN";

/// Every kind of log: each has other threads, which its child has not.
const ALL: [Background; 3] = [Background::None, Background::Prepare, Background::DrainAndPrepare];

/// Longer than a parent takes to write over what a child would write over.
const A_MOMENT: Duration = Duration::from_millis(50);

fn opened(directory: &Path, background: Background) -> WorkLog {
    let options = SMALL.with_background(background);
    Log::<Work, MessagePack>::open_or_create(directory, &options).expect("it opens").0
}

/// Calls `scene` for each kind of log, in a process that runs this test alone.
fn alone(test: &str, scene: impl Fn(&Path, Background)) {
    if let Some(directory) = std::env::var_os(DIRECTORY) {
        let place = |background| Path::new(&directory).join(format!("{background:?}"));
        return ALL.into_iter().for_each(|background| scene(&place(background), background));
    }
    let directory = tempfile::tempdir().unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("forks::{test}"), "--nocapture"])
        .env(DIRECTORY, directory.path())
        .status();
    assert!(ran.unwrap().success());
}

/// Appends these and waits for them.
fn keep(log: &WorkLog, ids: std::ops::Range<u32>) {
    ids.for_each(|id| log.append(&work(id)).unwrap().wait().unwrap());
}

/// Appends these.
fn append(log: &WorkLog, ids: std::ops::Range<u32>) {
    for id in ids {
        log.append(&work(id)).unwrap();
    }
}

/// What a new opener finds.
fn found(directory: &Path) -> Vec<Work> {
    records(&opened(directory, Background::None)).unwrap()
}

/// Whether somebody was told that he is the child of a fork.
fn is_told(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.to_string().contains("forked")
}

fn is_refused(done: &Result<(), CommitError>) -> bool {
    done.as_ref().is_err_and(refuses)
}

fn refuses(error: &CommitError) -> bool {
    matches!(error, CommitError::Failed(error) if is_told(error))
}

#[test]
fn a_child_that_drops_the_log_takes_nothing_from_its_parent() {
    alone("a_child_that_drops_the_log_takes_nothing_from_its_parent", |directory, background| {
        let log = opened(directory, background);
        keep(&log, 0..10);
        log.append(&work(10)).unwrap();
        // The child has a copy of this, and drops it.
        let log = RefCell::new(Some(log));
        let child = Forked::begin(|| {
            thread::sleep(A_MOMENT);
            drop(log.take());
        });
        let log = log.into_inner().unwrap();
        keep(&log, 11..20);
        child.wait();
        keep(&log, 20..30);
        drop(log);
        assert_eq!(found(directory), works(0..30), "{background:?}");
    });
}

#[test]
fn a_child_is_refused_whatever_would_change_the_log_of_its_parent() {
    alone(
        "a_child_is_refused_whatever_would_change_the_log_of_its_parent",
        |directory, background| {
            let log = opened(directory, background);
            keep(&log, 0..10);
            let waits = log.append(&work(10)).unwrap();
            let child = Forked::begin(|| {
                thread::sleep(A_MOMENT);
                changes_nothing(&log, waits.end());
                assert!(is_refused(&waits.wait()));
                let mut context = Context::from_waker(Waker::noop());
                let polled = Future::poll(Pin::new(&mut waits.into_future()), &mut context);
                // A thread of the log may have been faster than the fork.
                assert!(
                    matches!(polled, Poll::Ready(done) if waits.is_durable() || is_refused(&done))
                );
            });
            keep(&log, 11..20);
            child.wait();
            keep(&log, 20..30);
            assert!(log.stat().failed.is_none());
            drop(log);
            assert_eq!(found(directory), works(0..30), "{background:?}");
        },
    );
}

/// Tries everything but to drop the log.
fn changes_nothing(log: &WorkLog, end: holdfast_wal::Lsn) {
    let appended = log.append(&work(500)).map(|_| ());
    assert!(matches!(appended, Err(AppendError::Failed(error)) if is_told(&error)));
    assert!(is_refused(&log.commit()));
    assert!(is_refused(&log.commit_to(end)));
    assert!(matches!(
        log.checkpoint(end),
        Err(CheckpointError::NotDurable(error)) if refuses(&error)
    ));
    assert!(matches!(
        log.truncate_after(log.stat().checkpoint),
        Err(TruncateError::NotDurable(error)) if refuses(&error)
    ));
    assert!(is_refused(&log.close()));
    assert!(log.stat().failed.is_some_and(|error| is_told(&error)));
}

#[test]
fn a_child_reads_what_was_durable_and_waits_for_nothing_more() {
    alone("a_child_reads_what_was_durable_and_waits_for_nothing_more", |directory, background| {
        let log = opened(directory, background);
        append(&log, 0..3000);
        log.commit().unwrap();
        let mut begun = log.iter();
        // So far that threads read ahead, which the child has not.
        let first: Vec<_> = begun.by_ref().take(1500).map(|entry| entry.unwrap().record).collect();
        let (begun, tail) = (RefCell::new(begun), RefCell::new(log.tail(log.stat().end)));
        Forked::does(|| {
            assert_eq!(records(&log).unwrap(), works(0..3000));
            assert_eq!(log.iter_back().count(), 3000);
            assert_eq!(rest(&mut begun.borrow_mut()), works(1500..3000));
            let next = tail.borrow_mut().next(Duration::from_secs(600));
            assert!(matches!(next, Err(ReplayError::Failed(error)) if is_told(&error)));
        });
        assert_eq!([first, rest(&mut begun.borrow_mut())].concat(), works(0..3000));
    });
}

fn rest(replay: &mut Replay<Work, MessagePack>) -> Vec<Work> {
    replay.map(|entry| entry.unwrap().record).collect()
}

#[test]
fn a_child_that_drops_a_replay_halfway_waits_for_none_of_its_threads() {
    alone(
        "a_child_that_drops_a_replay_halfway_waits_for_none_of_its_threads",
        |directory, background| {
            let log = opened(directory, background);
            keep(&log, 0..10);
            append(&log, 10..40_000);
            log.commit().unwrap();
            let mut begun = log.iter();
            begun.by_ref().take(20_000).for_each(|entry| drop(entry.unwrap()));
            let begun = RefCell::new(Some(begun));
            Forked::does(|| drop(begun.take()));
            assert_eq!(begun.into_inner().unwrap().count(), 20_000);
        },
    );
}

#[test]
fn the_lock_of_a_directory_stays_with_its_parent_when_a_child_drops_the_log_and_ends() {
    let test = "the_lock_of_a_directory_stays_with_its_parent_when_a_child_drops_the_log_and_ends";
    alone(test, |directory, background| {
        let log = RefCell::new(Some(opened(directory, background)));
        Forked::does(|| drop(log.take()));
        let again = Log::<Work, MessagePack>::open(directory, &SMALL);
        assert!(matches!(again, Err(OpenError::InUse)));
        let log = log.into_inner().unwrap();
        // A child that keeps what it was given does not keep the next opener out.
        let child = Forked::begin(|| thread::sleep(4 * A_MOMENT));
        drop(log);
        assert!(Log::<Work, MessagePack>::open(directory, &SMALL).is_ok());
        child.wait();
    });
}

#[test]
fn a_child_that_opens_the_log_after_its_parent_has_closed_it_has_it() {
    alone(
        "a_child_that_opens_the_log_after_its_parent_has_closed_it_has_it",
        |directory, background| {
            let log = opened(directory, background);
            keep(&log, 0..10);
            let old = RefCell::new(Some(log));
            let child = Forked::begin(|| {
                thread::sleep(A_MOMENT);
                let log = opened(directory, background);
                keep(&log, 10..20);
                // What it was given and what it has opened are two.
                drop(old.take());
                keep(&log, 20..30);
            });
            drop(old.into_inner());
            child.wait();
            assert_eq!(found(directory), works(0..30), "{background:?}");
        },
    );
}

#[test]
fn a_child_of_a_busy_process_is_refused_at_once_and_drops_the_log_at_once() {
    let test = "a_child_of_a_busy_process_is_refused_at_once_and_drops_the_log_at_once";
    alone(test, |directory, background| {
        let log = RefCell::new(Some(opened(directory, background)));
        for fork in 0..20 {
            // A thread of the log is about to take them to the device, or on its way.
            append(log.borrow().as_ref().unwrap(), 200 * fork..200 * (fork + 1));
            Forked::does(|| {
                let log = log.take().unwrap();
                changes_nothing(&log, log.stat().end);
                drop(log);
            });
        }
        drop(log.into_inner());
        assert_eq!(found(directory), works(0..4000), "{background:?}");
    });
}
