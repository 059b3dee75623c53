package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain lets the test binary be its own child.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-child" {
		exit(runChild(os.Args[2]))
	}
	os.Exit(m.Run())
}

// tiny is a bench of sizes that only show that it works, on the brokers of
// KAFKA_ADDR or an embedded one.
func tiny(t *testing.T) (*bench, context.Context) {
	t.Helper()
	if testing.Short() {
		t.Skip("it starts a dozen processes")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	b := &bench{dir: t.TempDir(), run: fmt.Sprintf("bench-%08x", rand.Uint32()), from: lookAround()}
	f := flag.NewFlagSet("", flag.PanicOnError)
	b.define(f)
	b.quick(f)
	b.records, b.lines, b.pairs, b.out, b.patience = 20_000, 2000, 1, t.TempDir(), 2*time.Minute
	b.seconds, b.rate, b.warmUp = 1, 200, 100*time.Millisecond
	b.stateKeys, b.stateValue, b.kills, b.settle, b.gap = 2000, 1000, 2, time.Second, 200*time.Millisecond
	var err error
	if b.c, err = openCluster(ctx, os.Getenv("KAFKA_ADDR")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.cleanUp(); b.c.close() })
	return b, ctx
}

// written is the one result that was written.
func written(t *testing.T, b *bench, what string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(b.out, "*-"+what+".txt"))
	if err != nil || len(files) != 1 {
		t.Fatalf("results %q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestThroughputOfASmallRun(t *testing.T) {
	b, ctx := tiny(t)
	b.only = "pass-through, words"
	if err := b.throughput(ctx); err != nil {
		t.Fatal(err)
	}
	text := written(t, b, "throughput")
	for _, want := range []string{"commit ", "kernel ", kindFloor, kindFloorTxn, kindFloorSession, eos.name, alos.name, "words"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

func TestARunWithAWrongOutputDoesNotCount(t *testing.T) {
	b, ctx := tiny(t)
	src, err := b.c.loadKeys(ctx, b.name("source"), 1000, 100, uniform(100))
	if err != nil {
		t.Fatal(err)
	}
	w := workload{name: "count", topology: "count", check: checkCounts}
	if _, err := b.drain(ctx, w, eos, src); err != nil {
		t.Fatal(err)
	}
	src.counts[string(key16(1))]++ // as if one were lost
	if _, err := b.drain(ctx, w, eos, src); err == nil || !strings.Contains(err.Error(), "1 lost") {
		t.Errorf("got %v", err)
	}
}

func TestLatencyOfASmallRun(t *testing.T) {
	b, ctx := tiny(t)
	if err := b.latency(ctx); err != nil {
		t.Fatal(err)
	}
	if text := written(t, b, "latency"); strings.Count(text, "continuous") != 2 {
		t.Errorf("got\n%s", text)
	}
}

func TestRecoveryAndRestoreOfASmallState(t *testing.T) {
	b, ctx := tiny(t)
	if err := b.state(ctx, true, true); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"recovery", "restore"} {
		if text := written(t, b, what); !strings.Contains(text, "2000 rows") {
			t.Errorf("got\n%s", text)
		}
	}
}

func TestAResultDoesNotReplaceAnother(t *testing.T) {
	b := &bench{from: lookAround(), c: &cluster{kind: "none"}}
	b.out = t.TempDir()
	for range 2 {
		if err := b.write("nothing", ""); err != nil {
			t.Fatal(err)
		}
	}
	if files, err := os.ReadDir(b.out); err != nil || len(files) != 2 {
		t.Errorf("files %v, %v", files, err)
	}
}

func TestACommaListHasItsNamesAndAnEmptyOneAll(t *testing.T) {
	for _, c := range []struct {
		list string
		want bool
	}{{"", true}, {"b", true}, {"a, b", true}, {"ab", false}, {"a,c", false}} {
		if got := lists(c.list, "b"); got != c.want {
			t.Errorf("%q has b: %v", c.list, got)
		}
	}
}
