package kafka

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/txn"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

func TestATransactionReadsWritesAndCommits(t *testing.T) {
	for _, mode := range []string{"exactly once", "at least once"} {
		t.Run(mode, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w world) {
				a := w.app(t)
				m := a.join(t, "i1")
				m.awaitTasks(t, 6)
				in, out := tp(a.subs[0].Topics[0], 0), tp(a.subs[1].Topics[0], 1)
				w.produce(t, recs(in.Topic, 0, 5)...)
				b := w.broker(t, func(c *Config) { c.AtLeastOnce = mode == "at least once" })
				x := w.txn(t, b, uid("id"))
				x.Assign(in, 0)
				values := read(t, x, in, 5)
				rs := make([]*kgo.Record, len(values))
				for i, v := range values {
					rs[i] = rec(out.Topic, 1, strings.ToUpper(v))
				}
				open(t, x, rs...)
				ok(t, x.Prepare(ctx(t), m.Member(), seam.Offsets{in: {At: 5, Epoch: 0}}))
				for i, r := range rs {
					if r.Offset != int64(i) {
						t.Fatalf("record %d has offset %d after Prepare", i, r.Offset)
					}
				}
				ok(t, x.End(ctx(t), true))
				c := w.consumer(t, b)
				c.Assign(out, 0)
				if got := read(t, c, out, 5); !slices.Equal(got, []string{"V0", "V1", "V2", "V3", "V4"}) {
					t.Fatal(got)
				}
				if got := must[seam.Offsets](t)(b.Committed(ctx(t), a.group, "app-", []seam.TP{in})); got[in].At != 5 {
					t.Fatal(got)
				}
			})
		})
	}
}

func TestANewTxnFencesTheFormerOne(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		out := tp(w.topic(t, b, 1), 0)
		id := uid("id")
		x := w.txn(t, b, id)
		open(t, x, rec(out.Topic, 0, "never"))
		ok(t, x.Prepare(ctx(t), seam.Member{}, nil))
		y := w.txn(t, b, id)
		transact(t, y, true, rec(out.Topic, 0, "a"))
		err := x.End(ctx(t), true)
		if o := txn.Judge(err); o != txn.OutcomeNewProducer && o != txn.OutcomeUnknown {
			t.Fatalf("the former one's commit: %v", err)
		}
		if x.Add(ctx(t), []seam.TP{out}) == nil {
			t.Fatal("the former one goes on")
		}
		c := w.consumer(t, b)
		c.Assign(out, 0)
		if got := read(t, c, out, 4); !slices.Equal(got, []string{"a"}) {
			t.Fatal(got)
		}
	})
}

func TestARecordThatIsTooLargeIsNamed(t *testing.T) {
	for _, mode := range []string{"exactly once", "at least once"} {
		t.Run(mode, func(t *testing.T) {
			everywhere(t, func(t *testing.T, w world) {
				b := w.broker(t, func(c *Config) { c.AtLeastOnce = mode == "at least once" })
				out := tp(w.topic(t, b, 1), 0)
				x := w.txn(t, b, uid("id"))
				big := rec(out.Topic, 0, strings.Repeat("x", 2<<20))
				open(t, x, big)
				err := x.Prepare(ctx(t), seam.Member{}, nil)
				var pe *seam.ProduceError
				if !errors.As(err, &pe) || pe.Record != big || !errors.Is(err, kerr.MessageTooLarge) {
					t.Fatalf("%v", err)
				}
				if strings.Contains(err.Error(), "xxx") {
					t.Fatal("the error shows the record")
				}
				if x.Add(ctx(t), []seam.TP{out}) == nil {
					t.Fatal("the Txn goes on after an error")
				}
			})
		})
	}
}
