#!/bin/sh
# Runs the loom models of a disk: as it is (must pass), then with one ordering weakened at a time
# (must fail, or the models prove nothing). Prints one line each.
# Its exit code is the number of surprises.
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/loom
model "" "" pass
model map_name a_reader_sees_a_block_of_one_piece fail
model map_see a_reader_sees_a_block_of_one_piece fail
model swap_count a_reader_sees_a_block_of_one_piece fail
model swap_see a_reader_sees_a_block_of_one_piece fail
model reuse a_reader_sees_a_block_of_one_piece fail
model recheck a_reader_sees_a_block_of_one_piece fail
model lend what_is_lent_does_not_change fail
model still a_disk_that_stands_still fail
exit "$surprises"
