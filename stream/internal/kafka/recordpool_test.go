package kafka

import (
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A worker's client reads what follows into the records that the worker has
// recycled, and control records are recycled for it.
func TestRecycledRecordsAreFetchedIntoAgain(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties the pool
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		p := tp(w.topic(t, b, 1), 0)
		c := w.txn(t, b, uid("reader"))
		c.Assign(p, 0)
		x := w.txn(t, b, uid("writer"))
		seen := map[*kgo.Record]bool{}
		again := 0
		for i := range 20 { // the race detector has a pool forget some of what it is given
			transact(t, x, true, rec(p.Topic, 0, "a"), rec(p.Topic, 0, "b"))
			next := int64(3 * (i + 1)) // each transaction has a marker
			var got []string
			for at := int64(0); at < next; {
				bs, err := c.Poll(ctx(t), 10, 10*time.Second)
				ok(t, err)
				for _, b := range bs {
					for _, r := range b.Records {
						if seen[r] {
							again++
						}
						seen[r] = true
						got = append(got, string(r.Value))
						r.Recycle()
					}
					at = b.Next
				}
			}
			if want := []string{"a", "b"}; !slices.Equal(got, want) {
				t.Fatalf("transaction %d: read %q, want %q", i, got, want)
			}
		}
		if again == 0 {
			t.Fatalf("none of %d records was used again", len(seen))
		}
	})
}

// A batch of control records alone moves the position, though nothing is left
// of them.
func TestABatchKnowsItsEndWhenItsRecordsAreGone(t *testing.T) {
	everywhere(t, func(t *testing.T, w world) {
		b := w.broker(t)
		p := tp(w.topic(t, b, 1), 0)
		transact(t, w.txn(t, b, uid("writer")), true, rec(p.Topic, 0, "a"))
		c := w.txn(t, b, uid("reader"))
		c.Assign(p, 1) // the marker alone
		bs, err := c.Poll(ctx(t), 10, 10*time.Second)
		ok(t, err)
		if len(bs) != 1 || len(bs[0].Records) != 0 || bs[0].Next != 2 || bs[0].Epoch < 0 {
			t.Fatalf("read %+v, want position 2 and no record", bs)
		}
	})
}
