package stream

import (
	"testing"

	"github.com/semelstream/semel/stream/internal/runtime"
)

func TestRepartitionPutsEachKeyInItsOwnTask(t *testing.T) {
	const full = "app-byword-repartition"
	tasks := map[string]int32{}
	r := newRigOf(t, func(b *Builder) {
		s := b.Stream(texts).SelectKey(func(_, v string) string { return v }).Repartition("byword", Partitions(5))
		s.n.use(func(o *opener) (port[string, string], error) {
			return portFunc[string, string](func(r Record[string, string]) error {
				tasks[r.Key] = o.task.ID().Partition
				return nil
			}), nil
		})
		s.To(out)
	}, map[string]int32{full: 5, "texts": 2})
	for _, v := range []string{"x", "y", "z", "w", "foobar"} {
		send(r, texts, rec("k"+v, v, 1).WithHeader("h", nil))
		if want := partitionOf([]byte(v), 5); tasks[v] != want {
			t.Errorf("%s is in task %d, want %d", v, tasks[v], want)
		}
	}
	got := received(r, out)
	if len(got) != 5 || text(got[0]) != "x=x@1" || len(got[0].Headers) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestRepartitionDropsRecordsWithoutAKey(t *testing.T) {
	r := newRig(t, func(b *Builder) { b.Stream(texts).Repartition("rp", OnError(Skip)).To(out) })
	send(r, texts, unkeyed[string]("n", 1), del[string]("a", 2), rec("", "v", 3))
	expect(r, out, "a=-@2", "=v@3")
	r.dropped("rp-repartition-sink: no key")
}

func TestRepartitionInFrontOfALeftJoinKeepsRecordsWithoutAKey(t *testing.T) {
	r := newRig(t, func(b *Builder) { repartition(b.Stream(texts), "rp", settings{keepNoKey: true}).To(out) })
	send(r, texts, unkeyed[string]("n", 1))
	expect(r, out, "-=n@1")
	r.dropped()
}

func TestWhatFollowsARepartitionIsNotRepartitionedAgain(t *testing.T) {
	top, err := Build(func(b *Builder) {
		b.Stream(texts).SelectKey(func(_, v string) string { return v }).Repartition("rp").GroupByKey().Count("n").To(intOut)
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(top.graph.Subs) != 2 {
		t.Errorf("graph is\n%s", top.Describe())
	}
}

// A portFunc is a port for tests.
type portFunc[K, V any] func(Record[K, V]) error

func (f portFunc[K, V]) push(r Record[K, V]) error { return f(r) }

var _ runtime.Program = program{}
