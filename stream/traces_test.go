package stream_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// The golden traces are what Kafka Streams did, step by step. GOLDEN names
// their folder, <area>/<shape>--<scenario>.json.

type trace struct {
	Name, Area, Shape string
	Topology          string // in words; the last lines give topics and stores with their types
	Defect            *struct{ ID, Why string }
	Steps             []goldenStep
	Stores            map[string][]goldenRow

	types map[string]goldenType // of topics and stores
}

// A goldenStep is a record that goes in, or a move of the wall clock.
type goldenStep struct {
	In      *goldenRecord
	Wall    int64 // without In: the clock moves on by so many milliseconds
	Out     []goldenRecord
	Dropped int
	Error   string // the reference stopped here
}

type goldenRecord struct {
	Topic      string
	Key, Value any // string, json.Number or nil; as a key also a goldenWindow
	Ts         int64
	Headers    [][2]*string
	Defect     string
	Due        *int // the step in which the record was due, if it came later
}

// A goldenRow is a row of a store at the end.
type goldenRow struct {
	Key, Value any
	Ts         *int64
}

// A goldenWindow is a windowed key. The end of a session is part of it; a time
// window's follows from its start.
type goldenWindow struct {
	key        any
	start, end int64
	session    bool
}

func (w goldenWindow) String() string {
	if w.session {
		return fmt.Sprintf("%v[%d,%d]", w.key, w.start, w.end)
	}
	return fmt.Sprintf("%v[%d]", w.key, w.start)
}

// A goldenType is what a topic or a store holds, in words.
type goldenType struct{ kind, key, value string }

func (g goldenType) windowed() bool { return strings.HasPrefix(g.key, "Windowed") }

func (g goldenType) session() bool { return strings.HasSuffix(g.key, "session") }

// goldenDir is where the traces are, or the test is skipped.
func goldenDir(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("GOLDEN")
	if dir == "" {
		t.Skip("GOLDEN names no folder of traces")
	}
	return dir
}

// readTraces are the traces of the shapes that are written here.
func readTraces(t *testing.T) []trace {
	t.Helper()
	var traces []trace
	for _, tr := range allTraces(t) {
		if shapes[tr.Shape] != nil {
			traces = append(traces, tr)
		}
	}
	return traces
}

func allTraces(t *testing.T) []trace {
	t.Helper()
	dir := goldenDir(t)
	files, err := filepath.Glob(filepath.Join(dir, "*", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no traces in %s: %v", dir, err)
	}
	var traces []trace
	for _, file := range files {
		traces = append(traces, readTrace(t, file))
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
	tr.types = typesIn(tr.Topology)
	for i := range tr.Steps {
		for j := range tr.Steps[i].Out {
			o := &tr.Steps[i].Out[j]
			o.Key = windowKey(o.Key, tr.types[o.Topic].session())
		}
	}
	for name, rows := range tr.Stores {
		for i := range rows {
			rows[i].Key = windowKey(rows[i].Key, strings.HasPrefix(tr.types[name].kind, "session"))
		}
	}
	return tr
}

var typeLine = regexp.MustCompile(`(?m)^(Input|Output|Store) ([^:]+): (?:(.*store)(?:, .*)?, )?(.*) -> (.*)\.$`)

// typesIn reads the last lines of a topology.
func typesIn(topology string) map[string]goldenType {
	types := map[string]goldenType{}
	for _, m := range typeLine.FindAllStringSubmatch(topology, -1) {
		types[m[2]] = goldenType{m[3], m[4], m[5]}
	}
	return types
}

// windowKey makes a goldenWindow of a key with start and end.
func windowKey(key any, session bool) any {
	parts, ok := key.(map[string]any)
	if !ok {
		return key
	}
	return goldenWindow{parts["key"], number(parts["start"]), number(parts["end"]), session}
}

func number(v any) int64 {
	n, err := v.(json.Number).Int64()
	if err != nil {
		panic(err)
	}
	return n
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
		return binary.BigEndian.AppendUint64(nil, uint64(number(v)))
	case goldenWindow:
		b := goldenBytes(v.key)
		if v.session {
			b = binary.BigEndian.AppendUint64(b, uint64(v.end))
		}
		return binary.BigEndian.AppendUint64(b, uint64(v.start))
	case nil:
		return nil
	}
	panic(fmt.Sprintf("%T", v))
}

// show is a record as text. What the topic's types do not fit is shown as
// bytes.
func (tr *trace) show(k *kgo.Record) string {
	g := tr.types[k.Topic]
	s := fmt.Sprintf("%s %s=%s@%d", k.Topic, g.showKey(k.Key), showPart(k.Value, g.value), k.Timestamp.UnixMilli())
	for _, h := range k.Headers {
		s += fmt.Sprintf(" %s:%s", h.Key, showPart(h.Value, ""))
	}
	return s
}

func (g goldenType) showKey(b []byte) string {
	switch n := len(b) - 8; {
	case !g.windowed() || n < 0:
		return showPart(b, g.key)
	case g.session() && n >= 8:
		return fmt.Sprintf("%q[%d,%d]", b[:n-8], bigEndian(b[n:]), bigEndian(b[n-8:]))
	default:
		return fmt.Sprintf("%q[%d]", b[:n], bigEndian(b[n:]))
	}
}

func showPart(b []byte, typ string) string {
	switch {
	case b == nil:
		return "null"
	case typ == "Long" && len(b) == 8:
		return strconv.FormatInt(bigEndian(b), 10)
	}
	return strconv.Quote(string(b))
}

func bigEndian(b []byte) int64 { return int64(binary.BigEndian.Uint64(b)) }

func (tr *trace) showAll(ks []*kgo.Record) []string {
	var out []string
	for _, k := range ks {
		out = append(out, tr.show(k))
	}
	return out
}

// showSorted is for results of one step whose order is left to the store.
func (tr *trace) showSorted(recs []goldenRecord) []string {
	all := tr.showAll(goldenStep{Out: recs}.wanted())
	slices.Sort(all)
	return all
}

func (tr *trace) showStep(s goldenStep) string {
	if s.In == nil {
		return fmt.Sprintf("clock +%d ms", s.Wall)
	}
	return tr.show(s.In.kafka())
}

// wanted is what the step is to give.
func (s goldenStep) wanted() []*kgo.Record {
	var out []*kgo.Record
	for _, o := range s.Out {
		out = append(out, o.kafka())
	}
	return out
}
