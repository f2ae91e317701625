#!/bin/sh
# Runs the queue's models under shuttle: HOLDFAST_SCHEDULES random schedules each.
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/shuttle"
export RUSTFLAGS="--cfg shuttle --cfg model"
exec ../../scripts/cargo test --quiet --release --test shuttle
