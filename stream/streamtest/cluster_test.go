package streamtest_test

import (
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
