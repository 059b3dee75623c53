package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

func TestAWarningThatGoesOnIsLoggedOnceEachTenSeconds(t *testing.T) {
	core, seen := observer.New(zap.InfoLevel)
	l := newLogger(zap.New(core))
	now := time.UnixMilli(0)
	l.repeats.now = func() time.Time { return now }
	for range 600 {
		l.Log(kgo.LogLevelWarn, "unable to open connection", "addr", "a:1", "err", "refused")
		l.Log(kgo.LogLevelWarn, "unable to open connection", "addr", "b:1", "err", "refused")
		now = now.Add(50 * time.Millisecond)
	}
	if n := seen.Len(); n != 6 {
		t.Errorf("%d lines of two brokers in 30 s, want 6", n)
	}
	last := seen.All()[5].ContextMap()
	if last["addr"] != "b:1" || last["held back"] != int64(199) {
		t.Errorf("the last line is %v, want it to count what was held back", last)
	}
	l.Log(kgo.LogLevelWarn, "something else")
	if n := seen.Len(); n != 7 {
		t.Error("another warning is held back")
	}
}
