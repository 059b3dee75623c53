package stream_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/stream"
)

// The golden traces are what Kafka Streams did, step by step. GOLDEN names
// their folder.

type trace struct {
	Name, Shape string
	Defect      *struct{ ID, Why string }
	Steps       []goldenStep
	Stores      map[string][]struct {
		Key, Value any
		Ts         *int64
	}
}

type goldenStep struct {
	In   *goldenRecord
	Wall int64 // without In: the clock moves on by so many milliseconds
	Out  []goldenRecord
}

type goldenRecord struct {
	Topic      string
	Key, Value any
	Ts         int64
	Headers    [][2]*string
	Defect     string
}

// readTraces are the traces of the shapes that are written here.
func readTraces(t *testing.T) []trace {
	t.Helper()
	dir := os.Getenv("GOLDEN")
	if dir == "" {
		t.Skip("GOLDEN names no folder of traces")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces in %s: %v", dir, err)
	}
	var traces []trace
	for _, file := range files {
		if shape, _, _ := strings.Cut(filepath.Base(file), "--"); shapes[shape] != nil {
			traces = append(traces, readTrace(t, file))
		}
	}
	return traces
}

func readTrace(t *testing.T, file string) (tr trace) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	d := json.NewDecoder(f)
	d.UseNumber()
	if err := d.Decode(&tr); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return tr
}

// kafka is the record as bytes: texts as they are, numbers as eight bytes.
func (g goldenRecord) kafka() *kgo.Record {
	k := &kgo.Record{Topic: g.Topic, Key: goldenBytes(g.Key), Value: goldenBytes(g.Value), Timestamp: time.UnixMilli(g.Ts)}
	for _, h := range g.Headers {
		header := kgo.RecordHeader{Key: *h[0]}
		if h[1] != nil {
			header.Value = append([]byte{}, *h[1]...)
		}
		k.Headers = append(k.Headers, header)
	}
	return k
}

func goldenBytes(v any) []byte {
	switch v := v.(type) {
	case string:
		return append([]byte{}, v...)
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			panic(err)
		}
		return binary.BigEndian.AppendUint64(nil, uint64(n))
	}
	return nil
}

// showOne is a record as text.
func showOne(k *kgo.Record) string {
	null := func(b []byte) string {
		if b == nil {
			return "null"
		}
		return strconv.Quote(string(b))
	}
	s := fmt.Sprintf("%s %s=%s@%d", k.Topic, null(k.Key), null(k.Value), k.Timestamp.UnixMilli())
	for _, h := range k.Headers {
		s += fmt.Sprintf(" %s:%s", h.Key, null(h.Value))
	}
	return s
}

func showAll(ks []*kgo.Record) []string {
	var out []string
	for _, k := range ks {
		out = append(out, showOne(k))
	}
	return out
}

func (s goldenStep) String() string {
	if s.In == nil {
		return fmt.Sprintf("clock +%d ms", s.Wall)
	}
	return showOne(s.In.kafka())
}

// perform does one step, in a transaction of its own.
func (s goldenStep) perform(replay *stream.Replay) []*kgo.Record {
	if s.In == nil {
		out := replay.Advance(time.Duration(s.Wall) * time.Millisecond)
		return append(out, replay.Commit()...)
	}
	out := replay.Feed(s.In.kafka())
	return append(out, replay.Commit()...)
}

// initialAsOld is the one defect of the reference in the traces here: it takes
// an aggregate's initial value for an old one.
const initialAsOld = "no-id-initial-as-old"

// wanted is what the step is to give, without what shows the defect.
func (s goldenStep) wanted() []*kgo.Record {
	var out []*kgo.Record
	for _, o := range s.Out {
		if o.Defect != initialAsOld {
			out = append(out, o.kafka())
		}
	}
	return out
}

// leavesOut are traces in which the reference left out deletes of rows that a
// filter had hidden, where it happened to know that. A table here tells what
// is deleted, unless something that follows asks for old values.
var leavesOut = map[string]bool{"to-table-rekeyed--r1": true}

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

func TestGoldenTracesAreReplayedStepByStep(t *testing.T) {
	passed, traces := 0, readTraces(t)
	for _, tr := range traces {
		if t.Run(tr.Name, func(t *testing.T) { replayTrace(t, tr) }) {
			passed++
		}
	}
	t.Logf("%d of %d traces", passed, len(traces))
}

func replayTrace(t *testing.T, tr trace) {
	if tr.Defect != nil && tr.Defect.ID != initialAsOld {
		t.Fatalf("the reference shows a defect that is not known here: %s", tr.Defect.ID)
	}
	replay, seen := stream.NewReplay(t, shapes[tr.Shape]), visible{}
	for i, s := range tr.Steps {
		out := s.perform(replay)
		if leavesOut[tr.Name] {
			out = seen.deletes(out)
		}
		if got, want := showAll(out), showAll(s.wanted()); !slices.Equal(got, want) {
			t.Fatalf("step %d, %s:\n got %s\nwant %s", i, s, strings.Join(got, "\n     "), strings.Join(want, "\n     "))
		}
	}
	compareStores(t, replay, tr)
}

func compareStores(t *testing.T, replay *stream.Replay, tr trace) {
	t.Helper()
	for name, rows := range tr.Stores {
		kept, ok := replay.Rows(name)
		if !ok {
			t.Errorf("there is no store %q", name)
			continue
		}
		var want, got []string
		timed := false
		for _, row := range rows {
			line := fmt.Sprintf("%v=%v", row.Key, row.Value)
			if timed = row.Ts != nil; timed {
				line += fmt.Sprintf("@%d", *row.Ts)
			}
			want = append(want, line)
		}
		for _, row := range kept {
			line := row.Key + "=" + row.Value
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
			fold(want, s.wanted())
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
						fold(got, replay.Feed(s.In.kafka()))
					}
					fold(got, replay.Commit())
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
func fold(rows map[string]string, ks []*kgo.Record) {
	for _, k := range ks {
		if row := k.Topic + " " + string(k.Key); k.Value == nil {
			delete(rows, row)
		} else {
			rows[row] = showOne(k)
		}
	}
}
