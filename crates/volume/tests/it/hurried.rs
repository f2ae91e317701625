//! While the power fails the disk is the drain's: the cleaner rests, unless somebody needs what it
//! gives.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use holdfast_io::Kind;
use holdfast_io::tree::{NodeId, ROOT, Tree};
use holdfast_volume::{DirectVolume, Lease};

use crate::threads::{Scratch, open, or_abort, watched};
use crate::world::new_node;

/// What a keeper would say.
#[derive(Default)]
struct Word {
    is_hurried: AtomicBool,
}

impl Lease for Word {
    fn is_held(&self) -> bool {
        false
    }

    fn is_hurried(&self) -> bool {
        self.is_hurried.load(Ordering::Relaxed)
    }
}

/// Does something to a served volume, while its threads run and the power fails.
fn in_a_hurry(name: &str, work: impl FnOnce(&DirectVolume, &Word, NodeId)) {
    watched(name, &Arc::new(AtomicU64::new(0)), || {
        let scratch = Scratch::new(name);
        let opened = open(&scratch);
        let word = Arc::new(Word::default());
        opened.volume.acknowledge_while(word.clone());
        word.is_hurried.store(true, Ordering::Relaxed);
        let stop = AtomicBool::new(false);
        let DirectVolume { volume, log, .. } = &opened;
        thread::scope(|scope| {
            scope.spawn(|| or_abort(|| log.run_drainer(&stop)));
            scope.spawn(|| or_abort(|| volume.run_cleaner(&stop)));
            scope.spawn(|| or_abort(|| log.run_preparer(&stop)));
            let made = volume.make(ROOT, b"f", &new_node(Kind::File, 0o600));
            or_abort(|| work(&opened, &word, made.expect("a free name").node));
            stop.store(true, Ordering::Relaxed);
        });
        opened.detach().expect("a sound disk");
    });
}

fn wait_until(is_so: impl Fn() -> bool) {
    while !is_so() {
        thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_cleaner_leaves_the_disk_to_a_drain_and_goes_on_after_it() {
    in_a_hurry("hurried-rests", |opened, word, node| {
        let DirectVolume { volume, log, .. } = opened;
        volume.write(node, &[7; 4096], 0, true).expect("room");
        let tail = log.marks().tail;
        wait_until(|| log.marks().durable >= tail);
        let released = log.marks().released;
        thread::sleep(Duration::from_millis(500));
        assert_eq!(log.marks().released, released, "it cleans");
        word.is_hurried.store(false, Ordering::Relaxed);
        wait_until(|| log.marks().released >= tail);
    });
}

#[test]
fn who_needs_room_has_it_although_the_power_fails() {
    in_a_hurry("hurried-room", |opened, _, node| {
        let piece = [9; 64 << 10];
        // Several times what the ring takes.
        for number in 0..128 {
            opened.volume.write(node, &piece, number * piece.len() as u64, true).expect("room");
        }
    });
}
