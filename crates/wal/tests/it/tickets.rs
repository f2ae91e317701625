//! Tickets: durable, and in order, whichever way they are waited for.

use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use holdfast_io::fake::FakeFiles;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{Awaited, Background, CommitError, Log, Options, Ticket};

use crate::support::{SMALL, Work, new_log, place, work};

const PATIENCE: Duration = Duration::from_secs(60);
const DRAINED: Options = SMALL.with_background(Background::DrainAndPrepare);

/// Says its number when it is woken.
struct Bell {
    number: usize,
    rung: Mutex<Sender<usize>>,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.rung.lock().unwrap().send(self.number).expect("the test still listens");
    }
}

/// Polls a ticket with a bell of this number.
fn poll(
    ticket: &mut Awaited<'_>,
    number: usize,
    rung: &Sender<usize>,
) -> Poll<Result<(), CommitError>> {
    let waker = Waker::from(Arc::new(Bell { number, rung: Mutex::new(rung.clone()) }));
    Pin::new(ticket).poll(&mut Context::from_waker(&waker))
}

/// What a ticket comes to, once it is woken.
fn block_on(ticket: Ticket<'_>, (rung, heard): &(Sender<usize>, Receiver<usize>)) -> Outcome {
    let mut ticket = ticket.into_future();
    loop {
        match poll(&mut ticket, 0, rung) {
            Poll::Ready(outcome) => return outcome,
            Poll::Pending => heard.recv_timeout(PATIENCE).expect("it is woken"),
        };
    }
}

type Outcome = Result<(), CommitError>;

#[test]
fn pitfall_17_tickets_resolve_in_order_and_never_before_they_are_durable() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_or_create(directory.path(), &DRAINED).unwrap();
    let (rung, heard) = channel();
    let mut tickets = Vec::new();
    let mut waiting = Vec::new();
    for number in 0..5_000 {
        let ticket = log.append(&work(number as u32)).unwrap();
        let mut awaited = ticket.into_future();
        match poll(&mut awaited, number, &rung) {
            Poll::Ready(outcome) => assert!(outcome.is_ok() && ticket.is_durable()),
            Poll::Pending => waiting.push(number),
        }
        tickets.push((ticket, awaited));
    }
    let mut woken = Vec::new();
    while woken.len() < waiting.len() {
        let number = heard.recv_timeout(PATIENCE).expect("each is woken");
        assert!(tickets[number].0.is_durable());
        if waiting.binary_search(&number).is_err() {
            continue; // Its answer came while it went to sleep, so it is woken for nothing.
        }
        assert!(matches!(poll(&mut tickets[number].1, number, &rung), Poll::Ready(Ok(()))));
        woken.push(number);
    }
    assert_eq!(woken, waiting, "woken in the order of their positions");
}

#[test]
fn a_ticket_of_a_log_without_threads_is_awaited_all_the_same() {
    let (_files, log) = new_log(1);
    let ticket = log.append(&work(1)).unwrap();
    assert!(!ticket.is_durable());
    block_on(ticket, &channel()).unwrap();
    assert!(ticket.is_durable());
}

#[test]
fn who_has_only_the_end_of_a_ticket_can_wait_for_it() {
    let directory = tempfile::tempdir().unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_or_create(directory.path(), &DRAINED).unwrap();
    let log = Arc::new(log);
    let end = log.append(&work(1)).unwrap().end();
    let other = Arc::clone(&log);
    std::thread::spawn(move || other.commit_to(end)).join().unwrap().unwrap();
    assert!(log.stat().durable >= end);
}

#[test]
fn pitfall_18_a_failed_device_is_told_to_every_ticket_for_good() {
    let (files, log) = new_log(2);
    drop(log);
    let (log, _) = Log::<Work, MessagePack>::open_at(place(&files), &DRAINED).unwrap();
    log.commit().unwrap();
    files.cut_power_at(files.operations() + 1);
    let tickets: Vec<_> = (0..20).filter_map(|id| log.append(&work(id)).ok()).collect();
    for ticket in tickets {
        let outcome = block_on(ticket, &channel());
        assert!(matches!(outcome, Err(CommitError::Failed(_))), "{outcome:?}");
        assert!(matches!(ticket.wait(), Err(CommitError::Failed(_))));
    }
    assert!(log.stat().failed.is_some());
}

/// Does nothing when it is woken; it lives while somebody has it.
struct Silent;

impl Wake for Silent {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_ticket_that_waits_for_a_full_disk_keeps_one_waker_and_none_once_it_is_dropped() {
    let files = FakeFiles::new(3);
    Log::<Work, MessagePack>::create_at(&place(&files), &DRAINED).unwrap();
    let (log, _) = Log::<Work, MessagePack>::open_at(place(&files), &DRAINED).unwrap();
    files.set_capacity_bytes(Some(0));
    while log.append_durable(&work(1)).is_ok() {}
    let mut awaited = log.append(&work(1)).unwrap().into_future();
    let wakers: Vec<_> = std::iter::repeat_with(|| Arc::new(Silent)).take(1000).collect();
    assert!(wakers.iter().all(|waker| poll_with(&mut awaited, waker).is_pending()));
    let kept = || wakers.iter().filter(|waker| Arc::strong_count(waker) > 1).count();
    assert_eq!(kept(), 1);
    drop(awaited);
    assert_eq!(kept(), 0);
}

fn poll_with(ticket: &mut Awaited<'_>, waker: &Arc<Silent>) -> Poll<Outcome> {
    Pin::new(ticket).poll(&mut Context::from_waker(&Arc::clone(waker).into()))
}
