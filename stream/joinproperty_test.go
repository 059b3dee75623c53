package stream

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// Stream-stream joins against their definition, with commits, aborts, moves to
// an empty disk and failing records anywhere in between.
func TestStreamsAreJoinedAsTheirDefinitionHasIt(t *testing.T) {
	for _, kind := range []string{inner, left, outer} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(rt *rapid.T) {
				from := rapid.Int64Range(-12, 8).Draw(rt, "from")
				to := rapid.Int64Range(from, 12).Draw(rt, "to")
				grace := rapid.Int64Range(0, 8).Draw(rt, "grace")
				m := &JoinModel{Before: -from, After: to, Grace: grace, Left: kind != inner, Right: kind == outer}
				w := Between(time.Duration(from)*ms, time.Duration(to)*ms, time.Duration(grace)*ms)
				h := newHistory(t, func(b *Builder) {
					joinOf(kind, w, OnError(Skip))(b)
					for _, topic := range []Topic[string, string]{texts, texts2} { // behind the join
						b.Stream(topic).ForEach(func(_, v string) error {
							if v == "fails" {
								return fmt.Errorf("as told")
							}
							return nil
						}, OnError(Skip))
					}
				})
				var want []string
				var now int64
				for i := range rapid.IntRange(1, 80).Draw(rt, "records") {
					now += rapid.Int64Range(0, 6).Draw(rt, "later")
					x := JoinInput{
						Right: rapid.Bool().Draw(rt, "right"),
						Key:   rapid.SampledFrom([]string{"a", "ab", ""}).Draw(rt, "key"),
						Value: fmt.Sprint(i),
						Ms:    max(0, now-rapid.Int64Range(0, 20).Draw(rt, "behind")),
					}
					switch rapid.IntRange(0, 19).Draw(rt, "lack") {
					case 0:
						x.NoKey, x.Key = true, ""
					case 1:
						x.NoValue, x.Value = true, ""
					case 2:
						x.Value = "fails"
					}
					topic := texts
					if x.Right {
						topic = texts2
					}
					put(h, topic, Record[string, string]{
						Key: x.Key, Value: x.Value, Time: time.UnixMilli(x.Ms), NoKey: x.NoKey, NoValue: x.NoValue,
					})
					if x.Value != "fails" {
						results, _ := m.Feed(x)
						for _, r := range results {
							want = append(want, showResult(r))
						}
					}
					h.event(rt)
					if rapid.IntRange(0, 19).Draw(rt, "move") == 0 {
						h.close()
						h.move()
					}
				}
				h.close()
				if got := sent(h, out); !slices.Equal(got, want) {
					rt.Fatalf("from %d to %d, grace %d:\n got %q\nwant %q", from, to, grace, got, want)
				}
			})
		})
	}
}

func showResult(r JoinResult) string {
	side := func(x *JoinInput) string {
		if x == nil {
			return "null"
		}
		return x.Value
	}
	rec := Record[string, string]{Key: r.Any().Key, NoKey: r.Any().NoKey, Value: side(r.Left) + "+" + side(r.Right), Time: time.UnixMilli(r.Ms())}
	return text(rec)
}
