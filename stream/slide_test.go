package stream

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// slideFold is an aggregate that depends on the order of its records and
// deletes its row at times.
func slideFold(row, value string, ok bool) (string, bool) {
	if !ok {
		row = ""
	}
	return row + value, !strings.HasSuffix(row+value, "xx")
}

// A slideRun is the same by the rules, with rows in place of records.
type slideRun struct {
	slide
	rows   []slideRow
	values []string
}

func (r *slideRun) add(t, now int64, value string) map[int64]string {
	from, to := r.span(t, now)
	lo, _ := slices.BinarySearchFunc(r.rows, from, func(a slideRow, at int64) int { return int(a.start - at) })
	hi, _ := slices.BinarySearchFunc(r.rows, to+1, func(a slideRow, at int64) int { return int(a.start - at) })
	rows, values := slices.Clone(r.rows[lo:hi]), slices.Clone(r.values[lo:hi])
	results := map[int64]string{}
	for _, s := range r.plan(nil, rows, t, now) {
		row, v, ok := s.row, "", false
		if s.from >= 0 && !rows[s.from].gone {
			v, ok = values[s.from], true
		}
		if s.adds {
			v, ok = slideFold(v, value, ok)
			row.gone = !ok
		}
		if !ok {
			v = ""
		}
		i, found := slices.BinarySearchFunc(r.rows, row.start, func(a slideRow, at int64) int { return int(a.start - at) })
		if found != s.own {
			panic(fmt.Sprintf("row at %d is there: %v", row.start, found))
		}
		if found {
			r.rows[i], r.values[i] = row, v
		} else {
			r.rows, r.values = slices.Insert(r.rows, i, row), slices.Insert(r.values, i, v)
		}
		if !row.base {
			if _, twice := results[row.start]; twice {
				panic("told twice")
			}
			results[row.start] = fmt.Sprintf("%s/%v@%d", v, ok, row.last)
		}
	}
	return results
}

func TestSlidingRulesGiveWhatTheDefinitionGives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := slide{apart: rapid.Int64Range(1, 12).Draw(t, "apart"), grace: rapid.Int64Range(0, 9).Draw(t, "grace")}
		model := &SlideModel{Apart: s.apart, Grace: s.grace, Aggregate: ModelAggregate{Add: slideFold}}
		run := &slideRun{slide: s}
		now := int64(0)
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			if rapid.IntRange(0, 9).Draw(t, "kind") == 0 { // another key's record moves time
				now += rapid.Int64Range(1, 25).Draw(t, "jump")
				model.Move(now)
				continue
			}
			at := max(now+rapid.Int64Range(-30, 12).Draw(t, "at"), 0)
			now = max(now, at)
			value := rapid.SampledFrom([]string{"a", "b", "x"}).Draw(t, "value")
			results, _ := model.Add("k", value, at)
			if at < s.open(now) {
				if len(results) > 0 {
					t.Fatalf("the model takes a record at %d, now %d", at, now)
				}
				continue
			}
			want := map[int64]string{}
			for _, r := range results {
				want[r.Start] = fmt.Sprintf("%s/%v@%d", r.Value, !r.Deleted, r.Ms)
			}
			if got := run.add(at, now, value); !maps.Equal(got, want) {
				t.Fatalf("apart %d, grace %d, record at %d, now %d:\n got %v\nwant %v", s.apart, s.grace, at, now, got, want)
			}
		}
	})
}

func TestSlidingRulesAtTheEndOfTime(t *testing.T) {
	s := slide{apart: 10}
	const end = math.MaxInt64
	steps := s.plan(nil, []slideRow{{start: end - 10, last: end}}, end, end)
	if len(steps) != 1 || steps[0].row.start != end-10 {
		t.Errorf("steps %+v, want the one window [%d, %d]", steps, int64(end-10), int64(end))
	}
}
