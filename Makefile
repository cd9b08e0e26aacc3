# make demo runs the main job, make test passes the tests; both see to what
# they need themselves.

BIN     := bin
BUILD   := build/native
GO      := go
JOBS    := $(shell nproc 2>/dev/null || echo 2)
# The traces of other people that some tests read, when they are there.
MIXDOWN_CORPUS ?= $(wildcard $(CURDIR)/../shared/traces)
export MIXDOWN_CORPUS

.PHONY: all deps build build-go build-native demo test bench dist check-dist check-readers check-cluster check-html validate sanitize lint generate clean

all: build

deps:
	@scripts/deps.sh

build: deps build-go build-native

build-go:
	$(GO) build -o $(BIN)/mixdown ./cmd/mixdown

build-native:
	@mkdir -p build
	@cmake -S native -B $(BUILD) -G Ninja -DCMAKE_BUILD_TYPE=Release \
		-DCMAKE_RUNTIME_OUTPUT_DIRECTORY=$(CURDIR)/$(BIN) -DCMAKE_LIBRARY_OUTPUT_DIRECTORY=$(CURDIR)/$(BIN) \
		-DMIXDOWN_TESTING=ON >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	@cmake --build $(BUILD) -j $(JOBS) >>$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

# The main job on the traces in testdata: analyse, replay with other backends and
# in another pipeline order, print the speedups.
demo: build
	$(BIN)/mixdown backends
	$(BIN)/mixdown analyze 'testdata/dp_moe_4rank/rank*.gz'
	$(BIN)/mixdown replay 'testdata/dp_moe_4rank/rank*.gz' --iters 10 --mix '*=openmpi' --mix 'all_to_all=openmpi,all_to_allv=openmpi,*=gloo'
	$(BIN)/mixdown replay 'testdata/pipeline_1f1b_4rank/rank*.gz' --iters 10 --schedule breadth-first:loops=2

# The notebooks of examples/ and other people's readers of what we write, those of CI
# among them, run after the tests, where Python and PyPI are there; and a few reports
# are looked at in a browser, where Chromium and npm are.
test: build
	@if [ -n "$(MIXDOWN_CORPUS)" ]; then echo "corpus: $(MIXDOWN_CORPUS)"; \
	else echo "corpus: none (MIXDOWN_CORPUS is not set): the tests that need it are skipped"; fi
	$(GO) vet ./...
	$(GO) test -timeout 30m ./...
	examples/run.sh
	examples/ci/check.sh
	scripts/check_html.sh --short

# Ratios against peers in the same run; it says which peer is missing.
bench: build
	bench/hta/run.sh
	$(GO) run ./bench/reading -mixdown $(BIN)/mixdown
	$(GO) run ./bench/job -mixdown $(BIN)/mixdown
	$(GO) run ./bench/planning
	$(GO) run ./bench/cost -bin $(BIN)
	$(GO) run ./bench/cluster -mixdown $(BIN)/mixdown
	$(GO) run ./bench/symmetry
	$(GO) run ./bench/winners -mixdown $(BIN)/mixdown
	$(GO) run ./bench/changed -mixdown $(BIN)/mixdown
	$(GO) run ./bench/graph
	$(GO) test -run '^$$' -bench . -benchtime 2s ./...

# build/dist/mixdown-VERSION-linux-ARCH.tar.gz: programs, manual, completions, licences.
dist: deps
	scripts/dist.sh

# That tarball in bare systems of Debian 12 and Ubuntu 24.04, made by debootstrap. Takes
# some minutes, root and a network.
check-dist: dist
	scripts/dist_test.sh

# What other people's readers make of datasets and exports; a part of make test.
check-readers: build
	examples/run.sh

# Ingest of 2,000 ranks in an S3 server by four tasks of a real Slurm, one of which
# is killed; the manifest for Kubernetes against its types. Installs Slurm (12 MB)
# on Debian and Ubuntu as root.
check-cluster: build
	scripts/check_cluster.sh

# Reports of all test data in a browser: charts, keys, phone, print, accessibility.
# Takes some minutes; "scripts/check_html.sh --install" installs what it needs.
check-html: build
	scripts/check_html.sh

# The pipeline orders and their step times against PyTorch, again and here. Takes
# ten minutes and an installation of PyTorch (6 GB, once; VENV names another one).
validate: build-go
	testdata/generate/validate.sh build/validate $(VENV)

# The worker's tests with AddressSanitizer and UndefinedBehaviorSanitizer, then
# with ThreadSanitizer.
sanitize: deps
	native/testing/sanitize.sh build/sanitize

lint:
	@test -z "$$(gofmt -l . | tee /dev/stderr)"
	$(GO) vet ./...
	sh -n scripts/*.sh scripts/cluster/*.sh examples/run.sh examples/ci/check.sh bench/hta/run.sh testdata/generate/*.sh

# Needs protoc, and protoc-gen-go of the version in go.mod.
generate:
	$(GO) build -o build/protoc-gen-go google.golang.org/protobuf/cmd/protoc-gen-go
	protoc --plugin=build/protoc-gen-go -I replay/plan --go_out=replay/plan/planpb --go_opt=paths=source_relative replay/plan/plan.proto
	protoc --plugin=build/protoc-gen-go -I replay/tune --go_out=replay/tune/tunepb --go_opt=paths=source_relative replay/tune/tune.proto
	protoc --plugin=build/protoc-gen-go -I replay/cluster --go_out=replay/cluster/clusterpb --go_opt=paths=source_relative replay/cluster/cluster.proto

clean:
	rm -rf $(BIN) build
