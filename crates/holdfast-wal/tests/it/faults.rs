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
fn nothing_that_was_waited_for_is_lost_whichever_call_fails() {
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
