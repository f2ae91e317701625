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
    /// After so many looks it is; 0 for never.
    after_looks: AtomicU64,
}

impl Word {
    fn hurries(&self, is_hurried: bool) {
        self.is_hurried.store(is_hurried, Ordering::Relaxed);
    }
}

impl Lease for Word {
    fn is_held(&self) -> bool {
        false
    }

    fn is_hurried(&self) -> bool {
        let left = self
            .after_looks
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match left {
            // This look does not see it yet; the next does.
            Ok(1) => self.is_hurried.swap(true, Ordering::Relaxed),
            _ => self.is_hurried.load(Ordering::Relaxed),
        }
    }
}

/// Does something to a served volume, while its threads run and the power fails.
fn in_a_hurry(name: &str, work: impl FnOnce(&DirectVolume, &Word, NodeId)) {
    watched(name, &Arc::new(AtomicU64::new(0)), || {
        let scratch = Scratch::new(name);
        let opened = open(&scratch);
        let word = Arc::new(Word::default());
        opened.volume.acknowledge_while(word.clone());
        word.hurries(true);
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
        word.hurries(false);
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

/// As many as are synced one by one, and as are synced together.
const FILES: [u64; 2] = [5, 20];

/// Has a window wait for the word, which changes after so many looks. Returns whether the window
/// was under way by then.
fn window_meets(looks: u64, files: u64, opened: &DirectVolume, word: &Word) -> bool {
    let DirectVolume { volume, log, .. } = opened;
    word.hurries(true);
    for number in 0..files {
        let name = format!("{looks}-{files}-{number}");
        let made = volume.make(ROOT, name.as_bytes(), &new_node(Kind::File, 0o600));
        volume.write(made.expect("a free name").node, &[7; 4096], 0, true).expect("room");
    }
    let tail = log.marks().tail;
    wait_until(|| log.marks().durable >= tail);
    word.after_looks.store(looks, Ordering::Relaxed);
    word.hurries(false);
    let is_home = || log.marks().released >= tail;
    wait_until(|| word.is_hurried.load(Ordering::Relaxed) || is_home());
    thread::sleep(Duration::from_millis(20));
    let is_met = !is_home();
    match looks % 2 {
        // Somebody needs it.
        0 => {
            while !is_home() {
                volume.clean_step().expect("a sound disk");
            }
        }
        _ => word.hurries(false),
    }
    word.after_looks.store(0, Ordering::Relaxed);
    wait_until(is_home);
    is_met
}

#[test]
fn a_window_that_is_under_way_gives_way_wherever_it_is() {
    in_a_hurry("hurried-window", |opened, word, _| {
        for files in FILES {
            let met = (1..).take_while(|looks| window_meets(*looks, files, opened, word)).count();
            println!("{files} files: a window gives way at {met} moments");
            assert!(met > files as usize, "before each file and each sync");
        }
    });
}
