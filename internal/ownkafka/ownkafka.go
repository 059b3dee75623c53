// Package ownkafka gives a test a real Kafka of its own, to kill brokers of.
package ownkafka

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A Cluster is one that scripts/kafka has started and deletes with the test.
type Cluster struct {
	t     *testing.T
	name  string
	Addrs []string // host:port of each broker
}

// New starts a cluster with options of scripts/kafka's "up". Where KAFKA_ADDR is not
// set, no real Kafka is wanted and the test is skipped.
func New(t *testing.T, opts ...string) *Cluster {
	t.Helper()
	if os.Getenv("KAFKA_ADDR") == "" {
		t.Skip("KAFKA_ADDR is not set")
	}
	c := &Cluster{t: t, name: fmt.Sprintf("test-%08x", rand.Uint32())}
	t.Cleanup(func() { c.script("rm") })
	c.Addrs = strings.Split(strings.TrimSpace(c.script(append([]string{"up"}, opts...)...)), ",")
	return c
}

// Kill ends a broker, the first is 1, as kill -9 does.
func (c *Cluster) Kill(broker int) {
	c.t.Helper()
	c.script("kill", fmt.Sprint(broker))
}

// Start starts a broker that was killed, and waits until it answers.
func (c *Cluster) Start(broker int) {
	c.t.Helper()
	c.script("start", fmt.Sprint(broker))
}

func (c *Cluster) script(args ...string) string {
	c.t.Helper()
	_, here, _, _ := runtime.Caller(0)
	script := filepath.Join(filepath.Dir(here), "..", "..", "scripts", "kafka")
	cmd := exec.CommandContext(context.Background(), script, append([]string{"-c", c.name}, args...)...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		c.t.Fatalf("scripts/kafka %v: %v", args, err)
	}
	return string(out)
}
