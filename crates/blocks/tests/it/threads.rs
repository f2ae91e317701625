//! Several threads at one disk.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use holdfast_io::Blocks;
use holdfast_io::fake::Random;
use holdfast_memory::Medium;

use crate::common::{BLOCK, Change, content, create, for_seeds, sent};

/// Whether all words of a block are the same.
fn is_of_one_piece(block: &[u8]) -> bool {
    block.chunks(8).all(|word| word == &block[..8])
}

/// A block full of one number.
fn full_of(number: u64) -> Vec<u8> {
    number.to_le_bytes().repeat(BLOCK / 8)
}

#[test]
fn a_reader_sees_each_block_of_one_piece_while_others_write_it() {
    const BLOCKS: u64 = 4;
    const WRITES: u64 = 30_000;
    let disk = create(&Medium::Private, BLOCKS as usize);
    let (numbers, done) = (AtomicU64::new(1), AtomicBool::new(false));
    let write = |seed| {
        let mut random = Random::new(seed);
        for _ in 0..WRITES {
            let number = numbers.fetch_add(1, Ordering::Relaxed);
            let offset = random.below(BLOCKS) * BLOCK as u64;
            match number % 16 {
                0 => disk.discard(offset, BLOCK as u64).unwrap(),
                _ => disk.write(&full_of(number), offset).unwrap(),
            }
        }
    };
    let send = || {
        let mut random = Random::new(10);
        while !done.load(Ordering::Relaxed) {
            let first = random.below(BLOCKS) as usize;
            let bytes = (BLOCKS as usize - first) * BLOCK;
            let heard = sent(&disk, first * BLOCK, bytes);
            assert!(heard.chunks(BLOCK).all(is_of_one_piece));
        }
    };
    let read = || {
        let (mut random, mut buffer) = (Random::new(9), vec![0; BLOCK]);
        while !done.load(Ordering::Relaxed) {
            disk.read(&mut buffer, random.below(BLOCKS) * BLOCK as u64).unwrap();
            assert!(is_of_one_piece(&buffer));
        }
    };
    thread::scope(|scope| {
        let readers = [scope.spawn(read), scope.spawn(read), scope.spawn(send)];
        let writers = [1, 2].map(|seed| scope.spawn(move || write(seed)));
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
    });
}

#[test]
fn writers_of_parts_of_one_block_do_not_undo_each_other() {
    let disk = create(&Medium::Private, 2);
    // Each its own 16 bytes of every 64.
    let write = |writer: usize| {
        for round in 1..=100_u64 {
            for stretch in 0..2 * BLOCK / 64 {
                let offset = stretch * 64 + writer * 16;
                disk.write(&[round, round].map(u64::to_le_bytes).concat(), offset as u64).unwrap();
            }
        }
    };
    thread::scope(|scope| {
        for writer in 0..4 {
            scope.spawn(move || write(writer));
        }
    });
    assert_eq!(content(&disk), [100_u64; 2 * BLOCK / 8].map(u64::to_le_bytes).concat());
}

#[test]
fn threads_with_stretches_of_their_own_leave_what_each_alone_would() {
    const STRETCH: usize = 300 * BLOCK + 123;
    let name = "threads_with_stretches_of_their_own_leave_what_each_alone_would";
    for_seeds(name, 3, |seed, _| {
        let disk = create(&Medium::Private, 4 * STRETCH / BLOCK + 1);
        let work = |thread: usize| {
            let mut random = Random::new(seed * 8 + thread as u64);
            let (start, end) = (thread * STRETCH, (thread + 1) * STRETCH);
            let mut model = vec![0; disk.size_bytes() as usize];
            for _ in 0..40 {
                let change = Change::any(&mut random, start, end, STRETCH);
                change.apply(&disk);
                change.model(&mut model);
                let mut found = vec![0; STRETCH];
                disk.read(&mut found, start as u64).unwrap();
                assert!(found == model[start..end], "what one writes it reads");
            }
        };
        thread::scope(|scope| {
            // More than there are spare cells for at once, so that some wait.
            for thread in 0..4 {
                scope.spawn(move || work(thread));
            }
        });
    });
}
