//! Calls that fail, once, anywhere; then the power is cut.

use holdfast_io::fake::{EINTR, EIO, ENOSPC, Effect, FakeFiles, Fault, Mood, Operation, Random};

use crate::power::{Known, life};

const OPERATIONS: [Operation; 8] = [
    Operation::Open,
    Operation::Metadata,
    Operation::Read,
    Operation::Write,
    Operation::SyncData,
    Operation::SetLen,
    Operation::ReadDir,
    Operation::SyncDir,
];

/// What it says of a file: what was done to it, and its name.
const DOING: [&str; 8] = [
    "opening",
    "looking at",
    "listing",
    "reading",
    "writing",
    "writing through",
    "syncing",
    "resizing",
];
const NAMES: [&str; 5] = ["segment-", "catalogue", "again", "cut", ".: "];

/// Whether an error says what was tried, with which file.
fn is_named(told: &str) -> bool {
    let of = |doing: &&str| NAMES.iter().any(|name| told.contains(&format!("{doing} {name}")));
    DOING.iter().any(of)
}

#[test]
fn an_error_without_a_file_would_be_noticed() {
    assert!(is_named("the log failed: writing segment-00000001 at byte 4096: no space"));
    assert!(!is_named("the log failed: No space left on device (os error 28)"));
}

/// Every call of this kind fails in turn. Whatever the program was told then, all that it waited
/// for is there afterwards.
fn strike_everywhere(operation: Operation, effect: Effect) -> u64 {
    for skip in 0.. {
        let files = FakeFiles::new(1);
        files.fail(Fault { operation, skip, effect });
        let mut known = Known::of_nothing();
        let outcome = life(&files, &mut known, &mut Random::new(1), 60);
        if files.faults_fired() == 0 {
            outcome.unwrap();
            assert!(skip > 0, "{operation:?} was never struck");
            return skip;
        }
        if let Err(error) = &outcome {
            assert!(is_named(&error.to_string()), "{operation:?} {skip}: {error}");
        }
        let transfer = matches!(operation, Operation::Read | Operation::Write);
        let whole = transfer && matches!(effect, Effect::Short | Effect::Errno(EINTR));
        assert!(outcome.is_ok() || !whole, "{operation:?} {skip}: {outcome:?}");
        for mood in [Mood::LoseAll, Mood::KeepAll, Mood::Scatter] {
            let image = files.after_power_cut_in(mood, skip);
            let again = life(&image, &mut known.clone(), &mut Random::new(skip), 5);
            assert!(again.is_ok(), "{operation:?} {effect:?} {skip} {mood:?}: {again:?}");
        }
    }
    unreachable!("a fault that is set late enough does not strike")
}

#[test]
fn nothing_that_was_waited_for_is_lost_whichever_call_fails_and_the_file_is_named() {
    let mut struck = 0;
    for operation in OPERATIONS {
        for effect in [Effect::Errno(EIO), Effect::Errno(ENOSPC), Effect::Errno(EINTR)] {
            struck += strike_everywhere(operation, effect);
        }
    }
    struck += strike_everywhere(Operation::Read, Effect::Short);
    struck += strike_everywhere(Operation::Write, Effect::Short);
    struck += strike_everywhere(Operation::SyncData, Effect::DropsDirty);
    println!("{struck} calls failed");
}
