package stream

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// written are the partitions of what was written, in order.
func written(r *rig) (partitions []int32) {
	for _, k := range r.out {
		partitions = append(partitions, k.Partition)
	}
	return partitions
}

func TestSinkPartitionsByMurmur2OfTheKey(t *testing.T) {
	r := newRigOf(t, func(b *Builder) { b.Stream(texts).To(out) }, map[string]int32{"out": 7})
	var want []int32
	for _, k := range []string{"a", "foobar", "", "21"} {
		send(r, texts, rec(k, "v", 1), del[string](k, 2))
		p := partitionOf([]byte(k), 7)
		want = append(want, p, p)
	}
	if got := written(r); !slices.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
}

func TestSinkSpreadsRecordsWithoutAKey(t *testing.T) {
	r := newRigOf(t, func(b *Builder) { b.Stream(texts).To(out) }, map[string]int32{"out": 3})
	for range 6 {
		send(r, texts, unkeyed[string]("v", 1))
	}
	got := written(r)
	slices.Sort(got)
	if want := []int32{0, 0, 1, 1, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
}

func TestSinkAsksTheTopicForPartitions(t *testing.T) {
	byLength := out.PartitionBy(func(r Record[string, string], n int) int { return len(r.Value) % n })
	r := newRigOf(t, func(b *Builder) { b.Stream(texts).To(byLength) }, map[string]int32{"out": 3})
	send(r, texts, rec("a", "1234", 1), unkeyed[string]("12", 2), del[string]("a", 3))
	if got, want := written(r), []int32{1, 2, 0}; !slices.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
}

func TestMulticastCopiesOrDrops(t *testing.T) {
	many := out.Multicast(func(r Record[string, string], n int) []int {
		switch r.Value {
		case "all":
			return []int{0, 1, 2}
		case "none":
			return nil
		}
		return []int{n - 1}
	})
	r := newRigOf(t, func(b *Builder) { b.Stream(texts).To(many, Name("to")) }, map[string]int32{"out": 3})
	send(r, texts, rec("a", "all", 1), rec("a", "none", 2), rec("a", "last", 3))
	if got, want := written(r), []int32{0, 1, 2, 2}; !slices.Equal(got, want) {
		t.Errorf("partitions %v, want %v", got, want)
	}
	expect(r, out, "a=all@1", "a=all@1", "a=all@1", "a=last@3")
	r.dropped("to: no partition")
}

func TestPartitionOutOfRangeIsTheRecordsFailure(t *testing.T) {
	for _, p := range []int{-1, 3} {
		wild := out.PartitionBy(func(Record[string, string], int) int { return p })
		r := newRigOf(t, func(b *Builder) { b.Stream(texts).To(wild, Name("to")) }, map[string]int32{"out": 3})
		err := feed(r, texts, rec("a", "v", 1))
		if f, ok := err.(*runtime.Failure); !ok || f.Op != runtime.OpFunction || f.Operator != "to" || !strings.Contains(err.Error(), "chose partition") {
			t.Errorf("partition %d: failed with %v", p, err)
		}
	}
}

func TestUnencodableRecordsFailAtTheSink(t *testing.T) {
	bad := errors.New("bad")
	fussy := codec.Func(
		func(dst []byte, v string) ([]byte, error) {
			if v == "bad" {
				return dst, bad
			}
			return append(dst, v...), nil
		},
		func(src []byte) (string, error) { return string(src), nil })
	to := NewTopic("out", fussy, fussy)
	r := newRig(t, func(b *Builder) { b.Stream(texts).To(to, Name("to")) })
	for _, k := range []Record[string, string]{rec("a", "bad", 1), rec("bad", "v", 2)} {
		err := feed(r, texts, k)
		if f, ok := err.(*runtime.Failure); !ok || f.Op != runtime.OpEncode || f.Operator != "to" || !errors.Is(err, bad) {
			t.Errorf("failed with %v", err)
		}
	}
	send(r, texts, rec("a", "v", 3))
	expect(r, to, "a=v@3")
}

func TestSinkWithoutItsTopicDoesNotOpen(t *testing.T) {
	top, err := Build(func(b *Builder) { b.Stream(texts).To(out, Name("to")) })
	if err != nil {
		t.Fatal(err)
	}
	task := runtime.NewTask(runtime.TaskConfig{Sub: top.graph.Subs[0], App: rigApp, Partitions: func(string) int32 { return 0 }})
	_, err = top.withApp(rigApp).Open(task)
	if !errors.Is(err, runtime.ErrNoTopic) || !strings.Contains(err.Error(), `sink "to"`) || !strings.Contains(err.Error(), `"out"`) {
		t.Errorf("opened with %v", err)
	}
}

func TestRouteWritesWhereEachRecordSays(t *testing.T) {
	r := newRigOf(t, func(b *Builder) {
		b.Stream(texts).Route(func(r Record[string, string]) Topic[string, string] {
			switch {
			case r.NoValue:
				return out2
			case r.Value == "nowhere":
				return out.Named("nowhere")
			case r.Value == "bare":
				return Topic[string, string]{Name: "bare"}
			}
			return out
		}, Name("route"))
	}, map[string]int32{"nowhere": 0})
	send(r, texts, rec("a", "v", 1), del[string]("a", 2), rec("a", "w", 3))
	expect(r, out, "a=v@1", "a=w@3")
	expect(r, out2, "a=-@2")
	if err := feed(r, texts, rec("a", "nowhere", 4)); !errors.Is(err, runtime.ErrNoTopic) || err.(*runtime.Failure).Op != runtime.OpProduce {
		t.Errorf("a topic that does not exist: %v", err)
	}
	if err := feed(r, texts, rec("a", "bare", 5)); err == nil {
		t.Error("a topic without codecs was written to")
	}
}
