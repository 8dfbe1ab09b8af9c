# The one place commands live: people, docs and CI call these. `make help` reads the ## comments below.
# Tools are pinned in tools/go.mod, servers in deploy/dev/*/pom.xml, libs/devserver/withservers and docker-compose.yml,
# what we compare with in bench/go.mod.
SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# Passed on: make run ARGS='--port-offset 100', make test ARGS='-run TestX -v', make down ARGS=-v
ARGS ?=
# Packages to test: make test PKG=./libs/...
PKG ?= work
export PKG
FUZZTIME ?= 30s
# make test-repeat N=5 LOAD=8
N ?= 5
LOAD ?= 0
# What `sluice version` prints: the tag, or the commit. Empty outside a repository; then the program says what it knows itself.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null)
BINARY ?= bin/sluice

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

##@ use

.PHONY: build
build: ## build bin/sluice
	go build -ldflags '-X github.com/sluice-platform/sluice/services/sluice.version=$(VERSION)' -o $(BINARY) ./services/cmd/sluice

.PHONY: run
run: build ## build and run everything in one process, with its own servers, data under ./data
	exec $(BINARY) dev $(ARGS)

.PHONY: up
up: ## run everything as containers (docker-compose.yml)
	@docker info >/dev/null 2>&1 || { echo 'make up needs a Docker engine; without one: make run' >&2; exit 1; }
	VERSION='$(VERSION)' docker compose up --detach --build --wait $(ARGS)

.PHONY: down
down: ## stop the containers; ARGS=-v removes their data too
	docker compose down --remove-orphans $(ARGS)

##@ check

.PHONY: test
test: ## all tests, on real servers it brings itself
	tools/test.sh $(ARGS)

.PHONY: test-repeat
test-repeat: ## all tests N times (N=5), a line a run; fails when a run did; LOAD=8 runs them beside that many busy loops
	@LOAD='$(LOAD)' tools/test-repeat.sh $(N) $(ARGS)

.PHONY: test-unit
test-unit: ## the tests that need no server
	go test -timeout 5m $(ARGS) $(PKG)

.PHONY: lint
lint: ## formatting, vet, staticcheck, module files, generated files, scripts, the compose file
	tools/lint.sh

.PHONY: bench
bench: ## all benchmarks, on real servers where they need them
	tools/test.sh -run '^$$' -bench . -benchmem $(ARGS)

.PHONY: bench-cache
bench-cache: ## libs/cache and the gateway's cache beside others at a cold key and at expiries, half an hour; ARGS=-help
	@deploy/dev/install.sh redis nginx >&2
	@mkdir -p bin
	@cd bench && GOWORK=off go build -o ../bin/bench-cache ./cache
	@exec bin/bench-cache $(ARGS)

.PHONY: bench-limit
bench-limit: ## the store of counters beside other limiters: cost, times, a race, a Redis that falls silent; two minutes; ARGS=-help
	@deploy/dev/install.sh redis >&2
	@mkdir -p bin
	@cd bench && GOWORK=off go build -o ../bin/bench-limit ./limit
	@exec bin/bench-limit $(ARGS)

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (30s)
	tools/fuzz.sh $(FUZZTIME)

.PHONY: soak
soak: ## the long tests too (build tag soak)
	SLUICE_TEST_TAGS='integration soak' SLUICE_TEST_TIMEOUT=120m tools/test.sh -count=1 $(ARGS)

.PHONY: servers
servers: ## keep the tests' servers up; `source bin/servers.env` in another shell, then go test -tags integration
	deploy/dev/install.sh
	go build -o bin/with-servers ./libs/devserver/cmd/with-servers
	exec bin/with-servers --print-env bin/servers.env -- sleep infinity

.PHONY: size
size: ## lines, files, import depth and arrows between files, beside their bounds; ARGS=-check, ARGS='-arrows services/relay'
	@cd tools && GOWORK=off go run ./size $(ARGS)

##@ keep

.PHONY: generate
generate: ## write the generated files anew (go generate in each module)
	for module in schemas libs services; do (cd $$module && go generate ./...); done
	cd tools && GOWORK=off go generate ./charts

.PHONY: check-generate
check-generate: ## fail when a generated file differs from what its source gives
	tools/check-generate.sh

.PHONY: clean
clean: ## remove what was built; data and caches stay
	rm -rf bin
