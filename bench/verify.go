package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A check compares an output with the source it was made of. A run whose
// output is wrong does not count, however fast.
type check func(ctx context.Context, c *cluster, out string, src *source) error

// checkCopies wants each record of the source in the output, once.
func checkCopies(ctx context.Context, c *cluster, out string, src *source) error {
	var n int64
	var sum uint64
	if err := c.readAll(ctx, out, func(r *kgo.Record) { n++; sum += digest(r) }); err != nil {
		return err
	}
	return compareCopies(n, sum, src)
}

func compareCopies(n int64, sum uint64, src *source) error {
	switch {
	case n != src.units:
		return fmt.Errorf("wrong output: %d records of %d", n, src.units)
	case sum != src.sum:
		return errors.New("wrong output: as many records as there should be, but not the same")
	}
	return nil
}

// checkCounts wants the last count of each key to be what the source has of
// it, and none to fall.
func checkCounts(ctx context.Context, c *cluster, out string, src *source) error {
	t := tally{last: make(map[string]int64, len(src.counts))}
	if err := c.readAll(ctx, out, t.add); err != nil {
		return err
	}
	return t.compare(src.counts)
}

// A tally is the counts that an output says.
type tally struct {
	last      map[string]int64
	fell, odd int
}

func (t *tally) add(r *kgo.Record) {
	n, ok := countOf(r)
	if !ok {
		t.odd++
		return
	}
	if n <= t.last[string(r.Key)] {
		t.fell++
	}
	t.last[string(r.Key)] = n
}

// countOf is false for a value that is no count.
func countOf(r *kgo.Record) (int64, bool) {
	if len(r.Value) != 8 {
		return 0, false
	}
	return int64(binary.BigEndian.Uint64(r.Value)), true
}

func (t *tally) compare(want map[string]int64) error {
	var lost, doubled, strange int64
	for k, n := range want {
		lost += max(n-t.last[k], 0)
		doubled += max(t.last[k]-n, 0)
	}
	for k := range t.last {
		if want[k] == 0 {
			strange++
		}
	}
	if lost+doubled+strange > 0 || t.fell+t.odd > 0 {
		return fmt.Errorf("wrong output: %d lost, %d doubled, %d unknown keys, %d counts that did not grow, %d that are none",
			lost, doubled, strange, t.fell, t.odd)
	}
	return nil
}
