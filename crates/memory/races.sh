#!/bin/sh
# Runs the queue's tests under ThreadSanitizer. Needs a nightly toolchain with its sources:
#   rustup toolchain install nightly --component rust-src
# The standard library is built anew, so that its own locks are seen too.
set -eu
cd "$(dirname "$0")"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-../../target}/races"
export RUSTFLAGS="-Zsanitizer=thread"
export TSAN_OPTIONS="halt_on_error=1"
host=$(rustc -vV | sed -n 's/^host: //p')
exec ../../scripts/cargo +nightly test -Zbuild-std --target "$host" --test it -- queue:: hostile::garbage
