//! Requests of a guest at random, each of which is answered once, and as a disk answers.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::guest::{Data, FLUSH, Guest, OK, READ, SLOTS, WRITE};
use crate::seeds::Random;

pub(crate) const QUEUES: usize = 2;
/// Sectors of each queue.
pub(crate) const SECTORS: u64 = 64;

/// What a guest asked for and what it must find.
pub(crate) struct Load {
    pub(crate) random: Random,
    /// What was written last, of each sector.
    written: Vec<u64>,
    /// Of each queue and slot, what a read there is to find.
    expected: [[Option<u64>; SLOTS]; QUEUES],
    pub(crate) asked: u64,
    pub(crate) answered: u64,
    pub(crate) faults: Vec<String>,
}

impl Load {
    pub(crate) fn new(seed: u64) -> Load {
        let written = vec![0; QUEUES * SECTORS as usize];
        let expected = [[None; SLOTS]; QUEUES];
        let random = Random::new(seed);
        Load { random, written, expected, asked: 0, answered: 0, faults: Vec::new() }
    }

    /// Asks for something in some queue that has room.
    fn ask(&mut self, guest: &mut Guest) {
        let queue = self.random.below(QUEUES as u64) as usize;
        if guest.queues[queue].is_waiting.iter().all(|is_waiting| *is_waiting) {
            return;
        }
        self.asked += 1;
        let sector = queue as u64 * SECTORS + self.random.below(SECTORS);
        match self.random.below(10) {
            0 => {
                guest.ask(queue, FLUSH, 0, Data::Room(0));
            }
            1..=3 => {
                let slot = guest.ask(queue, READ, sector, Data::Room(512));
                // Requests of a queue are done in their order.
                self.expected[queue][slot] = Some(self.written[sector as usize]);
            }
            _ => {
                let data = self.asked.to_le_bytes().repeat(64);
                guest.ask(queue, WRITE, sector, Data::Given(&data));
                self.written[sector as usize] = self.asked;
            }
        }
    }

    /// Takes the answers of which the guest was told.
    fn take(&mut self, guest: &mut Guest) {
        for queue in 0..QUEUES {
            if !guest.is_told(queue) {
                continue;
            }
            while let Some(answer) = guest.answer(queue) {
                let slot = answer.slot;
                if answer.status != OK {
                    self.faults.push(format!("status {}", answer.status));
                }
                let found = guest.given(queue, slot, 512);
                match self.expected[queue][slot].take() {
                    Some(value) if found != value.to_le_bytes().repeat(64) => {
                        self.faults.push(format!("a read does not find write {value}"));
                    }
                    _ => self.answered += 1,
                }
            }
            self.faults.append(&mut guest.queues[queue].faults);
        }
    }

    pub(crate) fn run_for(&mut self, guest: &mut Guest, time: Duration, pause_us: u64) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for _ in 0..self.random.below(8) {
                self.ask(guest);
            }
            if pause_us > 0 {
                std::thread::sleep(Duration::from_micros(self.random.below(pause_us)));
            }
            self.take(guest);
        }
    }

    /// Waits for all that was asked.
    pub(crate) fn finish(&mut self, guest: &mut Guest, patience: Duration) {
        let end = Instant::now() + patience;
        while self.answered < self.asked && Instant::now() < end {
            self.take(guest);
            std::thread::sleep(Duration::from_millis(1));
        }
        if self.answered != self.asked {
            self.faults.push(format!("{} of {} requests answered", self.answered, self.asked));
        }
    }

    /// Looks for all that was written where the disk is kept.
    pub(crate) fn compare(&mut self, store: &Path) {
        let file = File::open(store).unwrap();
        for (sector, value) in self.written.iter().enumerate() {
            let mut found = [0; 8];
            file.read_exact_at(&mut found, sector as u64 * 512).unwrap();
            if u64::from_le_bytes(found) != *value {
                self.faults.push(format!("sector {sector} has lost write {value}"));
            }
        }
    }
}
