package runtime

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// numbered are records with n keys from first on.
func numbered(into []*kgo.Record, first, n int) []*kgo.Record {
	for i := range n {
		into = append(into, &kgo.Record{Key: fmt.Append(nil, first+i)})
	}
	return into
}

func TestRecordsKeepTheirOrderThroughChunks(t *testing.T) {
	var c chunks
	var p pool
	for round := range 3 { // with slices that were used before
		staged, at := p.get(), 0
		for _, n := range []int{few + 1, 1, few, 3 * few, few, few + 1, 2} {
			staged = numbered(staged[:0], at, n)
			at += n
			if c.push(staged) {
				staged = p.get()
			}
		}
		all := slices.Concat(c.list...)
		if len(all) != at || c.n != at {
			t.Fatalf("round %d: %d records, %d counted, want %d", round, len(all), c.n, at)
		}
		for i, r := range all {
			if string(r.Key) != fmt.Sprint(i) {
				t.Fatalf("round %d: record %d is %s", round, i, r.Key)
			}
		}
		p.put(&c)
		if c.n != 0 || len(c.list) != 0 || len(p.empty) == 0 {
			t.Fatalf("round %d: %d records in %d chunks are left, the pool has %d", round, c.n, len(c.list), len(p.empty))
		}
	}
}

func TestFewRecordsAreCopiedAndManyAreNot(t *testing.T) {
	var c chunks
	roomy := make([]*kgo.Record, 0, 4*few)
	if !c.push(numbered(roomy, 0, few+1)) {
		t.Error("many records were copied")
	}
	if c.push(numbered(nil, 0, few)) {
		t.Error("few records were not copied where there was room")
	}
	if c.push(nil) || len(c.list) != 1 {
		t.Errorf("no records made a chunk, or few did: %d", len(c.list))
	}
	if !c.push(numbered(nil, 0, 2*few)) || len(c.list) != 2 {
		t.Errorf("many records made no chunk: %d", len(c.list))
	}
}

func TestAPoolKeepsSoManyChunks(t *testing.T) {
	var c chunks
	for range maxPool + 10 {
		c.push(numbered(nil, 0, few+1))
	}
	var p pool
	if p.put(&c); len(p.empty) != maxPool {
		t.Errorf("%d chunks are kept, want %d", len(p.empty), maxPool)
	}
	for range maxPool {
		if s := p.get(); len(s) != 0 || cap(s) == 0 {
			t.Fatalf("a chunk of %d with room for %d", len(s), cap(s))
		}
	}
	if p.get() != nil {
		t.Error("an empty pool has chunks")
	}
}
