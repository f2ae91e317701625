#!/bin/sh
# Runs the loom models of publish, release, lock, turn, bell and queue: as they are (must pass), then with one
# ordering weakened at a time (must fail, or the models prove nothing). Prints one line each.
# Its exit code is the number of surprises.
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/loom
model "" "" pass
model publish a_reader_that_sees_the_tail fail
model tail_see a_reader_that_sees_the_tail fail
model release bytes_are_overwritten_only fail
model released_see bytes_are_overwritten_only fail
model lock holders_exclude_each_other fail
model unlock holders_exclude_each_other fail
model lock a_lock_left_by_the_dead fail
model look an_acknowledged_append_is_seen fail
model bell a_sleeper_is_woken fail
model lock a_sleeper_that_announced fail
model unlock a_sleeper_that_announced fail
model bell a_request_that_a_sleeping_server fail
model put what_one_producer_puts_first fail
model steal what_one_producer_puts_first fail
model done two_producers_get_their_own_answers fail
model done_see two_producers_get_their_own_answers fail
model slot_free a_slot_is_filled_only_after fail
model slot_take a_slot_is_filled_only_after fail
exit "$surprises"
