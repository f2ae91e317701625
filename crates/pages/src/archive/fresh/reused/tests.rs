//! Memory comes back once, and not without end.

use super::*;

#[test]
fn memory_of_a_whole_chunk_is_used_again_and_other_memory_is_not() {
    let reused = Reused::default();
    let mut memory = reused.take();
    memory.push(1);
    let place = memory.as_ptr();
    reused.keep(memory);
    reused.keep(vec![1; 5]);
    let again = reused.take();
    assert_eq!((again.as_ptr(), again.len(), again.capacity()), (place, 0, CHUNK_BYTES_MAX));
    assert!(reused.lock().is_empty());
}

#[test]
fn no_more_is_kept_than_a_window_has() {
    let reused = Reused::default();
    (0..2 * REUSED_MAX).for_each(|_| reused.keep(Vec::with_capacity(CHUNK_BYTES_MAX)));
    assert_eq!(reused.lock().len(), REUSED_MAX);
}
