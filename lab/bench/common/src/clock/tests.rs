//! What is read from the kernel's statistics.

use super::busy_ticks;

#[test]
fn work_is_counted_and_waiting_is_not() {
    let line = "cpu  100 20 3 7000 400 5 6 80 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
    assert_eq!(busy_ticks(line), 134.0);
    assert_eq!(busy_ticks(""), 0.0);
}
