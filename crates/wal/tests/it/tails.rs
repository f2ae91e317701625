//! Following a log.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use holdfast_io::fake::Random;
use holdfast_wal::format::MessagePack;
use holdfast_wal::{ReplayError, Tail};

use crate::support::{Work, new_log, work, works};

type WorkTail = Tail<Work, MessagePack>;

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn a_tail_sees_every_record_in_order_once_it_is_durable() {
    let (_files, log) = new_log(1);
    let second = (log.append(&work(0)).unwrap(), log.append(&work(1)).unwrap()).1;
    let mut tails = [log.tail(log.stat().checkpoint), log.tail(second.lsn())];
    assert!(tails[0].next(Duration::ZERO).unwrap().is_none(), "not durable yet");
    std::thread::scope(|scope| {
        let readers = tails.each_mut().map(|tail| {
            scope.spawn(move || {
                let next = || tail.next(PATIENCE).unwrap().expect("there is more").record;
                let mut seen: Vec<Work> = std::iter::repeat_with(next).take(299).collect();
                seen.extend(tail.next(Duration::ZERO).unwrap().map(|entry| entry.record));
                seen
            })
        });
        for set in works(2..300).chunks(7) {
            log.append_all(set).unwrap().wait().unwrap();
        }
        let [whole, later] = readers.map(|reader| reader.join().unwrap());
        assert!(whole == works(0..300));
        assert!(later == works(1..300));
    });
}

#[test]
fn a_tail_returns_when_its_time_is_over() {
    let (_files, log) = new_log(2);
    assert!(log.tail(log.stat().end).next(Duration::from_millis(10)).unwrap().is_none());
}

#[test]
fn a_tail_of_a_failed_log_says_that_there_will_be_no_more() {
    let (files, log) = new_log(3);
    log.append_durable(&work(0)).unwrap();
    let mut tail = log.tail(log.stat().checkpoint);
    files.cut_power_at(files.operations() + 1);
    log.append(&work(1)).unwrap().wait().unwrap_err();
    let seen = tail.next(PATIENCE).map(|entry| entry.map(|entry| entry.record));
    assert!(matches!(seen, Ok(Some(_)) | Err(ReplayError::Io(_))), "{seen:?}");
    let over = tail.next(PATIENCE);
    assert!(matches!(over, Err(ReplayError::Failed(_) | ReplayError::Io(_))), "{over:?}");
}

/// Rings when it is woken.
struct Bell(Sender<()>);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // Nobody may be listening any more.
        let _ = self.0.send(());
    }
}

/// A waker, and who hears of it.
fn bell() -> (Waker, Receiver<()>) {
    let (sender, heard) = channel();
    (Arc::new(Bell(sender)).into(), heard)
}

/// What a future comes to, polled only when it is woken.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let (waker, heard) = bell();
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return value;
        }
        heard.recv_timeout(PATIENCE).expect("it is woken when there is more");
    }
}

#[test]
fn tails_that_are_awaited_see_everything_and_end_with_their_log() {
    let (_files, log) = new_log(4);
    log.append_all(&works(0..50)).unwrap().wait().unwrap();
    let past = log.iter().nth(20).unwrap().unwrap();
    let tails = [log.tail(log.stat().checkpoint), log.tail(past.lsn), log.tail(log.stat().end)];
    std::thread::scope(|scope| {
        let readers = tails.map(|mut tail| {
            scope.spawn(move || {
                let mut seen = Vec::new();
                while let Some(entry) = block_on(tail.next_durable()).unwrap() {
                    seen.push(entry.record);
                }
                seen
            })
        });
        for set in works(50..300).chunks(7) {
            log.append_all(set).unwrap().wait().unwrap();
        }
        log.append_all(&works(300..303)).unwrap();
        log.close().unwrap();
        let [whole, past, later] = readers.map(|reader| reader.join().unwrap());
        assert!(whole == works(0..303) && past == whole);
        assert!(later == works(50..303));
    });
}

#[test]
fn a_tail_that_is_polled_sleeps_until_there_is_more() {
    let (_files, log) = new_log(5);
    let (waker, heard) = bell();
    let mut context = Context::from_waker(&waker);
    let mut tail = log.tail(log.stat().end);
    assert!(tail.poll_next(&mut context).is_pending());
    let ticket = log.append(&work(1)).unwrap();
    assert!(heard.try_recv().is_err(), "not durable yet");
    ticket.wait().unwrap();
    heard.try_recv().expect("woken by who made it durable");
    let Poll::Ready(Some(Ok(entry))) = tail.poll_next(&mut context) else { panic!("it is there") };
    assert_eq!(entry.record, work(1));
    assert!(tail.poll_next(&mut context).is_pending());
    drop(log);
    heard.try_recv().expect("woken by the end of the log");
    assert!(matches!(tail.poll_next(&mut context), Poll::Ready(None)));
}

#[test]
fn a_tail_beyond_a_cut_is_woken_and_told() {
    let (_files, log) = new_log(6);
    let kept = log.append_durable(&work(1)).unwrap().end();
    log.append_durable(&work(2)).unwrap();
    let (waker, heard) = bell();
    let mut context = Context::from_waker(&waker);
    let mut tail = log.tail(log.stat().end);
    let mut before = log.tail(kept);
    assert!(tail.poll_next(&mut context).is_pending());
    log.truncate_after(kept).unwrap();
    heard.try_recv().expect("woken by the cut");
    let told = tail.poll_next(&mut context);
    let Poll::Ready(Some(Err(ReplayError::Cut { from }))) = told else { panic!("{told:?}") };
    assert_eq!(from, kept);
    log.append_durable(&work(3)).unwrap();
    assert_eq!(block_on(before.next_durable()).unwrap().unwrap().record, work(3));
}

/// A waker that is like no other, and how often it was woken. It lives while somebody has it.
fn fresh() -> (Waker, Arc<Counted>) {
    let counted = Arc::new(Counted::default());
    (Arc::clone(&counted).into(), counted)
}

#[derive(Default)]
struct Counted(AtomicU32);

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Whether somebody besides the test still has it.
fn is_kept(counted: &Arc<Counted>) -> bool {
    Arc::strong_count(counted) > 1
}

#[test]
fn a_tail_keeps_the_waker_of_its_last_poll_and_none_once_it_is_dropped() {
    let (_files, log) = new_log(7);
    let mut tail = log.tail(log.stat().end);
    let mut polled = Vec::new();
    for _ in 0..10_000 {
        let (waker, counted) = fresh();
        assert!(tail.poll_next(&mut Context::from_waker(&waker)).is_pending());
        polled.push(counted);
    }
    assert_eq!(polled.iter().filter(|counted| is_kept(counted)).count(), 1);
    log.append_durable(&work(1)).unwrap();
    let woken = polled.iter().map(|counted| counted.0.load(Ordering::Relaxed));
    assert!(woken.eq((0..10_000).map(|poll| u32::from(poll == 9_999))), "the last is woken, once");
    let mut tail = log.tail(log.stat().end);
    let (waker, counted) = fresh();
    assert!(tail.poll_next(&mut Context::from_waker(&waker)).is_pending());
    drop((tail, waker));
    assert!(!is_kept(&counted));
}

#[test]
fn a_task_that_awaits_no_more_is_not_remembered() {
    let (_files, log) = new_log(8);
    let mut tail = log.tail(log.stat().end);
    let (waker, counted) = fresh();
    let mut next = Box::pin(tail.next_durable());
    assert!(next.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
    drop((next, waker));
    assert!(!is_kept(&counted));
    log.append_durable(&work(1)).unwrap();
    assert_eq!(block_on(tail.next_durable()).unwrap().unwrap().record, work(1));
}

/// Drops a tail when it is dropped itself, as the last waker of a task drops the task.
struct Owner {
    _owned: Mutex<WorkTail>,
}

impl Wake for Owner {
    fn wake(self: Arc<Self>) {}
}

#[test]
fn a_waker_whose_end_is_the_end_of_another_tail_hinders_nobody() {
    let (_files, log) = new_log(9);
    let mut tail = log.tail(log.stat().end);
    let mut other = log.tail(log.stat().end);
    assert!(other.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
    let owner = Waker::from(Arc::new(Owner { _owned: Mutex::new(other) }));
    assert!(tail.poll_next(&mut Context::from_waker(&owner)).is_pending());
    drop(owner);
    assert!(tail.poll_next(&mut Context::from_waker(Waker::noop())).is_pending());
    log.append_durable(&work(1)).unwrap();
}

/// A tail that somebody polls now and then, and who polled last.
struct Polled {
    tail: WorkTail,
    last: Option<Arc<Counted>>,
    seen: u32,
}

impl Polled {
    fn poll(&mut self) {
        let (waker, counted) = fresh();
        while let Poll::Ready(next) = self.tail.poll_next(&mut Context::from_waker(&waker)) {
            assert_eq!(next.expect("the log is open").unwrap().record, work(self.seen));
            self.seen += 1;
        }
        self.last = Some(counted);
    }
}

#[test]
fn of_many_tails_that_are_polled_dropped_and_made_nobody_is_forgotten() {
    for seed in 0..20 {
        let (_files, log) = new_log(seed);
        let (mut random, mut appended) = (Random::new(seed), 0);
        let new = |seen| Polled { tail: log.tail(log.stat().durable), last: None, seen };
        let mut tails: Vec<Polled> = Vec::new();
        for step in 0..400 {
            let at = random.below(8) as usize;
            match random.below(4) {
                0 if tails.len() < 8 => tails.push(new(appended)),
                0 | 1 if at < tails.len() => drop(tails.swap_remove(at)),
                2 => {
                    log.append_durable(&work(appended)).unwrap();
                    appended += 1;
                    let woken = |counted: &Arc<Counted>| counted.0.load(Ordering::Relaxed) == 1;
                    let all = tails.iter().filter_map(|polled| polled.last.as_ref()).all(woken);
                    assert!(all, "seed {seed}, step {step}: who sleeps is woken, once");
                }
                _ => tails.iter_mut().for_each(Polled::poll),
            }
        }
        tails.iter_mut().for_each(Polled::poll);
        assert!(tails.iter().all(|polled| polled.seen == appended), "seed {seed}");
    }
}
