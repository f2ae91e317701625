#!/bin/sh
# Runs the loom models of who writes the catalogue: as it is (must pass), then with one ordering
# weakened at a time (must fail, or the models prove nothing). Prints one line each.
# Its exit code is the number of surprises.
set -u
cd "$(dirname "$0")" || exit 1
. ../../scripts/loom
model "" "" pass
model marked what_a_drainer_reads_is_a_pair fail
model marked_see what_a_drainer_reads_is_a_pair fail
model released_first what_a_drainer_reads_is_a_pair fail
model in_turn of_two_who_write_the_later_knows fail
model release what_a_ring_gave_back fail
model released_see what_a_ring_gave_back fail
exit "$surprises"
