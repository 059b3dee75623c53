# Semel's tasks. "make" lists them.

# The go command fetches the toolchain that go.mod names.
export GOTOOLCHAIN := auto

# How long, how many: make sim SEEDS=1000.
SEEDS ?= 5000
KILLS ?= 10

# A folder of golden traces; scripts/golden knows where else to look.
GOLDEN ?=

# A Kafka of one's own instead of one that is started and deleted again:
# make test-kafka KAFKA_ADDR=host:port,host:port
KAFKA_ADDR ?=
ifeq ($(KAFKA_ADDR),)
WITH_KAFKA := scripts/kafka with
else
export KAFKA_ADDR
endif

# Benchmarks get a broker with the heap and the garbage collector that Kafka's own
# start script gives it: the JVM's defaults aim at pauses ten times as long.
BENCH_JVM := -Xms1g -XX:+UseG1GC -XX:MaxGCPauseMillis=20 -XX:InitiatingHeapOccupancyPercent=35 -XX:+ExplicitGCInvokesConcurrent
BENCH_KAFKA := SEMEL_KAFKA_HEAP=1g SEMEL_KAFKA_JVM='$(BENCH_JVM)' $(WITH_KAFKA)

# The race detector needs a C compiler.
RACE := $(if $(shell command -v $${CC:-cc}),-race)

.DEFAULT_GOAL := help
.PHONY: help demo demo-payments demo-kafka test test-kafka test-takeover sim golden crash mutants bench bench-peers bench-embedded lint fmt

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1 | \2/p' $(firstword $(MAKEFILE_LIST)) | while IFS='|' read -r t d; do printf '%-22s %s\n' "$$t" "$$d"; done

demo: ## count words, crash and go on, with no Kafka: a broker in memory
	go run ./examples/wordcount -demo

demo-payments: ## move money, crash and go on, then look for every cent; no Kafka either
	go run ./examples/payments -demo

demo-kafka: ## the word count on a real Kafka
	$(WITH_KAFKA) sh -c 'go run ./examples/wordcount -demo -brokers "$$KAFKA_ADDR"'

test: ## everything that needs no server, with the race detector
	@$(if $(RACE),,echo 'no C compiler: the tests run without the race detector')
	env -u KAFKA_ADDR go test -count=1 $(RACE) ./...

test-kafka: ## all tests, those that need a real Kafka too
	$(WITH_KAFKA) go test -count=1 -timeout 20m $(RACE) ./...

test-takeover: ## take a real Kafka Streams application over, and go back; fetches it once, 94 MB
	$(WITH_KAFKA) env SEMEL_FETCH=1 go test -count=1 -v ./test/kafkastreams

sim: ## the runtime under simulation, SEEDS=5000; a crash at every turn; mutants
	go test -count=1 -timeout 24h -v ./stream/internal/runtime -run 'Seed|EveryTurn' -args -seeds=$(SEEDS)
	go test -count=1 -timeout 1h -tags semelmutant ./stream/internal/runtime -run Mutants

golden: ## replay the traces of Kafka Streams in a folder, GOLDEN=<folder>
	scripts/golden $(GOLDEN)

crash: ## kill -9 an application on a real Kafka and check each record, KILLS=10
	$(WITH_KAFKA) go run ./internal/proof/crash -kills=$(KILLS)

mutants: ## deliberate faults of the runtime, on a real Kafka: the checker must find each
	$(WITH_KAFKA) scripts/mutants

bench: ## what exactly-once costs, on a real Kafka, about an hour; BENCH='-quick latency'
	$(BENCH_KAFKA) go run ./bench -out=bench/results $(BENCH)

bench-peers: ## the same topologies in Kafka Streams, beside ours, on a real Kafka; needs Java and Maven
	jars=$$(SEMEL_FETCH=1 scripts/kafka-streams) && $(BENCH_KAFKA) go run ./bench -out=bench/results -pairs=2 -warm=false -kafka-streams="$$jars" $(BENCH) peers

bench-embedded: ## the same on the embedded broker
	env -u KAFKA_ADDR go run ./bench -out=bench/results $(BENCH)

lint: ## vet, golangci-lint, shell scripts, house checks
	scripts/lint

fmt: ## format all Go files
	go fmt ./...
