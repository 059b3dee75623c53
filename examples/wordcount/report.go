package main

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// report compares the counts with the recount and prints what happened.
func (d *demo) report(ctx context.Context, took, all time.Duration) error {
	got, fell, err := d.readCounts(ctx)
	if err != nil {
		return err
	}
	var lost, doubled int64
	for w, want := range d.corpus.count {
		lost += max(want-got[w], 0)
		doubled += max(got[w]-want, 0)
	}
	for w, n := range got {
		if _, ok := d.corpus.count[w]; !ok {
			doubled += n
		}
	}
	var commits, aborts, restores int
	for _, p := range d.lives {
		p.mu.Lock()
		commits, aborts, restores = commits+p.commits, aborts+p.aborts, restores+p.restores
		p.mu.Unlock()
	}
	fmt.Printf("counted %d words of %d lines in %.1f s: %.0f lines/s, %.0f words/s\n",
		d.corpus.words, d.corpus.lines, took.Seconds(), float64(d.corpus.lines)/took.Seconds(), float64(d.corpus.words)/took.Seconds())
	fmt.Printf("%d transactions committed, %d aborted; %d processes killed, %d stores restored\n", commits, aborts, d.killed, restores)
	top := slices.SortedFunc(maps.Keys(got), func(a, b string) int { return cmp.Or(cmp.Compare(got[b], got[a]), cmp.Compare(a, b)) })
	for _, w := range top[:min(10, len(top))] {
		fmt.Printf("%10d  %s\n", got[w], w)
	}
	fmt.Printf("%.1f s in all\n", all.Seconds())
	if lost+doubled+fell > 0 {
		return fmt.Errorf("not exact: %d lost, %d doubled, %d counts that fell", lost, doubled, fell)
	}
	fmt.Println("exact: 0 lost, 0 doubled")
	return nil
}

// readCounts reads the committed counts to their end: the last of each word,
// and how many were smaller than one before.
func (d *demo) readCounts(ctx context.Context) (last map[string]int64, fell int64, err error) {
	ends, err := d.admin.ListEndOffsets(ctx, Counts.Name)
	if err != nil {
		return nil, 0, err
	}
	left := map[int32]int64{}
	from := map[int32]kgo.Offset{}
	ends.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition], from[o.Partition] = o.Offset, kgo.NewOffset().At(0)
		}
	})
	cl, err := kgo.NewClient(kgo.SeedBrokers(d.brokers...), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{Counts.Name: from}))
	if err != nil {
		return nil, 0, err
	}
	defer cl.Close()
	last = map[string]int64{}
	for len(left) > 0 {
		fs := cl.PollFetches(ctx)
		if err := fs.Err(); err != nil {
			return nil, 0, err
		}
		fs.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			n := int64(binary.BigEndian.Uint64(r.Value))
			if n < last[string(r.Key)] {
				fell++
			}
			last[string(r.Key)] = n
		})
	}
	return last, fell, nil
}
