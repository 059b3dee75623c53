package stream

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/semelstream/semel/codec"
	"github.com/semelstream/semel/internal/seam"
	"github.com/semelstream/semel/state"
	"github.com/semelstream/semel/stream/internal/runtime"
)

var errDisk = errors.New("disk gone")

// A breakingDisk reads nothing once it is broken.
type breakingDisk struct {
	state.Engine
	broken bool
}

func (d *breakingDisk) Get(key []byte, use func([]byte) error) (bool, error) {
	if d.broken {
		return false, errDisk
	}
	return d.Engine.Get(key, use)
}

// onBrokenDisk pushes one record through a topology whose stores cannot be
// read.
func onBrokenDisk(t *testing.T, define func(b *Builder)) error {
	t.Helper()
	r := newRig(t, define)
	sub := r.top.graph.Subs[0]
	var specs []state.Spec
	for _, s := range sub.Stores {
		specs = append(specs, runtime.StoreSpec(s))
	}
	e := &breakingDisk{Engine: state.NewMemory()}
	db, err := state.Open(e, state.Options{Stores: specs})
	r.must(err)
	task := runtime.NewTask(runtime.TaskConfig{
		ID: seam.Task{}, Sub: sub, Context: context.Background(), DB: db, App: rigApp,
		Wall: time.Now, Partitions: func(string) int32 { return 1 },
	})
	in, err := r.prog.Open(task)
	r.must(err)
	e.broken = true
	return task.Process(in, 0, encode(r, texts, rec("a", "x", 1)), 1)
}

func TestDiskThatFailsStopsWhateverThePolicySays(t *testing.T) {
	for name, define := range map[string]func(b *Builder){
		"aggregate": func(b *Builder) { b.Stream(texts).GroupByKey().Count("n", OnError(Skip)) },
		"table":     func(b *Builder) { b.Table(texts, "t", OnError(Skip)) },
		"stored": func(b *Builder) {
			b.Table(texts, "t").MapValues(func(v string) string { return v }).Stored("s", OnError(Skip))
		},
		"join": func(b *Builder) {
			in := b.Stream(texts)
			in.Join(b.Table(texts2, "t"), func(v, row string) string { return v }, OnError(Skip))
		},
		"processor that loses the error": func(b *Builder) {
			s := b.Store("s", codec.String, codec.String)
			b.Stream(texts).Process(func(c *Context[string, string], r Record[string, string]) error {
				s.In(c).Get("a")
				return errors.New("another")
			}, Uses(s), OnError(Skip))
		},
	} {
		err := onBrokenDisk(t, define)
		var f *runtime.Failure
		if !errors.As(err, &f) || !errors.Is(err, errDisk) || f.Policy == nil {
			t.Errorf("%s: got %v", name, err)
			continue
		}
		if v := f.Policy(nil, f, nil); v.Action != runtime.ActFail {
			t.Errorf("%s: a broken disk was skipped", name)
		}
	}
}

func TestKeyWithoutEncodingIsTheRecordsFault(t *testing.T) {
	bad := errors.New("no such key")
	picky := codec.Func(
		func(dst []byte, v string) ([]byte, error) {
			if v == "bad" {
				return dst, bad
			}
			return append(dst, v...), nil
		},
		func(src []byte) (string, error) { return string(src), nil })
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).GroupByKey(KeyCodec(picky)).Count("n", OnError(Skip), EmitEach()).To(intOut)
	})
	send(r, texts, rec("bad", "", 1), rec("good", "", 2))
	expect(r, intOut, "good=1@2")
}
