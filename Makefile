# kubecdc. `make` lists the targets.
SHELL := /bin/bash
.DEFAULT_GOAL := help
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)
FUZZTIME ?= 30s
export CGO_ENABLED ?= 0
# As a release is built: what tests have compiled is not compiled anew for it.
export GOFLAGS ?= -trimpath

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-14s %s\n", $$1, $$2}'

.PHONY: build
build: ## build bin/exporter
	go build -ldflags '$(LDFLAGS)' -o bin/exporter ./cmd/exporter

.PHONY: run
run: build ## show real changes of a development API server, or of KUBECONFIG, through JetStream; ONCE=1 ends by itself
	@go run ./test/demo --exporter bin/exporter $(if $(ONCE),--once)

.PHONY: check
check: lint ## format, vet, staticcheck, and the short tests
	go test -short ./internal/... ./cmd/... ./test/house ./test/locks

.PHONY: test
test: ## all tests, against a real API server and a real JetStream
	@# test/deploy, a module of its own, runs beside the others, uncached: what it tests is outside of its module.
	@# What both compile is compiled once, before. make lint vets.
	@go build ./...; deploy=$$(mktemp); (cd test/deploy && exec go test -vet=off -count=1 -timeout 40m ./...) >$$deploy 2>&1 & \
	failed=0; go test -vet=off -timeout 60m ./... || failed=1; wait $$! || failed=1; cat $$deploy; rm -f $$deploy; exit $$failed

KUBERNETES ?= 1.30.14
KAFKA ?= 3.9.2
NATS ?= 2.10.27
NEXT ?= 1.37.2
.PHONY: matrix matrix-kubernetes matrix-upgrade matrix-kafka matrix-nats
matrix: matrix-kubernetes matrix-upgrade matrix-kafka matrix-nats ## some tests with other servers, each alone

matrix-kubernetes: ## some tests with an API server of version KUBERNETES
	KUBECDC_KUBERNETES=$(KUBERNETES) go test -count=1 -timeout 30m ./test/e2e \
		-run 'VersionsOfTheTable/Kubernetes|TestI3I5ExactlyOnceInOrderUnderKill9|TestI4RestartsOfTheAPIServerAre|TestI4WhatHistoryForgot'

matrix-upgrade: ## a control plane of two API servers, one of version NEXT
	KUBECDC_KUBERNETES=$(NEXT) go test -count=1 -timeout 60m ./test/e2e -run TwoServers

matrix-kafka: ## some tests with a Kafka of version KAFKA
	KUBECDC_REQUIRE_KAFKA=1 KUBECDC_KAFKA=$(KAFKA) E2E_CHANGES=1500 go test -count=1 -timeout 30m ./internal/sink/kafka ./test/e2e \
		-run 'TestConformance|TestI3I10|TestI10|TestTransactionThatTimesOut|VersionsOfTheTable/Apache|TestKafka/I3I5'

matrix-nats: ## some tests with a NATS server of version NATS
	KUBECDC_NATS=$(NATS) go test -count=1 -timeout 30m ./test/e2e \
		-run 'VersionsOfTheTable/NATS|BothEndsAndTheNetworkFail'

SEEDS ?= 100000
.PHONY: sim
sim: ## the simulation for SEEDS seeds (default 100,000: more than an hour on two busy cores)
	go test -timeout 240m ./test/sim -run TestSimulation -seeds $(SEEDS)

FAULTS ?= 1000
CHANGES ?= 100000
.PHONY: chaos
chaos: ## exporters, Kafka and JetStream through FAULTS faults and CHANGES changes, and forty kills of one (hours)
	KUBECDC_REQUIRE_KAFKA=1 E2E_FAULTS=$(FAULTS) E2E_CHANGES=$(CHANGES) go test -count=1 -v -timeout 600m ./test/e2e -run 'TestKafka/(I10_I11|I3_I4_I10_clusters)|ALeaderWithoutItsBroker'
	KUBECDC_REQUIRE_KAFKA=1 E2E_KILLS=40 E2E_CHANGES=5000 go test -count=1 -v -timeout 600m ./test/e2e -run 'Kill|TestKafka/I3I5|BothEnds|FirstSnapshot|ABucket'

.PHONY: race
race: ## the tests of the packages with goroutines, under the race detector (needs a C compiler)
	CGO_ENABLED=1 go test -race -short -timeout 20m ./internal/... ./cmd/...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck
	@test -z "$$(gofmt -l cmd internal schema test bench)" || { gofmt -l cmd internal schema test bench; echo 'gofmt: run gofmt -w on these'; exit 1; }
	go vet ./...
	go tool staticcheck ./...
	@check=$$(go tool -n staticcheck) && for module in test/consumers/sdk test/deploy; do (cd $$module && go vet ./... && "$$check" ./...) || exit 1; done

.PHONY: vulnerabilities
vulnerabilities: ## known vulnerabilities that the exporter reaches (asks vuln.go.dev)
	go run golang.org/x/vuln/cmd/govulncheck@v1.9.0 ./cmd/... ./internal/...

.PHONY: docs
docs: ## the reference of the configuration, docs/configuration.md, from its keys
	go run ./test/reference/generate docs/configuration.md

.PHONY: manifests
manifests: ## make deploy/manifests and a part of the values' schema from the chart and the configuration's keys
	cd test/deploy && go run ./generate ../..

.PHONY: fuzz
fuzz: ## every fuzz test for FUZZTIME (default 30s) each
	@set -e; for pkg in $$(go list ./...); do \
		for name in $$(go test -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
			echo "fuzz $$pkg $$name"; go test -run '^$$' -fuzz "^$$name$$" -fuzztime $(FUZZTIME) $$pkg; \
		done; \
	done

BENCHES := patch file snapshot restart idle kafka nats latency

.PHONY: bench
bench: ## the benchmarks that docs/performance.md quotes; their figures are written into bench/RESULTS.md
	@set -e -o pipefail; for one in $(BENCHES); do $(MAKE) --no-print-directory bench-$$one; done | tee /dev/stderr | go run ./bench/report

.PHONY: bench-stages
bench-stages: ## the time and the allocations of an event on each stage of the line
	go test ./bench/stages -run '^$$' -bench .

.PHONY: bench-patch
bench-patch: ## status updates of Pods as patches, beside whole objects: bytes, and events per second of CPU time
	go run ./bench/patch

.PHONY: bench-file
bench-file: ## watch -> file, with rules and without
	go run ./bench/file

.PHONY: bench-snapshot
bench-snapshot: ## the first snapshot of up to 1,000,000 objects
	go run ./bench/snapshot

.PHONY: bench-restart
bench-restart: ## from the exec to the first change in the file, with 1,000,000 objects in the inventory
	go run ./bench/restart

.PHONY: bench-idle
bench-idle: ## memory and CPU time of 200 quiet resources with two sinks
	go run ./bench/idle

.PHONY: bench-kafka
bench-kafka: ## watch -> a real Apache Kafka, beside an informer and kafka-go's Writer (needs a JDK and Maven)
	go run ./bench/kafka

.PHONY: bench-nats
bench-nats: ## watch -> a real nats-server with streams on disk
	go run ./bench/nats

.PHONY: bench-sizing
bench-sizing: ## what one exporter costs under a load; ARGS='-objects 10000 -rate 100 -sinks file,nats,kafka -before'
	go run ./bench/sizing $(ARGS)

.PHONY: bench-latency
bench-latency: ## from a write to a real API server to a JetStream consumer, beside a bare client-go watch
	go run ./bench/latency

.PHONY: bench-takeover
bench-takeover: ## how long until another exporter leads, with 1,000,000 objects (or ARGS="-objects 100000")
	go run ./bench/takeover $(ARGS)

.PHONY: bench-otel
bench-otel: ## beside an OpenTelemetry Collector, into one Kafka (needs a JDK and Maven); ARGS='-parts cost'
	go run ./bench/otel $(ARGS)

.PHONY: devcluster
devcluster: ## a development API server in the foreground; its kubeconfig is .devcluster/kubeconfig
	cd test/devcluster && go build -gcflags=k8s.io/...=-dwarf=0 -gcflags=go.etcd.io/...=-dwarf=0 -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36" -o ../../bin/devcluster .
	bin/devcluster --data-dir .devcluster

.PHONY: completions
completions: build ## completions for bash, zsh, fish and PowerShell into dist/completions
	@mkdir -p dist/completions
	@set -e; for shell in bash zsh fish powershell; do bin/exporter completion $$shell > dist/completions/exporter.$$shell; done

.PHONY: release
release: ## binaries, lists of components, image, chart, krew's manifest and checksums of VERSION=v1.2.3
	cd test/deploy && go run ./release -root ../.. -out ../../dist/release -version $(VERSION)

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf bin dist .devcluster
