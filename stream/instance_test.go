package stream

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/semelstream/semel/internal/assert"
	"github.com/semelstream/semel/stream/internal/graph"
	"github.com/semelstream/semel/stream/internal/runtime"
)

// hang adds a node of its own after s and hands its opening to a test.
func hang[K, V any](s Stream[K, V], name string, open func(o *opener, n *graph.Node) (port[K, V], error)) *graph.Node {
	n := s.n.b.add("test", settings{name: name}, s.n.node)
	s.n.use(func(o *opener) (port[K, V], error) { return open(o, n) })
	return n
}

// ignore is a port that does nothing.
var ignore = portFunc[string, string](func(Record[string, string]) error { return nil })

func TestAPanicIsTheFailureOfTheOperatorWhoseFunctionRan(t *testing.T) {
	boom := func(step string) { panic(errors.New(step)) }
	at := "" // where to panic
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).
			Filter(func(_, v string) bool {
				if at == "filter" {
					boom(at)
				}
				return true
			}, Name("filter")).
			FlatMap(func(k, v string, emit func(string, string)) {
				emit(k, v)
				if at == "flat" { // after what follows has run
					boom(at)
				}
			}, Name("flat")).
			MapValues(func(v string) string {
				if at == "map" {
					boom(at)
				}
				return v
			}, Name("map")).
			To(out.PartitionBy(func(Record[string, string], int) int {
				if at == "sink" {
					boom(at)
				}
				return 0
			}), Name("sink"))
	})
	for _, at = range []string{"filter", "flat", "map", "sink"} {
		err := feed(r, texts, rec("a", "v", 1))
		f, ok := err.(*runtime.Failure)
		if !ok || f.Operator != at || f.Op != runtime.OpFunction || len(f.Stack) == 0 || f.Err.Error() != "panic: "+at {
			t.Errorf("%s: failed with %v", at, err)
		}
	}
	at = ""
	send(r, texts, rec("a", "v", 2))
	expect(r, out, "a=v@2")
}

func TestAFailureKeepsItsOperatorOnTheWayUp(t *testing.T) {
	bad := errors.New("bad")
	r := newRig(t, func(b *Builder) {
		s := b.Stream(texts)
		inner := hang(s, "inner", func(o *opener, n *graph.Node) (port[string, string], error) { return ignore, nil })
		hang(s, "outer", func(o *opener, n *graph.Node) (port[string, string], error) {
			return portFunc[string, string](func(Record[string, string]) error {
				err := o.fail(inner, runtime.OpEncode, bad)
				return o.fail(n, runtime.OpFunction, fmt.Errorf("wrapped by a user: %w", err))
			}), nil
		})
	})
	err := feed(r, texts, rec("a", "v", 1))
	if f, ok := err.(*runtime.Failure); !ok || f.Operator != "inner" || f.Op != runtime.OpEncode || f.Err != bad {
		t.Errorf("failed with %v", err)
	}
}

func TestAFailedOpeningSaysWhichOperator(t *testing.T) {
	for name, open := range map[string]func(o *opener, n *graph.Node) (port[string, string], error){
		"an error": func(o *opener, n *graph.Node) (port[string, string], error) { return nil, errors.New("p: bad") },
		"a panic": func(o *opener, n *graph.Node) (port[string, string], error) {
			o.enter(n)
			panic("bad")
		},
	} {
		top, err := Build(func(b *Builder) { hang(b.Stream(texts), "p", open) })
		if err != nil {
			t.Fatal(err)
		}
		task := runtime.NewTask(runtime.TaskConfig{Sub: top.graph.Subs[0], App: rigApp})
		in, err := top.withApp(rigApp).Open(task)
		if err == nil || in != nil || !strings.Contains(err.Error(), "p: ") || !strings.Contains(err.Error(), "bad") {
			t.Errorf("%s: opened %v with %v", name, in, err)
		}
	}
}

func TestFlushRunsInTopologicalOrder(t *testing.T) {
	var ran []string
	r := newRig(t, func(b *Builder) {
		s := b.Stream(texts)
		// Opened depth first: last is opened before first.
		last := b.add("test", settings{name: "last"})
		first := hang(s, "first", func(o *opener, n *graph.Node) (port[string, string], error) {
			o.onFlush(last, func() error { ran = append(ran, "last"); return nil })
			o.onFlush(n, func() error { ran = append(ran, "first"); return nil })
			return ignore, nil
		})
		b.link(first, last)
		hang(s, "beside", func(o *opener, n *graph.Node) (port[string, string], error) {
			o.onFlush(n, func() error { ran = append(ran, "beside"); return nil })
			return ignore, nil
		})
	})
	r.must(r.sorted()[0].in.Flush())
	if want := []string{"first", "last", "beside"}; !slices.Equal(ran, want) {
		t.Errorf("ran %q, want %q", ran, want)
	}
}

func TestAFailedFlushIsTheOperators(t *testing.T) {
	for name, f := range map[string]func() error{
		"an error": func() error { return errors.New("bad") },
		"a panic":  func() error { panic("bad") },
	} {
		r := newRig(t, func(b *Builder) {
			hang(b.Stream(texts), "p", func(o *opener, n *graph.Node) (port[string, string], error) {
				o.onFlush(n, f)
				return ignore, nil
			})
		})
		err := r.sorted()[0].in.Flush()
		if f, ok := err.(*runtime.Failure); !ok || f.Operator != "p" {
			t.Errorf("%s: flush failed with %v", name, err)
		}
	}
}

func TestKeptTimesComeBack(t *testing.T) {
	time, loads := int64(runtime.NoTime), 0
	r := newRig(t, func(b *Builder) {
		hang(b.Stream(texts), "p", func(o *opener, n *graph.Node) (port[string, string], error) {
			o.keepTime("p", func() int64 { return time }, func(ms int64) { time = ms; loads++ })
			return ignore, nil
		})
	})
	r.restart()
	if loads != 0 {
		t.Errorf("a time that there was none of came back: %d", time)
	}
	time = 7
	r.commit()
	time = 9
	r.abort()
	if time != 7 || loads != 1 {
		t.Errorf("after %d loads it is %d, want 7", loads, time)
	}
}

func TestTimersFireInOrderOnceEach(t *testing.T) {
	var fired []string
	r := newRig(t, func(b *Builder) {
		hang(b.Stream(texts), "p", func(o *opener, n *graph.Node) (port[string, string], error) {
			add := func(name string, s Schedule) *timer {
				tm := newTimer(s, 0, func(now int64) error {
					fired = append(fired, fmt.Sprintf("%s@%d", name, now))
					return nil
				})
				o.addTimer(n, tm)
				return tm
			}
			add("ten", Schedule{Every: 10 * time.Millisecond})
			seven := add("seven", Schedule{Every: 7 * time.Millisecond})
			add("wall", Schedule{Every: time.Second, WallClock: true})
			add("canceller", Schedule{Every: 1000 * time.Millisecond, From: time.UnixMilli(100)}).call = func(int64) error {
				seven.cancelled = true
				return nil
			}
			return ignore, nil
		})
	})
	step := func(want ...string) {
		t.Helper()
		if !slices.Equal(fired, want) {
			t.Errorf("fired %q, want %q", fired, want)
		}
		fired = nil
	}
	send(r, texts, rec("a", "v", 5))
	step("ten@5", "seven@5")
	send(r, texts, rec("a", "v", 31))
	step("seven@31", "ten@31") // seven was due at 7, ten at 10
	r.must(r.advance(2500 * time.Millisecond))
	step("wall@2500")
	send(r, texts, rec("a", "v", 100))
	step("seven@100", "ten@100") // due before the canceller
	send(r, texts, rec("a", "v", 200))
	step("ten@200")
	if next := r.sorted()[0].in.NextStream(); next != 210 {
		t.Errorf("next at %d", next)
	}
}

func TestATimerCancelledByOneBeforeItDoesNotFire(t *testing.T) {
	fired := 0
	r := newRig(t, func(b *Builder) {
		hang(b.Stream(texts), "p", func(o *opener, n *graph.Node) (port[string, string], error) {
			later := newTimer(Schedule{Every: time.Second, From: time.UnixMilli(5)}, 0, func(int64) error { fired++; return nil })
			o.addTimer(n, later)
			o.addTimer(n, newTimer(Schedule{Every: time.Second}, 0, func(int64) error { later.cancelled = true; return nil }))
			return ignore, nil
		})
	})
	send(r, texts, rec("a", "v", 20)) // both are due
	if fired != 0 {
		t.Error("a cancelled timer fired")
	}
}

func TestAFailedTimerIsTheOperators(t *testing.T) {
	for name, f := range map[string]func(int64) error{
		"an error": func(int64) error { return errors.New("bad") },
		"a panic":  func(int64) error { panic("bad") },
	} {
		r := newRig(t, func(b *Builder) {
			hang(b.Stream(texts), "p", func(o *opener, n *graph.Node) (port[string, string], error) {
				o.addTimer(n, newTimer(Schedule{Every: time.Second}, 0, f))
				return ignore, nil
			})
		})
		err := feed(r, texts, rec("a", "v", 1))
		if f, ok := err.(*runtime.Failure); !ok || f.Operator != "p" || f.Op != runtime.OpTimer {
			t.Errorf("%s: failed with %v", name, err)
		}
	}
}

func TestCloseClosesAllInSpiteOfErrors(t *testing.T) {
	closed := 0
	r := newRig(t, func(b *Builder) {
		hang(b.Stream(texts), "p", func(o *opener, n *graph.Node) (port[string, string], error) {
			o.onClose(func() error { closed++; return errors.New("one") })
			o.onClose(func() error { closed++; panic("two") })
			o.onClose(func() error { closed++; return nil })
			return ignore, nil
		})
	})
	err := r.sorted()[0].in.Close(false)
	if closed != 3 || err == nil || !strings.Contains(err.Error(), "one") || !strings.Contains(err.Error(), "two") {
		t.Errorf("closed %d with %v", closed, err)
	}
}

func TestAViolatedAssertionIsNeverSkipped(t *testing.T) {
	r := newRig(t, func(b *Builder) {
		b.Stream(texts).Peek(func(string, string) { assert.That(false, "of ours") }, OnError(Skip))
	})
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	if err := feed(r, texts, rec("a", "v", 1)); err == nil || !strings.Contains(err.Error(), "of ours") {
		t.Errorf("failed with %v", err)
	}
}
