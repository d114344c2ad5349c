GO ?= go
CC ?= cc
# The race detector needs a C compiler; without one the tests run without it.
RACE := $(shell command -v $(CC) >/dev/null 2>&1 && echo -race)
TOOL = cd tools && $(GO) tool

.DEFAULT_GOAL := help

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## run a three-node cluster on this machine; Ctrl-C stops it
	@exec bin/leasenode dev

.PHONY: test
test: ## run every test
	$(GO) test $(RACE) -timeout 18m ./...

.PHONY: build
build: ## build the binary into bin/
	@echo "building bin/leasenode; the first time, this takes about a minute" >&2
	@$(GO) build -trimpath -o bin/ ./cmd/leasenode

.PHONY: verify
verify: ## check format, vet, lint, go.mod and generated code
	@out=$$(cd tools && $(GO) tool gofumpt -l ..); if [ -n "$$out" ]; then echo "not formatted (make format):"; echo "$$out"; exit 1; fi
	$(GO) vet ./...
	cd tools && $(GO) vet ./...
	$(GO) run -modfile=tools/go.mod honnef.co/go/tools/cmd/staticcheck ./...
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	$(MAKE) --no-print-directory generate
	git diff --exit-code -- '*.pb.go'

.PHONY: format
format: ## format the code
	$(TOOL) gofumpt -w ..

.PHONY: generate
generate: ## make the generated code anew
	cd tools && $(GO) run ./protogen -I ../api -module github.com/leasenode/leasenode -out .. leasepb/lease.proto peerpb/peer.proto

.PHONY: bench
bench: ## run the Go benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

# ARGS=--quick takes two minutes instead of ten.
.PHONY: bench-peers
bench-peers: build ## measure beside etcd and ZooKeeper, into bench/RESULTS.md
	cd bench && $(GO) build -trimpath -o ../bin/bench-peers .
	cd bench && ../bin/bench-peers --leasenode ../bin/leasenode $(ARGS)

# PART is churn, leases, connections or history; ARGS as in docs/growth.md.
PART ?= churn
.PHONY: growth
growth: build ## measure how a cluster grows, into growth/: PART=churn|leases|connections|history ARGS=
	cd bench && $(GO) build -trimpath -o ../bin/ ./growth
	bin/growth $(PART) --leasenode bin/leasenode --out growth $(ARGS); flat=$$?; bin/growth draw --out growth && exit $$flat

.PHONY: profile
profile: build ## what a cluster spends its time for, in tables; ARGS="--before OTHER-BINARY"
	cd bench && $(GO) build -trimpath -o ../bin/ ./profile
	bin/profile --leasenode bin/leasenode $(ARGS)

# By itself, since it compiles etcd.
.PHONY: verify-bench
verify-bench: ## vet, lint and test the module of bench-peers
	cd bench && $(GO) vet ./...
	cd bench && $(GO) run -modfile=../tools/go.mod honnef.co/go/tools/cmd/staticcheck ./...
	cd bench && $(GO) mod tidy -diff
	cd bench && $(GO) test -p 1 -timeout 10m ./...

.PHONY: chaos
chaos: ## do to a cluster what the world will do, and judge it; ARGS="--nodes 5 --seed 7"
	@echo "building the harness; the first time, this takes about a minute" >&2
	$(GO) run ./jepsen-like $(ARGS)

.PHONY: fuzz
fuzz: ## fuzz every decoder for a minute each
	@for pkg in $$($(GO) list ./...); do \
		for name in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
			$(GO) test -run '^$$' -fuzz "^$$name\$$" -fuzztime 1m $$pkg || exit 1; \
		done; \
	done

# What `make simulate` runs: SEEDS of them from FIRST on, each for TIME of simulated time,
# with NODES nodes (0: 3, and 5 with every fourth seed) that keep their logs in LOG (bolt,
# wal; empty: by seed). OUT is a folder for what fails.
SEEDS ?= 1000
FIRST ?= 1
NODES ?= 0
TIME ?= 20s
LOG ?=
OUT ?=

.PHONY: simulate
simulate: ## simulate clusters under faults: SEEDS=1000 FIRST=1 NODES=0 TIME=20s LOG= OUT=
	$(GO) test ./jepsen-like/sim -run 'TestSeeds$$' -timeout 0 -first $(FIRST) -seeds $(SEEDS) -nodes $(NODES) -length $(TIME) $(if $(LOG),-log-store $(LOG)) $(if $(OUT),-out $(abspath $(OUT)))

.PHONY: mutants
mutants: ## leave out one rule at a time and have simulation catch it
	$(GO) test ./jepsen-like/sim/mutants -run TestMutants -timeout 0 -v
