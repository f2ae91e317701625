//! Random signals to random processes of a running keeper, under a small load.
//!
//! Whatever comes, status tells it truthfully within a bounded number of questions, no
//! acknowledged line is lost, and after SIGCONT or a restart everything goes on.

use crate::fixture::{Ended, Fixture, NAME, kill};
use rustix::process::Signal;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Seeds, unless one is named.
const SEEDS: u64 = 2;
/// Signals a seed.
const STEPS: u32 = 8;
/// Questions about the status after which the truth has to be told.
const QUESTIONS: u32 = 200;

const SIGNALS: [Signal; 8] = [
    Signal::STOP,
    Signal::STOP,
    Signal::TERM,
    Signal::HUP,
    Signal::USR1,
    Signal::PIPE,
    Signal::KILL,
    Signal::KILL,
];

/// Whom a signal is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Whom {
    Keeper,
    FrontEnd,
    Server,
}

/// Draws numbers; the same from the same seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) as usize % count
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())]
    }
}

/// Writes numbered lines, each synced, and knows how many were acknowledged.
struct Writer {
    acknowledged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Writer {
    fn start(path: PathBuf) -> Writer {
        let (acknowledged, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (counter, stopped) = (acknowledged.clone(), stop.clone());
        let thread = std::thread::spawn(move || {
            let mut file = File::create(path).unwrap();
            while !stopped.load(Ordering::Relaxed) {
                let number = counter.load(Ordering::Relaxed);
                writeln!(file, "{number}").and_then(|()| file.sync_data()).unwrap();
                counter.store(number + 1, Ordering::Relaxed);
                std::thread::sleep(Duration::from_millis(2));
            }
        });
        Writer { acknowledged, stop, thread }
    }

    fn count(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    fn finish(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
        self.acknowledged.load(Ordering::Relaxed)
    }
}

struct Run {
    seed: u64,
    step: u32,
    fixture: Fixture,
    draw: Draw,
}

impl Run {
    fn tell(&self, what: &str) -> String {
        format!(
            "{what}; seed {}, step {}; repeat with HOLDFAST_SEED={0} cargo test -p holdfast --test \
             command random_signals\n{}",
            self.seed,
            self.step,
            self.fixture.keeper_log()
        )
    }

    /// Asks until this code and these words are the answer.
    fn ask_until(&self, code: i32, words: &[String]) {
        let mut last = None;
        for _ in 0..QUESTIONS {
            let ended = self.fixture.holdfast(&["status"]);
            let says = words.iter().all(|word| ended.out.contains(word));
            if ended.code == Some(code) && says {
                return;
            }
            last = Some(ended);
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{}", self.tell(&format!("never {code} with {words:?}: {last:?}")));
    }

    fn pid(&self, whom: Whom) -> Option<i32> {
        match whom {
            Whom::Keeper => Some(self.fixture.keeper_pid()),
            Whom::FrontEnd => Some(self.fixture.front_end()),
            Whom::Server => self.fixture.server(),
        }
    }

    /// Sends one signal, and sees what comes of it.
    fn step(&mut self, writer: &Writer) {
        self.step += 1;
        let (signal, whom) = self.drawn();
        let Some(pid) = self.pid(whom) else { return };
        println!("step {}: {signal:?} to {whom:?}", self.step);
        kill(pid, signal);
        if signal == Signal::STOP {
            let code = if whom == Whom::Keeper { 8 } else { 7 };
            self.ask_until(code, &[format!("kill -CONT {pid}")]);
            kill(pid, Signal::CONT);
        }
        self.ask_until(0, &[]);
        self.goes_on(writer);
        if !matches!(signal, Signal::KILL | Signal::TERM) {
            assert_eq!(self.pid(whom), Some(pid), "{}", self.tell("it was replaced"));
        }
    }

    /// What ends the keeper comes last.
    fn drawn(&mut self) -> (Signal, Whom) {
        loop {
            let signal = self.draw.one(&SIGNALS);
            let whom = self.draw.one(&[Whom::Keeper, Whom::FrontEnd, Whom::Server]);
            let ends_all = whom == Whom::Keeper && matches!(signal, Signal::TERM | Signal::KILL);
            if !ends_all {
                return (signal, whom);
            }
        }
    }

    fn goes_on(&self, writer: &Writer) {
        let before = writer.count();
        for _ in 0..QUESTIONS {
            if writer.count() > before {
                return;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        panic!("{}", self.tell("the writer hangs, and status says that all is well"));
    }

    /// The keeper ends one way or the other, and the home has every line.
    fn end(mut self, writer: Writer) {
        let count = writer.finish();
        match self.draw.below(2) {
            0 => assert_eq!(self.fixture.stop(), Some(0), "{}", self.tell("the end")),
            _ => {
                self.fixture.kill_keeper();
                let ended: Ended = self.fixture.holdfast(&["umount", NAME]);
                assert_eq!(ended.code, Some(0), "{}", self.tell(&format!("{ended:?}")));
            }
        }
        assert_eq!(lines(&self.fixture.home().join("lines")), count, "{}", self.tell("lines"));
    }
}

/// How many numbered lines there are from 0 on.
fn lines(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let numbers = text.lines().map(|line| line.parse::<u64>().unwrap());
    numbers.enumerate().take_while(|(at, number)| *at as u64 == *number).count() as u64
}

fn seeds() -> Vec<u64> {
    let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
    match number("HOLDFAST_SEED") {
        Some(seed) => vec![seed],
        None => (1..=SEEDS * number("HOLDFAST_SEEDS_FACTOR").unwrap_or(1)).collect(),
    }
}

#[test]
fn whatever_signal_comes_to_whom_status_tells_the_truth_and_no_line_is_lost() {
    for seed in seeds() {
        println!("seed {seed}");
        let mut fixture = Fixture::made();
        fixture.serve();
        let writer = Writer::start(fixture.mount().join("lines"));
        let mut run = Run { seed, step: 0, fixture, draw: Draw(seed) };
        for _ in 0..STEPS {
            run.step(&writer);
        }
        run.end(writer);
    }
}
