package stream_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
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
	In    *goldenRecord
	Wall  int64
	Out   []goldenRecord
	Error string
}

type goldenRecord struct {
	Topic      string
	Key, Value any
	Ts         int64
	Headers    [][2]*string
	Defect     string
}

// readTraces are the traces of shapes that are written here.
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
		if shape, _, _ := strings.Cut(filepath.Base(file), "--"); shapes[shape] == nil {
			continue
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		d := json.NewDecoder(strings.NewReader(string(text)))
		d.UseNumber()
		var tr trace
		if err := d.Decode(&tr); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		traces = append(traces, tr)
	}
	return traces
}

// kafka is the record as bytes: texts as they are, numbers as eight bytes.
func (g goldenRecord) kafka() *kgo.Record {
	k := &kgo.Record{Topic: g.Topic, Key: goldenBytes(g.Key), Value: goldenBytes(g.Value), Timestamp: time.UnixMilli(g.Ts)}
	for _, h := range g.Headers {
		header := kgo.RecordHeader{Key: *h[0]}
		if h[1] != nil {
			header.Value = []byte(*h[1])
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

// print is a record as text, null as "null".
func print(k *kgo.Record) string {
	show := func(b []byte) string {
		if b == nil {
			return "null"
		}
		return strconv.Quote(string(b))
	}
	s := fmt.Sprintf("%s %s=%s@%d", k.Topic, show(k.Key), show(k.Value), k.Timestamp.UnixMilli())
	for _, h := range k.Headers {
		s += fmt.Sprintf(" %s:%s", h.Key, show(h.Value))
	}
	return s
}

func printAll(ks []*kgo.Record) []string {
	var out []string
	for _, k := range ks {
		out = append(out, print(k))
	}
	return out
}

// initialAsOld is the one defect of the reference in the traces here.
const initialAsOld = "no-id-initial-as-old"

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
		ok := t.Run(tr.Name, func(t *testing.T) {
			if tr.Defect != nil && tr.Defect.ID != initialAsOld {
				t.Skipf("the reference shows a defect: %s", tr.Defect.ID)
			}
			replay := stream.NewReplay(t, shapes[tr.Shape])
			seen := visible{}
			for i, s := range tr.Steps {
				out := perform(replay, s)
				if leavesOut[tr.Name] {
					out = seen.deletes(out)
				}
				got, want := printAll(out), printAll(wanted(s))
				if !slices.Equal(got, want) {
					t.Fatalf("step %d, %s:\n got %s\nwant %s", i, describe(s), strings.Join(got, "\n     "), strings.Join(want, "\n     "))
				}
			}
			compareStores(t, replay, tr)
		})
		if ok {
			passed++
		}
	}
	t.Logf("%d of %d traces", passed, len(traces))
}

// perform does one step, each in a transaction of its own.
func perform(replay *stream.Replay, s goldenStep) []*kgo.Record {
	var out []*kgo.Record
	if s.In != nil {
		out = replay.Feed(s.In.kafka())
	} else {
		out = replay.Advance(time.Duration(s.Wall) * time.Millisecond)
	}
	return append(out, replay.Commit()...)
}

// wanted is what the step is to give: without what shows that the reference
// takes an initial value for an old one, which nothing here does.
func wanted(s goldenStep) []*kgo.Record {
	var out []*kgo.Record
	for _, o := range s.Out {
		if o.Defect == initialAsOld {
			continue
		}
		out = append(out, o.kafka())
	}
	return out
}

func describe(s goldenStep) string {
	if s.In == nil {
		return fmt.Sprintf("clock +%d ms", s.Wall)
	}
	return print(s.In.kafka())
}

func compareStores(t *testing.T, replay *stream.Replay, tr trace) {
	t.Helper()
	for name, rows := range tr.Stores {
		got, ok := replay.Rows(name)
		if !ok {
			t.Errorf("there is no store %q", name)
			continue
		}
		var want, have []string
		for i, row := range rows {
			line := fmt.Sprintf("%v=%v", row.Key, row.Value)
			var mine string
			if i < len(got) {
				mine = got[i].Key + "=" + got[i].Value
			}
			if row.Ts != nil {
				line += fmt.Sprintf("@%d", *row.Ts)
				if i < len(got) {
					mine += fmt.Sprintf("@%d", got[i].Ms)
				}
			}
			want, have = append(want, line), append(have, mine)
		}
		if len(got) != len(rows) || !slices.Equal(have, want) {
			t.Errorf("store %q holds %d rows:\n got %q\nwant %q", name, len(got), have, want)
		}
	}
}
