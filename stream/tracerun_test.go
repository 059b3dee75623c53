package stream_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
)

func TestGoldenTracesAreReplayedStepByStep(t *testing.T) {
	report := &goldenReport{}
	for _, tr := range allTraces(t) {
		area := report.area(tr.Area)
		switch reason := whyNotRun(tr); {
		case reason != "":
			area.skipped++
			report.note(tr, "not run: %s", reason)
		case t.Run(tr.Name, func(t *testing.T) { replayTrace(t, tr) }):
			area.passed++
		default:
			area.failed++
			report.note(tr, "FAILED")
		}
	}
	report.write(t)
}

// whyNotRun says why there is nothing to run tr on; "" if there is.
func whyNotRun(tr trace) string {
	if shapes[tr.Shape] == nil {
		return fmt.Sprintf("no topology is written for shape %q", tr.Shape)
	}
	return ""
}

func replayTrace(t *testing.T, tr trace) {
	if id, ok := correct(&tr); !ok {
		t.Fatalf("the reference shows a defect that is not known here: %s", id)
	}
	replay, seen := stream.NewReplay(t, shapes[tr.Shape]), visible{}
	for i, s := range tr.Steps {
		out, err := perform(replay, s)
		if (err != nil) != (s.Error != "") {
			t.Fatalf("step %d, %s: failed with %v, want %q", i, tr.showStep(s), err, s.Error)
		}
		if err != nil {
			return // the reference stopped
		}
		if leavesOut[tr.Shape] {
			out = seen.deletes(out)
		}
		got, want := tr.showAll(out), tr.showAll(s.wanted())
		if byStore.MatchString(tr.Topology) {
			slices.Sort(got)
			slices.Sort(want)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("step %d, %s:\n got %s\nwant %s", i, tr.showStep(s), strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
		if dropped := replay.Dropped(); counted(dropped) != s.Dropped {
			t.Fatalf("step %d, %s: dropped %q, want %d", i, tr.showStep(s), dropped, s.Dropped)
		}
	}
	compareStores(t, replay, tr)
}

// byStore are the operators whose results of one step come in the order of a
// store, which is no promise of theirs: finals, what was held back, the
// windows of a sliding record, stream records that waited for a table, and
// what one row of a foreign-key join's right side changes.
var byStore = regexp.MustCompile(`emitStrategy|suppress\(|SlidingWindows|Joined\.with\(String, String, String, "buf"|TableJoined`)

// perform does one step, in a transaction of its own.
func perform(replay *stream.Replay, s goldenStep) ([]*kgo.Record, error) {
	if s.In == nil {
		out := replay.Advance(time.Duration(s.Wall) * time.Millisecond)
		return append(out, replay.Commit()...), nil
	}
	out, err := replay.Try(s.In.kafka())
	if err != nil {
		return nil, err
	}
	return append(out, replay.Commit()...), nil
}

// counted is how many drops the reference counts too. It calls a user's
// function for a null value, and leaves a record without a key out of a
// repartition topic in silence.
func counted(drops []stream.Drop) (n int) {
	for _, d := range drops {
		switch {
		case d.Reason == "tombstone" && slices.ContainsFunc(functions, func(f string) bool { return strings.HasPrefix(d.Kind, f) }):
		case d.Reason == "no key" && d.Kind == "sink":
		case d.Reason == "expired": // it counts what lies a whole segment back
		case d.Reason == "late" && (d.Kind == "join" || strings.HasSuffix(d.Kind, "-join") || strings.HasSuffix(d.Kind, "join-stream")): // it joins what is late
		default:
			n++
		}
	}
	return n
}

// functions are how the kinds of operators begin that call a function of the
// user's for each record.
var functions = []string{"filter", "map", "flat-map", "select-key", "peek", "for-each", "process"}

// leavesOut are shapes in which the reference leaves out deletes of rows that a
// filter had hidden, where it happens to know that. A table here tells what is
// deleted, unless something that follows asks for old values.
var leavesOut = map[string]bool{"to-table-rekeyed": true}

// A visible knows what rows the topics hold.
type visible map[string]bool

// deletes leaves out deletes of rows that are not there.
func (v visible) deletes(ks []*kgo.Record) []*kgo.Record {
	return slices.DeleteFunc(ks, func(k *kgo.Record) bool {
		row := k.Topic + " " + string(k.Key)
		superfluous := k.Value == nil && !v[row]
		v[row] = k.Value != nil
		return superfluous
	})
}

func compareStores(t *testing.T, replay *stream.Replay, tr trace) {
	t.Helper()
	for name, rows := range tr.Stores {
		kept, ok := replay.Rows(name, tr.keys())
		if !ok {
			t.Errorf("there is no store %q", name)
			continue
		}
		timed := len(rows) > 0 && rows[0].Ts != nil
		var want, got []string
		for _, row := range rows {
			line := fmt.Sprintf("%v=%v", row.Key, row.Value)
			if timed {
				line += fmt.Sprintf("@%d", *row.Ts)
			}
			want = append(want, line)
		}
		for _, row := range tr.shown(name, kept) {
			line := tr.types[name].rowKey(row) + "=" + row.Value
			if timed {
				line += fmt.Sprintf("@%d", row.Ms)
			}
			got = append(got, line)
		}
		if !slices.Equal(got, want) {
			t.Errorf("store %q:\n got %q\nwant %q", name, got, want)
		}
	}
}

// keys are all keys that go in.
func (tr *trace) keys() (keys []string) {
	for _, s := range tr.Steps {
		if s.In == nil {
			continue
		}
		if key, ok := s.In.Key.(string); ok && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}

// rowKey is the key of a row as that of a trace is printed.
func (g goldenType) rowKey(row stream.Row) string {
	switch {
	case strings.Contains(g.kind, "window"):
		return goldenWindow{row.Key, row.Start, 0, false}.String()
	case strings.Contains(g.kind, "session"):
		return goldenWindow{row.Key, row.Start, row.End, true}.String()
	}
	return row.Key
}

// tables are the shapes whose result is a table of their input: whatever
// transactions they are run in, the rows that are sent last are the same. (The
// table of an aggregate of an aggregate is not: it visits fewer groups.)
var tables = []string{
	"count", "reduce", "aggregate-delete", "sum-long", "group-by-count", "branch-merge-group",
	"table-group-count", "table-group-sum", "table-group-reduce", "table-group-trace", "table-delete-group", "table-chain-group",
}

func TestGoldenTablesEndTheSameInTransactionsOfAnySize(t *testing.T) {
	defer func(opts []stream.AggregateOption) { each = opts }(each)
	each = nil
	for _, tr := range readTraces(t) {
		if !slices.Contains(tables, tr.Shape) {
			continue
		}
		want := map[string]string{}
		for _, s := range tr.Steps {
			tr.fold(want, s.wanted())
		}
		for _, size := range []int{1, 7, len(tr.Steps)} {
			t.Run(fmt.Sprintf("%s/%d", tr.Name, size), func(t *testing.T) {
				replay := stream.NewReplay(t, shapes[tr.Shape])
				got := map[string]string{}
				for batch := range slices.Chunk(tr.Steps, size) {
					// The first try of each transaction is aborted half-way.
					for _, s := range batch[:len(batch)/2] {
						replay.Feed(s.In.kafka())
					}
					replay.Restart()
					for _, s := range batch {
						tr.fold(got, replay.Feed(s.In.kafka()))
					}
					tr.fold(got, replay.Commit())
				}
				if !maps.Equal(got, want) {
					t.Errorf("got %q\nwant %q", got, want)
				}
				compareStores(t, replay, tr)
			})
		}
	}
}

// fold makes rows of changes.
func (tr *trace) fold(rows map[string]string, ks []*kgo.Record) {
	for _, k := range ks {
		if row := k.Topic + " " + string(k.Key); k.Value == nil {
			delete(rows, row)
		} else {
			rows[row] = tr.show(k)
		}
	}
}
