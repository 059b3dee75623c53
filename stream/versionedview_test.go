package stream_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream"
)

func TestAViewOfVersionsReadsTheNewestAndThoseOfThePast(t *testing.T) {
	l := fake(t)
	rates, plain := l.topic("rates", 2), l.topic("plain", 1, compacted, "compact")
	begin := time.Now().Truncate(time.Second).UnixMilli()
	at := func(millis int64) time.Time { return time.UnixMilli(begin + millis) }
	put := func(key string, value uint64, millis int64) {
		r := &kgo.Record{Topic: rates, Key: []byte(key), Value: binary.BigEndian.AppendUint64(nil, value), Timestamp: at(millis)}
		if value == 0 {
			r.Value = nil
		}
		l.ok(l.cl.ProduceSync(l.ctx(), r).FirstErr())
	}
	app, rows := l.viewed(func(b *stream.Builder) {
		b.Table(stream.NewTopic(rates, codec.String, codec.Int64), "rates", stream.Versioned(100*ms))
		b.Table(stream.NewTopic(plain, codec.String, codec.Int64), "plain")
	}, stream.Config{StateDir: t.TempDir()}, "rates")
	put("a", 1, 100)
	put("a", 3, 300)
	put("b", 7, 300)
	put("b", 0, 310)
	put("a", 2, 250)
	put("c", 9, 310)
	awaitRow(l, rows, "c", 9)
	for _, test := range []struct {
		key          string
		millis, want int64 // 0 is none
	}{
		{"a", 299, 2}, {"a", 300, 3}, {"a", 9999, 3}, {"a", 249, 1}, {"a", 209, 0}, // beyond the history
		{"b", 309, 7}, {"b", 310, 0}, {"c", 309, 0}, {"d", 300, 0},
	} {
		got, ok, err := rows.GetAsOf(test.key, at(test.millis))
		if got != test.want || ok != (test.want > 0) || err != nil {
			t.Errorf("%s at %d: %d %v %v, want %d", test.key, test.millis, got, ok, err, test.want)
		}
	}
	got := map[string]int64{}
	for e, err := range rows.All() {
		l.ok(err)
		got[e.Key] = e.Value
	}
	if len(got) != 2 || got["a"] != 3 || got["c"] != 9 {
		t.Errorf("all rows are %v", got)
	}
	for e, err := range rows.Range("b", "z") {
		l.ok(err)
		if e.Key != "c" || !e.Time.Equal(at(310)) {
			t.Errorf("in range: %v", e)
		}
	}
	others, err := app.app.View[string, int64]("plain")
	l.ok(err)
	if _, _, err := others.GetAsOf("a", at(1)); !errors.Is(err, stream.ErrNoStore) {
		t.Errorf("a table without versions: %v", err)
	}
	app.stop()
	if _, _, err := rows.GetAsOf("a", at(300)); err == nil {
		t.Error("an app that has stopped answers")
	}
}
