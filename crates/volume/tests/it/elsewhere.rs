//! A volume whose log stands behind something that passes every call on, and fails some.
//!
//! What fails and passes (no room, no segment) is waited for and never seen. What fails for good
//! is EIO for the program that asked, and whoever takes over finds all that was acknowledged.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use std::{io, iter};

use holdfast_io::fake::Random;
use holdfast_io::tree::{Errno, ROOT, Tree};
use holdfast_log::{
    AppendError, Appended, CommitError, CommitLog, Frame, Log, Lsn, Marks, NoteError, ReadError,
    WordError,
};
use holdfast_volume::{Class, DirectoryVolume};

use crate::model::{Image, any_doing, apply, image_of, image_through};
use crate::seeds::for_each_seed;
use crate::world::World;

const STEPS: usize = 40;
const EIO: Errno = Errno::IO;

/// A kind of call that can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Call {
    Append,
    Commit,
    Mark,
    Read,
    CopyBytes,
    Word,
    SetWord,
    Note,
    ReplaceNotes,
}

/// How it fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    /// Once: there is no room, or no segment.
    Passing,
    /// For good, and all calls that want the device with it.
    Poisoned,
    /// For good, and all calls with it. The one that failed was carried out.
    Unreachable,
    /// Not at all, but the call is not passed on. For the canary.
    Lying,
}

/// Which call fails, after how many of its kind, and how.
#[derive(Clone, Copy, Debug)]
struct Fault {
    call: Call,
    skip: u64,
    how: How,
}

/// What has become of the fault.
struct Fate {
    left: u64,
    struck: bool,
}

/// A log that passes calls on to another.
struct Passing {
    log: Arc<Log>,
    fault: Fault,
    fate: Mutex<Fate>,
    last: Mutex<Option<Appended>>,
}

impl Passing {
    fn new(log: Arc<Log>, fault: Fault) -> Arc<Passing> {
        let fate = Mutex::new(Fate { left: fault.skip, struck: false });
        Arc::new(Passing { log, fault, fate, last: Mutex::new(None) })
    }

    fn has_struck(&self) -> bool {
        self.fate.lock().unwrap_or_else(PoisonError::into_inner).struck
    }

    /// How this call fails, and whether it is carried out all the same.
    fn strike(&self, call: Call) -> Option<(How, bool)> {
        let mut fate = self.fate.lock().unwrap_or_else(PoisonError::into_inner);
        let device = matches!(call, Call::Append | Call::Commit | Call::Mark);
        if fate.struck {
            return match self.fault.how {
                How::Unreachable => Some((How::Unreachable, false)),
                How::Poisoned if device => Some((How::Poisoned, false)),
                _ => None,
            };
        }
        if call != self.fault.call {
            return None;
        }
        if fate.left > 0 {
            fate.left -= 1;
            return None;
        }
        fate.struck = true;
        Some((self.fault.how, self.fault.how == How::Unreachable))
    }

    /// Passes a call on, unless it fails; `error` tells how it fails then.
    fn pass<T, E>(
        &self,
        call: Call,
        work: impl FnOnce() -> Result<T, E>,
        error: impl FnOnce(How) -> E,
    ) -> Result<T, E> {
        let Some((how, carried_out)) = self.strike(call) else { return work() };
        if carried_out {
            let _ = work();
        }
        Err(error(how))
    }
}

fn why() -> Arc<io::Error> {
    Arc::new(io::Error::other("injected"))
}

fn append_error(how: How) -> AppendError {
    match how {
        How::Passing | How::Lying => AppendError::Full,
        How::Poisoned => AppendError::Poisoned(why()),
        How::Unreachable => AppendError::Unreachable(why()),
    }
}

impl CommitLog for Passing {
    fn append(&self, records: u16, parts: &[&[u8]]) -> Result<Appended, AppendError> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let work = || self.log.append(records, parts);
        match (self.pass(Call::Append, work, append_error), *last) {
            (Err(_), Some(lie)) if self.fault.how == How::Lying => Ok(lie),
            (appended, _) => {
                *last = appended.as_ref().ok().copied();
                appended
            }
        }
    }

    fn wait_for_room(&self, payload_bytes: u64, patience: Duration) -> Result<(), AppendError> {
        match self.fault.how {
            How::Unreachable | How::Poisoned if self.has_struck() => {
                Err(append_error(self.fault.how))
            }
            _ => self.log.wait_for_room(payload_bytes, patience),
        }
    }

    fn commit(&self, upto: Lsn) -> Result<(), CommitError> {
        self.pass(
            Call::Commit,
            || self.log.commit(upto),
            |how| match how {
                How::Passing | How::Lying => CommitError::Unprepared(why()),
                How::Poisoned => CommitError::Poisoned(why()),
                How::Unreachable => CommitError::Unreachable(why()),
            },
        )
    }

    fn marks(&self) -> Marks {
        self.log.marks()
    }

    fn read(
        &self,
        from: Lsn,
        to: Lsn,
        each: &mut dyn FnMut(&Frame<'_>) -> bool,
    ) -> Result<(), ReadError> {
        let work = || CommitLog::read(&*self.log, from, to, each);
        self.pass(Call::Read, work, |_| ReadError::Unreachable(why()))
    }

    fn copy_bytes(&self, lsn: Lsn, into: &mut [u8]) -> Result<(), ReadError> {
        let work = || CommitLog::copy_bytes(&*self.log, lsn, into);
        self.pass(Call::CopyBytes, work, |_| ReadError::Unreachable(why()))
    }

    fn mark(&self, released: Lsn) -> Result<(), AppendError> {
        self.pass(Call::Mark, || self.log.mark(released), append_error)
    }

    fn release(&self, upto: Lsn) {
        if !(self.fault.how == How::Unreachable && self.has_struck()) {
            self.log.release(upto);
        }
    }

    fn payload_bytes_max(&self) -> u64 {
        self.log.payload_bytes_max()
    }

    fn word(&self, index: usize) -> Result<u64, WordError> {
        let error = |_| WordError::Unreachable(why());
        self.pass(Call::Word, || CommitLog::word(&*self.log, index), error)
    }

    fn set_word(&self, index: usize, value: u64) -> Result<(), WordError> {
        let error = |_| WordError::Unreachable(why());
        self.pass(Call::SetWord, || self.log.set_word(index, value), error)
    }

    fn add_to_word(&self, index: usize, more: u64) {
        self.log.add_to_word(index, more);
    }

    fn raise_word(&self, index: usize, value: u64) {
        self.log.raise_word(index, value);
    }

    fn note(&self, record: &[u8]) -> Result<(), NoteError> {
        self.pass(
            Call::Note,
            || self.log.note(record),
            |how| match how {
                How::Unreachable | How::Poisoned => NoteError::Unreachable(why()),
                How::Passing | How::Lying => NoteError::Full,
            },
        )
    }

    fn notes(&self) -> Result<Vec<Vec<u8>>, NoteError> {
        self.log.notes()
    }

    fn replace_notes(&self, records: &mut dyn Iterator<Item = Vec<u8>>) -> Result<(), NoteError> {
        let error = |_| NoteError::Unreachable(why());
        self.pass(Call::ReplaceNotes, || self.log.replace_notes(records), error)
    }
}

/// The tree after no change, after the first, and so on, on a volume with its log at hand.
fn expected(seed: u64) -> (Vec<Image>, Vec<Result<(), Errno>>) {
    let world = World::new(seed);
    let (volume, _) = world.open().expect("a new volume");
    let mut random = Random::new(seed);
    let results: Vec<_> = iter::repeat_with(|| {
        let result = apply(&volume, &any_doing(&mut random));
        (image_through(&volume), result)
    })
    .take(STEPS)
    .collect();
    let (mut images, results): (Vec<Image>, Vec<_>) = results.into_iter().unzip();
    images.insert(0, Image::new());
    (images, results)
}

/// Lives the same life with the fault. Returns whether it struck.
fn live(seed: u64, fault: Fault) -> bool {
    let told = format!("seed {seed}, {fault:?}");
    let (images, results) = expected(seed);
    let world = World::new(seed);
    let log = world.open_log();
    let passing = Passing::new(log.clone(), fault);
    let clock = Arc::new(world.clock.clone());
    let opened = DirectoryVolume::open(world.home(), passing.clone(), clock, Class::Memory);
    let mut step = 0;
    if let Ok((volume, _)) = &opened {
        let mut random = Random::new(seed);
        while step < STEPS {
            let result = apply(volume, &any_doing(&mut random));
            if result != results[step] {
                assert_eq!(result, Err(EIO), "{told}: step {step}");
                assert!(passing.has_struck() && fault.how != How::Passing, "{told}: step {step}");
                break;
            }
            step += 1;
            match step % 7 {
                2 | 5 => drop(log.drain().expect("a sound disk")),
                // What a log refuses it is asked for again.
                3 | 6 => drop(volume.clean_step()),
                _ => {}
            }
        }
        if fault.how == How::Poisoned && passing.has_struck() {
            assert_eq!(image_through(volume), images[step], "{told}: a refused change was seen");
            assert_eq!(volume.remove_dir(ROOT, b"none").map(drop), Err(Errno::NOENT), "{told}");
        }
    }
    let struck = passing.has_struck();
    drop((opened, passing, log));
    let (volume, _) = world.open().unwrap_or_else(|error| panic!("{told}: {error}"));
    let found = image_through(&volume);
    // Of the call that failed nobody knows whether it was carried out.
    let possible = &images[step..images.len().min(step + 2)];
    let possible = if step == STEPS { &images[step..] } else { possible };
    assert!(possible.contains(&found), "{told}: lost after step {step}: {found:?}");
    volume.detach().unwrap_or_else(|error| panic!("{told}: {error}"));
    assert_eq!(image_of(&*world.home()), found, "{told}: the home is not what was seen");
    struck
}

/// Lives with every fault of the kind, at several places. Returns how many struck.
fn live_with_all(test: &str, calls: &[Call], how: How) {
    let struck = std::cell::Cell::new(0);
    for_each_seed(test, &[], 0..4, |seed| {
        for call in calls {
            for skip in [0, 1, 2, 5, 11, 23] {
                struck.set(struck.get() + u32::from(live(seed, Fault { call: *call, skip, how })));
            }
        }
    });
    assert!(struck.get() as usize > 4 * calls.len(), "only {} faults struck", struck.get());
}

#[test]
fn want_of_room_is_waited_for_and_never_seen() {
    let calls = [Call::Append, Call::Commit, Call::Mark, Call::Note];
    live_with_all("elsewhere::want_of_room", &calls, How::Passing);
}

#[test]
fn a_poisoned_log_refuses_changes_and_loses_none() {
    let calls = [Call::Append, Call::Commit, Call::Mark];
    live_with_all("elsewhere::a_poisoned_log", &calls, How::Poisoned);
}

#[test]
fn a_log_out_of_reach_is_an_error_to_the_program_and_loses_nothing() {
    use Call::{Append, Commit, CopyBytes, Mark, Note, Read, ReplaceNotes, SetWord, Word};
    let calls = [Append, Commit, Mark, Read, CopyBytes, Word, SetWord, Note, ReplaceNotes];
    live_with_all("elsewhere::a_log_out_of_reach", &calls, How::Unreachable);
}

/// The checker must notice a log that acknowledges what it has not taken.
#[test]
#[should_panic(expected = "lost after step")]
fn canary_a_log_that_lies_is_noticed() {
    for skip in 1..10 {
        live(1, Fault { call: Call::Append, skip, how: How::Lying });
    }
}
