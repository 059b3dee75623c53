package stream_test

import (
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/stream"
)

// Kafka Streams reads what suppress holds back in the format that the header
// "v" names, and writes it with each row, but not with deletes.
func TestRowsThatSuppressHoldsSayTheirFormatAndThoseThatDoNotAreRead(t *testing.T) {
	in, out := stream.NewTopic("in", codec.String, codec.String), stream.NewTopic("out", codec.String, codec.String)
	p := newPair(t, func(b *stream.Builder) { b.Table(in, "rows").Suppress("held", time.Minute).To(out) }, 1)
	feed := func(key, value string, at int64) {
		p.feed(&kgo.Record{Topic: "in", Key: []byte(key), Value: []byte(value), Timestamp: time.UnixMilli(at)})
		p.commit()
	}
	log := seam.TP{Topic: pairApp + "-held-changelog"}
	formats := func() (seen []string) {
		for _, r := range p.w.Read(log, 0) {
			s := string(r.Key) + ":"
			for _, h := range r.Headers {
				s += h.Key + string('0'+rune(h.Value[0]))
			}
			if r.Value == nil {
				s += "-"
			}
			seen = append(seen, s)
		}
		return seen
	}
	feed("k", "x", 1)
	if got, want := formats(), []string{"k:v3"}; !slices.Equal(got, want) {
		t.Fatalf("the changelog has %q, want %q", got, want)
	}
	// A row as it was written before there was a header.
	row := p.w.Read(log, 0)[0]
	if _, err := p.w.Produce(log, []byte("old"), row.Value, row.Timestamp); err != nil {
		t.Fatal(err)
	}
	p.crash(p.procs[0], true)
	feed("j", "z", 60_001)
	if got, want := formats(), []string{"k:v3", "old:", "j:v3", "k:-", "old:-"}; !slices.Equal(got, want) {
		t.Errorf("the changelog has %q, want %q", got, want)
	}
	got := p.results()
	if len(got) != 2 || !slices.Equal(got[`out/0 "k"`], []string{`"x"@1`}) || !slices.Equal(got[`out/0 "old"`], []string{`"x"@1`}) {
		t.Errorf("let through: %v", got)
	}
}
