package check

import (
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Report is what is wrong, by kind. Nothing in it is a proof, for this run.
type Report struct {
	Lost, Doubled, Torn, Wrong []string
	Inputs, Results, Txns      int // what was looked at
}

// OK says that nothing is wrong.
func (r *Report) OK() bool { return len(r.Lost)+len(r.Doubled)+len(r.Torn)+len(r.Wrong) == 0 }

// String is a line of counts, and the first findings of each kind.
func (r *Report) String() string {
	s := fmt.Sprintf("%d inputs, %d results, %d transactions: %d lost, %d doubled, %d torn, %d wrong",
		r.Inputs, r.Results, r.Txns, len(r.Lost), len(r.Doubled), len(r.Torn), len(r.Wrong))
	for _, kind := range [][]string{r.Lost, r.Doubled, r.Torn, r.Wrong} {
		for _, line := range kind[:min(len(kind), 5)] {
			s += "\n  " + line
		}
	}
	return s
}

func (r *Report) lost(f string, a ...any)    { r.Lost = append(r.Lost, fmt.Sprintf(f, a...)) }
func (r *Report) doubled(f string, a ...any) { r.Doubled = append(r.Doubled, fmt.Sprintf(f, a...)) }
func (r *Report) torn(f string, a ...any)    { r.Torn = append(r.Torn, fmt.Sprintf(f, a...)) }
func (r *Report) wrong(f string, a ...any)   { r.Wrong = append(r.Wrong, fmt.Sprintf(f, a...)) }

// Each compares the inputs with per-record results. An input is a key and an
// id; its result is "n id" under the same key, where n counts the key's
// records from 1 in the order of the input.
func (r *Report) Each(inputs, results []*Log) {
	want := byKey(inputs)
	got := byKey(results)
	for _, key := range slices.Sorted(maps.Keys(want)) {
		r.Inputs += len(want[key])
		r.key(key, want[key], got[key])
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		r.Results += len(got[key])
		if want[key] == nil {
			r.wrong("key %s has %d results and no input", key, len(got[key]))
		}
	}
}

func (r *Report) key(key string, ids, results []string) {
	seen := map[string]int{}
	last := 0
	for _, res := range results {
		n, id, _ := strings.Cut(res, " ")
		num, err := strconv.Atoi(n)
		switch seen[id]++; {
		case err != nil:
			r.wrong("key %s: result %q is none", key, res)
		case seen[id] > 1:
			r.doubled("key %s, input %s: result %d is the %d. of it", key, id, num, seen[id])
		case num > len(ids) || ids[num-1] != id:
			r.wrong("key %s, input %s: counted as number %d", key, id, num)
		case num < last:
			r.wrong("key %s: result %d comes after %d", key, num, last)
		}
		last = num
	}
	for i, id := range ids {
		if seen[id] == 0 {
			r.lost("key %s, input %s, the %d. of its key", key, id, i+1)
		}
	}
}

func byKey(logs []*Log) map[string][]string {
	m := map[string][]string{}
	for _, l := range logs {
		for _, rec := range l.Committed {
			m[string(rec.Key)] = append(m[string(rec.Key)], string(rec.Value))
		}
	}
	return m
}

// Counts compares the last value of each key, an int64, with what is wanted.
// Such topics are results at the commit, and changelogs: a changelog that
// differs where the results do not is torn from them.
func (r *Report) Counts(logs []*Log, want map[string]int64, torn bool) {
	got := map[string]int64{}
	for _, l := range logs {
		for _, rec := range l.Committed {
			if len(rec.Value) != 8 {
				r.wrong("%s/%d at offset %d: %d bytes are no count", l.Topic, l.Partition, rec.Offset, len(rec.Value))
				continue
			}
			n := int64(binary.BigEndian.Uint64(rec.Value))
			if n < got[string(rec.Key)] {
				r.wrong("%s: count of %s falls from %d to %d", l.Topic, rec.Key, got[string(rec.Key)], n)
			}
			got[string(rec.Key)] = n
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		switch n, w := got[key], want[key]; {
		case n == w:
		case torn:
			r.torn("%s: %s is %d, should be %d", logs[0].Topic, key, n, w)
		case n < w:
			r.lost("%s: %s is %d, should be %d", logs[0].Topic, key, n, w)
		default:
			r.doubled("%s: %s is %d, should be %d", logs[0].Topic, key, n, w)
		}
	}
}

// Markers asks that each transaction ended the same way in every partition and
// none is open.
func (r *Report) Markers(topics ...[]*Log) {
	ended := map[Txn]bool{}
	where := map[Txn]string{}
	for _, logs := range topics {
		for _, l := range logs {
			if l.Open > 0 {
				r.wrong("%s/%d: %d records of transactions that never ended", l.Topic, l.Partition, l.Open)
			}
			for t, commit := range l.Ended {
				name := fmt.Sprintf("%s/%d", l.Topic, l.Partition)
				if before, ok := ended[t]; ok && before != commit {
					r.torn("transaction %d.%d: committed is %v in %s and %v in %s", t.Producer, t.Epoch, before, where[t], commit, name)
				}
				ended[t], where[t] = commit, name
			}
		}
	}
	r.Txns += len(ended)
}
