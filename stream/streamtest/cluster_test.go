package streamtest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

func TestClusterRunsARealApp(t *testing.T) {
	c := streamtest.NewCluster(t)
	c.CreateTopics(3, lines.Name, counts.Name)
	c.Put(lines, "a", "to be or not to be")
	cfg := stream.Config{StateDir: t.TempDir(), CommitInterval: 20 * time.Millisecond}
	app := c.Start(wordCount, cfg)
	sum := map[string]int64{}
	for _, r := range c.Await(counts, 4) {
		sum[r.Key] = r.Value
	}
	if sum["to"] != 2 || sum["be"] != 2 || sum["or"] != 1 || sum["not"] != 1 {
		t.Errorf("counts = %v", sum)
	}
	if app.State() != stream.Running {
		t.Errorf("the app is %s", app.State())
	}

	// A second life on the same state goes on where the first stopped.
	if err := app.Close(t.Context(), stream.Stay); err != nil {
		t.Fatal(err)
	}
	c.Put(lines, "b", "be")
	c.Start(wordCount, cfg)
	if got := c.Await(counts, 1); got[0].Key != "be" || got[0].Value != 3 {
		t.Errorf("after the restart %s = %d, want be = 3", got[0].Key, got[0].Value)
	}
}

func TestClusterReturnsEachRecordOnceAndKeepsThoseNotAskedFor(t *testing.T) {
	c := streamtest.NewCluster(t)
	c.CreateTopics(1, lines.Name)
	at := time.UnixMilli(7)
	for _, v := range []string{"one", "two", "three"} {
		c.PutRecord(lines, stream.Record[string, string]{Key: "k", Value: v, Time: at}.WithHeader("h", []byte("x")))
	}
	first := c.Await(lines, 1)
	rest := c.Await(lines, 2)
	if first[0].Value != "one" || rest[0].Value != "two" || rest[1].Value != "three" {
		t.Errorf("first %v, then %v", first, rest)
	}
	if h, _ := first[0].Headers.Last("h"); string(h) != "x" || !first[0].Time.Equal(at) {
		t.Errorf("header %q, time %v", h, first[0].Time)
	}
}

func TestAppThatStopsFailsTheTestThatWaitsForIt(t *testing.T) {
	tb := &failingTB{TB: t}
	tb.run(func() {
		c := streamtest.NewCluster(tb)
		copies := lines.Named("copies")
		c.CreateTopics(1, lines.Name, copies.Name)
		c.Start(func(b *stream.Builder) {
			b.Stream(lines).MapValues(func(string) string { panic("oops") }).To(copies)
		}, stream.Config{})
		c.Put(lines, "a", "x")
		c.Await(copies, 1)
		t.Error("Await came back")
	})
	if len(tb.failures) != 2 {
		t.Fatalf("failures %q, want one of Await and one at the end of the test", tb.failures)
	}
	for _, f := range tb.failures {
		if !strings.Contains(f, "the application stopped") || !strings.Contains(f, "oops") {
			t.Errorf("failure %q does not say why", f)
		}
	}
}

func TestClusterNamesTheTopicThatIsMissing(t *testing.T) {
	tb := &failingTB{TB: t}
	tb.run(func() { streamtest.NewCluster(tb).Put(lines, "a", "x") })
	if len(tb.failures) != 1 || !strings.Contains(tb.failures[0], `no topic "lines"`) {
		t.Errorf("failures %q", tb.failures)
	}
}

// A failingTB is a test that may fail.
type failingTB struct {
	testing.TB
	failures []string
	cleanups []func()
}

// run runs a test to its end, clean-ups included.
func (tb *failingTB) run(test func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		test()
	}()
	<-done
	for len(tb.cleanups) > 0 {
		f := tb.cleanups[len(tb.cleanups)-1]
		tb.cleanups = tb.cleanups[:len(tb.cleanups)-1]
		f()
	}
}

func (tb *failingTB) Cleanup(f func()) { tb.cleanups = append(tb.cleanups, f) }
func (tb *failingTB) Errorf(form string, a ...any) {
	tb.failures = append(tb.failures, fmt.Sprintf(form, a...))
}
func (tb *failingTB) Fatalf(form string, a ...any) { tb.Errorf(form, a...); runtime.Goexit() }
func (tb *failingTB) Fatal(a ...any)               { tb.Fatalf("%s", fmt.Sprint(a...)) }
