package stream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/internal/model"
)

// Both inputs are complete before the app starts, and requests take times of
// their own: records go by their timestamps all the same.
func TestJOI13TwoInputsReadAtDifferentSpeedAfterARestart(t *testing.T) {
	for seed := range uint64(50) {
		f := newFailing(t)
		f.w = model.New(model.Config{Seed: seed})
		f.topics(1, "in", "t", "out")
		put := func(topic, value string, ms int64) {
			if _, err := f.w.Produce(seam.TP{Topic: topic}, []byte("k"), []byte(value), time.UnixMilli(ms)); err != nil {
				t.Fatal(err)
			}
		}
		put("in", "e20", 20)
		put("in", "e40", 40)
		put("t", "v1", 10)
		put("t", "v2", 30)
		f.w.SetConfig("t", "cleanup.policy", "compact")
		f.start(func(b *stream.Builder) {
			b.Stream(in).LeftJoin(b.Table(topic("t"), "tab"), joinedLeft).To(out)
		}).processed()
		var got []string
		for _, k := range f.w.Read(seam.TP{Topic: "out"}, 0) {
			got = append(got, string(k.Value))
		}
		f.w.Stop()
		if !slices.Equal(got, []string{"e20+v1", "e40+v2"}) {
			t.Fatalf("seed %d: got %q", seed, got)
		}
	}
}
