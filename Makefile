# Two commands matter: `make run` shows Holdfast at work, `make test` checks all of it.
# Both run on a fresh Debian machine, as root, and install only what is missing.

SHELL := /bin/bash
CARGO := scripts/cargo
OUT ?= lab/bench/results
PREFIX ?= /usr/local
HOLDFAST := $${CARGO_TARGET_DIR:-target}/release/holdfast
DEMO := $${CARGO_TARGET_DIR:-target}/release/holdfast-demo

CUT_EVERYWHERE := power::pitfall_19_what_was_waited_for_is_there_after_a_power_cut_at_any_io

.PHONY: run build programs install deb test test-guests test-ublk test-long test-races bench-memory bench-cache-guest bench-server bench-log bench-store bench-postgres bench-databases bench-ways bench-files drills figures fuzz tidy

run: programs
	$(DEMO) postgres --out holdfast-demo

# The command alone, which is all that there is to install: needs a C compiler and Rust, and no database.
build:
	scripts/setup product
	$(CARGO) build --release --package holdfast

# With what shows and measures it, and the databases for that.
programs:
	scripts/setup
	$(CARGO) build --release --package holdfast --package holdfast-demo --package holdfast-slowdisk

# For one machine, below PREFIX; DESTDIR is the root of what is being packed.
install: build
	packaging/install "$(DESTDIR)" "$(PREFIX)" $(HOLDFAST)

# target/debian/holdfast_*.deb. `cargo install` fetches what packs it, the first time.
deb: build
	$(HOLDFAST) manual target/manual
	command -v cargo-deb >/dev/null || $(CARGO) install cargo-deb --locked --version 3.8.0
	$(CARGO) deb --quiet --package holdfast --no-build

test:
	scripts/setup
	scripts/test

# Databases in QEMU guests on block volumes, each ended KILLS times in each way, and KILLS panics of
# a guest with a volume of its own, whose region is in RAM reserved with memmap=. Then two guests on
# one memory and one disk take over from each other, KILLS times after a kill and after a stop. The
# first time lab/guests/boot/setup makes what they boot from, three minutes; a kill takes about 20
# seconds, a take-over 40.
test-guests: programs
	lab/guests/boot/setup
	$(CARGO) run --release --package holdfast-guests -- \
	    --images $${CARGO_TARGET_DIR:-target}/guests --holdfast $(HOLDFAST) \
	    --kills $(or $(KILLS),3) --seed $(or $(SEED),1)

# A volume and a disk that are block devices of a guest with the kernel of Debian 13, while their front
# ends are killed KILLS times. About two minutes, and seven more the first time.
test-ublk:
	scripts/setup
	$(CARGO) build --release --package holdfast --features ublk
	lab/guests/boot/setup ublk
	$(CARGO) run --release --package holdfast-guests -- --parts ublk \
	    --images $${CARGO_TARGET_DIR:-target}/guests --holdfast $(HOLDFAST) \
	    --kills $(or $(KILLS),20) --seed $(or $(SEED),1)

# Everything of `make test`, then all tests of the command with every volume's log behind the queue.
# The benchmarks of logs and of stores with their peers (without the one that needs a library of the
# system's) are built, 100 kills of each database and by each way to a volume's log, 1,000 kills of a
# disk's front end with each protocol, 70 power cuts, other people's suites on volumes
# (scripts/suites), 20 ends of each kind of guests with each database, eight times as many seeds of the
# simulations, and disks as the power leaves them: 1,000,000 of the embedded log, ten minutes of a core
# at 1,600 to 2,500 a second, and 500,000 of the store; 200,000 directories of a store with files that
# are missing, older, cut short, exchanged or damaged. A million small changes of a volume of 8 MiB,
# under kills of its front end, take about three quarters of an hour.
test-long: test programs
	$(CARGO) clippy --quiet --manifest-path lab/bench/log/Cargo.toml --no-default-features -- -D warnings
	$(CARGO) clippy --quiet --manifest-path lab/bench/store/Cargo.toml --no-default-features -- -D warnings
	$(CARGO) clippy --quiet --manifest-path lab/bench/files/Cargo.toml -- -D warnings
	HOLDFAST_SEEDS_FACTOR=8 HOLDFAST_HOSTILE_SECONDS=1800 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --workspace
	HOLDFAST_WAY=queue CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --workspace --test command
	HOLDFAST_SEEDS_FACTOR=250 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --package holdfast-wal \
	    --test it -- --nocapture --exact $(CUT_EVERYWHERE)
	HOLDFAST_SEEDS_FACTOR=50 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --package holdfast-store \
	    --test it -- --nocapture power::
	HOLDFAST_SEEDS_FACTOR=500 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --package holdfast-store \
	    --test it -- --nocapture damage::
	HOLDFAST_SEED=1 HOLDFAST_SMALL_CHANGES=1000000 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test \
	    --package holdfast --test command -- --nocapture programs_that_make_small_changes
	HOLDFAST_SEEDS_FACTOR=25 HOLDFAST_CLASS_CHANGES=1000 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test \
	    --package holdfast --test command -- --nocapture power::
	CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --package holdfast --test command -- --ignored held_up
	HOLDFAST_SCHEDULES=125000 crates/memory/shuttle.sh
	set -e; for what in postgres mariadb sqlite ways; do \
	    $(DEMO) $$what --kills 100 --repetitions 1 --seconds 2 --out target/test-long; \
	done
	$(DEMO) power-cut --kills 20 --out target/test-long
	$(DEMO) drills --kills 50 --repetitions 1 --seconds 2 --out target/test-long
	scripts/suites/all $(HOLDFAST)
	$(MAKE) test-guests KILLS=20

bench-postgres: programs
	$(DEMO) postgres --out $(OUT) $(if $(QUICK),--quick,--repetitions 7 --kills 100)
	$(if $(QUICK)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

bench-databases: programs
	$(DEMO) databases --out $(OUT) $(if $(QUICK),--quick,--repetitions 5 --kills 20)
	$(if $(QUICK)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

bench-ways: programs
	$(DEMO) ways --out $(OUT) $(if $(QUICK),--quick,--repetitions 5 --kills 40)
	$(if $(QUICK)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

# What programs do with files, and PostgreSQL wholly on a volume: on volumes of both classes, on the
# file system below, and on three FUSE file systems that hand everything on; ONLY=files or ONLY=pg for a
# part. Measures the disk that the build is on. Needs root, PostgreSQL, 8 GB free and nothing else
# running; about twenty minutes.
bench-files: programs
	lab/bench/files/setup
	export HOLDFAST=$$(realpath $(HOLDFAST)); cd lab/bench/files && ../../../$(CARGO) run --release -- \
	    --out $(abspath $(OUT)) $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	$(if $(QUICK)$(ONLY)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

# The queue's tests under ThreadSanitizer. Needs a nightly toolchain with its sources.
test-races:
	crates/memory/races.sh

# Needs two cores and nothing else running: it pins processes to them.
bench-server:
	scripts/setup
	cd lab/bench && ../../$(CARGO) run --release -- --out $(abspath $(OUT)) $(if $(QUICK),--quick)
	$(if $(QUICK)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

# What durable memory is used for, beside what does without it; ONLY=NAME,NAME for some of the parts
# vdisk, table, nbd, pcache, plan and fastboot. The last one boots guests: what they boot from is made
# the first time, in four minutes. Needs nothing else running, and 3 GB of memory.
bench-memory:
	scripts/setup
	lab/bench/src/memory/setup
	$(if $(if $(ONLY),$(findstring fastboot,$(ONLY)),all),$(MAKE) programs && lab/guests/boot/setup)
	export HOLDFAST_TARGET=$$(realpath -m $${CARGO_TARGET_DIR:-target}); \
	cd lab/bench && ../../$(CARGO) run --release --bin bench-memory -- --out $(abspath $(OUT)) \
	    $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	$(if $(QUICK)$(ONLY)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

# A guest's disk on one slow disk: bare, behind dm-writecache, and behind a volume with a block cache;
# then all of it is killed. Needs root and nothing else running, and five minutes.
bench-cache-guest: programs
	lab/guests/boot/setup
	lab/bench/cache/run $(HOLDFAST) $${CARGO_TARGET_DIR:-target}/guests $(OUT)

# This log and others beside the device and the decoder; ONLY=NAME,NAME for some of them. Measures
# the disk that the build is on. Needs nothing else running, and 20 GB free. About 25 minutes.
bench-log:
	scripts/setup
	lab/bench/log/setup
	cd lab/bench/log && ../../../$(CARGO) run --release -- --out $(abspath $(OUT)) \
	    $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	$(if $(QUICK)$(ONLY)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

# Transactions of other stores in one run with the device; ONLY=NAME,NAME for some of the stores and
# of the parts durable, nondurable, flat, scanning, restart, repair, media, space, orders, eviction,
# compression and soak. LONG=1 ONLY=flat,holdfast takes checkpoints of each kind and interval for a
# quarter of an hour, which is nine hours. ONLY=soak has four loads go on and on, five minutes a store
# and half an hour with LONG=1; it is in files of its own, in which stores that are not measured stay
# as they were. Measures the disk that the build is on, and memory. Needs nothing else running, and
# 20 GB free.
bench-store:
	scripts/setup
	lab/bench/store/setup
	cd lab/bench/store && ../../../$(CARGO) run --release -- $(if $(LONG),--long) --out $(abspath $(OUT)) \
	    $(if $(QUICK),--quick) $(if $(ONLY),--only $(ONLY))
	$(if $(QUICK)$(LONG)$(ONLY)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

# Ten minutes each: bytes that no log ever wrote, for whatever reads a log; bytes that no client should
# send, for the NBD front end and for tables; and messages and memory that no guest should have, for
# the vhost-user front end. TARGET=decoder, nbd, tables or vhost_user for one of them. Needs a nightly
# toolchain.
fuzz:
	scripts/setup
	$(CARGO) fuzz --version >/dev/null 2>&1 || $(CARGO) install --locked cargo-fuzz
	set -e; cd lab/fuzz; for target in $(or $(TARGET),decoder nbd tables vhost_user); do \
	    ../../$(CARGO) +nightly fuzz run $$target -- -max_total_time=$(or $(FUZZ_SECONDS),600) \
	        -max_len=8192; \
	done

# A power source: PostgreSQL while memory acknowledges because of it, 100 changes of class under load, and
# KILLS power cuts of each database at a deadline after a notice, on a modelled disk. Two cuts a kill
# and database, each 6 to 10 s.
drills: programs
	$(DEMO) drills --out $(OUT) $(if $(QUICK),--quick,--repetitions 5 --kills $(or $(KILLS),200))
	$(if $(QUICK)$(filter-out lab/bench/results,$(OUT)),,$(CARGO) xtask figures)

figures:
	$(CARGO) xtask figures

tidy:
	$(CARGO) xtask tidy
