package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/examples/internal/demo"
)

// report compares the counts with the recount and prints what happened.
func report(ctx context.Context, run *demo.Run, text *corpus, took time.Duration, began time.Time) error {
	got, fell, err := readCounts(ctx, run)
	if err != nil {
		return err
	}
	var lost, doubled int64
	for w, want := range text.count {
		lost += max(want-got[w], 0)
		doubled += max(got[w]-want, 0)
	}
	for w, n := range got {
		if _, ok := text.count[w]; !ok {
			doubled += n
		}
	}
	fmt.Printf("counted %d words of %d lines in %.1f s: %.0f lines/s, %.0f words/s\n",
		text.words, text.lines, took.Seconds(), float64(text.lines)/took.Seconds(), float64(text.words)/took.Seconds())
	fmt.Println(run.Totals())
	top := slices.SortedFunc(maps.Keys(got), func(a, b string) int { return cmp.Or(cmp.Compare(got[b], got[a]), cmp.Compare(a, b)) })
	for _, w := range top[:min(10, len(top))] {
		fmt.Printf("%10d  %s\n", got[w], w)
	}
	fmt.Printf("%.1f s in all\n", time.Since(began).Seconds())
	if lost+doubled+fell > 0 {
		return fmt.Errorf("%w: %d lost, %d doubled, %d counts that fell", demo.ErrNotExact, lost, doubled, fell)
	}
	fmt.Println("exact: 0 lost, 0 doubled")
	return nil
}

// readCounts reads the committed counts to their end: the last of each word,
// and how many were smaller than one before.
func readCounts(ctx context.Context, run *demo.Run) (last map[string]int64, fell int64, err error) {
	last = map[string]int64{}
	err = run.Read(ctx, Counts.Name, func(r *kgo.Record) {
		n := int64(binary.BigEndian.Uint64(r.Value))
		if n < last[string(r.Key)] {
			fell++
		}
		last[string(r.Key)] = n
	})
	return last, fell, err
}
