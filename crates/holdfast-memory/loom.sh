#!/bin/sh
# Runs the loom models of publish, release, lock, bell and queue: as they are (must pass), then with one
# ordering weakened at a time (must fail, or the models prove nothing). Prints one line each.
# Its exit code is the number of surprises.
set -u
cd "$(dirname "$0")" || exit 1
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/loom"
log=$(mktemp) || exit 1
trap 'rm -f "$log"' EXIT
surprises=0

# Builds the models with one thing weakened, or nothing, and prints the program's path. The switch
# goes to this crate alone, so loom itself is built once.
build() {
    RUSTFLAGS="--cfg loom --cfg model" ../../scripts/cargo rustc --quiet --release \
        --test loom --message-format=json \
        -- ${1:+--cfg holdfast_weak_$1} 2>>"$log" |
        grep -o '"executable":"[^"]*"' | tail -n 1 | cut -d '"' -f 4
}

# $1: what is weakened, or nothing; $2: the models that are run; $3: pass or fail.
model() {
    : >"$log"
    program=$(build "$1")
    # A model that does not build has shown nothing, whatever it was expected to do.
    if [ ! -x "$program" ]; then
        got="no program"
    elif "$program" $2 >>"$log" 2>&1; then
        got=pass
    else
        got=fail
    fi
    verdict=ok
    if [ "$got" != "$3" ]; then
        verdict=SURPRISE
        surprises=$((surprises + 1))
        cat "$log"
    fi
    echo "loom: ${1:-nothing} weakened: expected $3, got $got: $verdict"
}

model "" "" pass
model publish a_reader_that_sees_the_tail fail
model tail_see a_reader_that_sees_the_tail fail
model release bytes_are_overwritten_only fail
model released_see bytes_are_overwritten_only fail
model lock holders_exclude_each_other fail
model unlock holders_exclude_each_other fail
model lock a_lock_left_by_the_dead fail
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
