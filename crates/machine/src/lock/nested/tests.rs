//! Processes whose descriptors change while they are looked at.

use super::*;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::sync::atomic::{AtomicBool, Ordering};

const LOOKS: usize = 3000;

#[test]
fn what_got_the_number_of_a_locked_descriptor_is_not_taken() {
    let (folder, ends) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let mounts = all_mounts();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !ends.load(Ordering::Relaxed) {
                let locked = File::open(folder.path()).unwrap();
                flock(&locked, FlockOperation::LockExclusive).unwrap();
                drop(locked);
                // The lowest number that is free, which is the same one but for other threads.
                drop(File::open("/").unwrap());
            }
        });
        let look = || {
            let own = ask_one(std::process::id(), LONG, {
                let mounts = mounts.clone();
                move |it| taken_by(it, &mounts)
            });
            own.expect("it tells").into_iter().find(|it| it.path == Path::new("/"))
        };
        let found = (0..LOOKS).find_map(|_| look());
        ends.store(true, Ordering::Relaxed);
        assert!(found.is_none(), "{found:?}");
    });
}
