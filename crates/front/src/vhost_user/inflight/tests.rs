//! The area at each step of a request, and areas that others wrote.

use super::*;

const SIZE: u16 = 8;

/// Numbers and file of a new area, as a frontend keeps them.
fn area() -> (VhostUserInflight, File) {
    Inflight::create(2, SIZE, false).unwrap()
}

/// The part of queue 1, as a process that has just started sees it.
fn adopt((numbers, file): &(VhostUserInflight, File)) -> InflightQueue {
    let area = Inflight::adopt(numbers, file.try_clone().unwrap()).unwrap();
    Arc::new(area).queue(1, SIZE).unwrap()
}

#[test]
fn what_was_taken_and_not_answered_is_found_in_the_order_of_taking() {
    let kept = area();
    let mut queue = adopt(&kept);
    assert_eq!(queue.recover(0), Vec::<u16>::new());
    for head in [5, 2, 7, 0] {
        queue.take(head);
    }
    queue.begin_answer(2);
    queue.end_answer(2, 1);
    assert_eq!(adopt(&kept).recover(1), [5, 7, 0]);
    // Whoever took them up and dies finds the same, and what it took behind them.
    let mut next = adopt(&kept);
    next.recover(1);
    next.take(2);
    assert_eq!(adopt(&kept).recover(1), [5, 7, 0, 2]);
}

#[test]
fn an_answer_counts_from_the_moment_in_which_the_used_ring_shows_it() {
    // Two requests; the first has an answer already, the second dies after so many steps.
    let cases: [(usize, u16, &[u16]); 5] =
        [(0, 1, &[3]), (1, 1, &[3]), (1, 2, &[]), (2, 2, &[]), (3, 2, &[])];
    for (steps, used_index, expected) in cases {
        let kept = area();
        let mut queue = adopt(&kept);
        queue.recover(0);
        for head in [6, 3] {
            queue.take(head);
        }
        queue.begin_answer(6);
        queue.end_answer(6, 1);
        if steps > 0 {
            queue.begin_answer(3);
        }
        if steps > 1 {
            queue.area.store(queue.entry(3), 0_u8);
        }
        if steps > 2 {
            queue.end_answer(3, 2);
        }
        assert_eq!(adopt(&kept).recover(used_index), expected, "{steps} steps, {used_index}");
        assert_eq!(adopt(&kept).recover(used_index), expected, "the second time");
    }
}

#[test]
fn indices_go_round() {
    let kept = area();
    let mut queue = adopt(&kept);
    queue.recover(u16::MAX);
    queue.take(1);
    queue.take(4);
    queue.begin_answer(1);
    assert_eq!(adopt(&kept).recover(0), [4]);
}

#[test]
fn a_batch_of_another_program_is_settled_along_its_list() {
    let kept = area();
    let mut queue = adopt(&kept);
    queue.recover(10);
    for head in 0..5 {
        queue.take(head);
    }
    // Heads 4, 2 and 1 were answered together, and none was crossed out.
    for (head, next) in [(4, 2_u16), (2, 1), (1, 77)] {
        queue.area.store(queue.entry(head) + NEXT_AT, next);
    }
    queue.area.store(queue.start + LAST_HEAD_AT, 4_u16);
    assert_eq!(adopt(&kept).recover(13), [0, 3]);
}

#[test]
fn any_bytes_are_settled() {
    for filling in [0x00_u8, 0x01, 0x7f, 0xff] {
        let kept = area();
        let bytes = vec![filling; kept.0.mmap_size as usize];
        std::os::unix::fs::FileExt::write_all_at(&kept.1, &bytes, 0).unwrap();
        let area = Inflight::adopt(&kept.0, kept.1.try_clone().unwrap()).unwrap();
        area.store(part_bytes(SIZE) + VERSION_AT, VERSION);
        let heads = Arc::new(area).queue(1, SIZE).unwrap().recover(3);
        assert!(heads.len() <= usize::from(SIZE) && heads.iter().all(|head| *head < SIZE));
    }
}

#[test]
fn the_word_about_the_write_cache_is_kept() {
    for write_through in [false, true] {
        let (numbers, file) = Inflight::create(2, SIZE, write_through).unwrap();
        let area = Inflight::adopt(&numbers, file.try_clone().unwrap()).unwrap();
        assert_eq!(area.is_write_through(), write_through);
        area.set_write_through(!write_through);
        assert_eq!(Inflight::adopt(&numbers, file).unwrap().is_write_through(), !write_through);
    }
}

#[test]
fn an_area_that_is_wrong_is_refused() {
    let (numbers, file) = area();
    let adopt = |change: fn(&mut VhostUserInflight)| {
        let mut wrong = numbers;
        change(&mut wrong);
        Inflight::adopt(&wrong, file.try_clone().unwrap()).map(|_| ())
    };
    adopt(|_| ()).unwrap();
    adopt(|numbers| numbers.num_queues = 3).unwrap_err();
    adopt(|numbers| numbers.num_queues = 0).unwrap_err();
    adopt(|numbers| numbers.queue_size = u16::MAX).unwrap_err();
    adopt(|numbers| numbers.mmap_size += 1).unwrap_err();
    adopt(|numbers| numbers.mmap_offset = 4096).unwrap_err();
    adopt(|numbers| numbers.mmap_offset = u64::MAX).unwrap_err();
    let unsealed = tempfile::tempfile().unwrap();
    unsealed.set_len(numbers.mmap_size).unwrap();
    Inflight::adopt(&numbers, unsealed).map(|_| ()).unwrap_err();
    let whole = Arc::new(Inflight::adopt(&numbers, file).unwrap());
    whole.queue(2, SIZE).map(|_| ()).unwrap_err();
    whole.queue(0, SIZE + 1).map(|_| ()).unwrap_err();
    whole.store(VERSION_AT, 2_u16);
    whole.queue(0, SIZE).map(|_| ()).unwrap_err();
}
