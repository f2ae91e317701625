# Two commands matter: `make run` shows Holdfast at work, `make test` checks all of it.
# Both run on a fresh Debian machine, as root, and install only what is missing.

SHELL := /bin/bash
CARGO := scripts/cargo
OUT ?= bench/results
HOLDFAST := $${CARGO_TARGET_DIR:-target}/release/holdfast

.PHONY: run build test test-long bench-postgres figures tidy

run: build
	$(HOLDFAST) demo postgres --out holdfast-demo

build:
	scripts/setup
	$(CARGO) build --release --package holdfast

test:
	scripts/setup
	scripts/test

# Everything of `make test`, then 100 kills and eight times as many seeds of the simulations.
test-long: test build
	HOLDFAST_SEEDS_FACTOR=8 CARGO_PROFILE_DEV_OPT_LEVEL=1 $(CARGO) test --workspace
	$(HOLDFAST) demo postgres --kills 100 --repetitions 1 --seconds 2 --out target/test-long

bench-postgres: build
	$(HOLDFAST) demo postgres --out $(OUT) $(if $(QUICK),--quick,--repetitions 5 --kills 100)
	$(if $(QUICK)$(filter-out bench/results,$(OUT)),,$(CARGO) xtask figures)

figures:
	$(CARGO) xtask figures

tidy:
	$(CARGO) xtask tidy
