package stream

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/semelstream/semel/stream/internal/runtime"
)

func failing(b *Builder, opts ...Option) {
	b.Stream(texts).MapValues(func(v string) string {
		if strings.HasPrefix(v, "bad") {
			panic("oops")
		}
		return v
	}, append(opts, Name("work"))...).To(out)
}

func TestSkipLeavesTheRecordOut(t *testing.T) {
	r := newRig(t, func(b *Builder) { failing(b, OnError(Skip)) })
	send(r, texts, rec("a", "bad", 1), rec("a", "good", 2))
	expect(r, out, "a=good@2")
}

func TestFailIsTheDefault(t *testing.T) {
	r := newRig(t, func(b *Builder) { failing(b) })
	if feed(r, texts, rec("a", "bad", 1)) == nil {
		t.Error("no failure")
	}
	r = newRig(t, func(b *Builder) { failing(b, OnError(Fail)) })
	if feed(r, texts, rec("a", "bad", 1)) == nil {
		t.Error("no failure")
	}
}

func TestOperatorsPolicyComesBeforeTheApps(t *testing.T) {
	r := newRig(t, func(b *Builder) { failing(b, OnError(Fail)) })
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	if feed(r, texts, rec("a", "bad", 1)) == nil {
		t.Error("the app's policy was asked")
	}
	r = newRig(t, func(b *Builder) { failing(b) })
	r.policy = ErrorPolicy(Skip).runtime(rigApp)
	send(r, texts, rec("a", "bad", 1))
}

func TestDeadLetterIsTheRecordAsItWasRead(t *testing.T) {
	r := newRig(t, func(b *Builder) { failing(b, OnError(DeadLetter("dead"))) })
	send(r, texts, rec("a", "good", 0), rec("k", "bad one", 7).WithHeader("own", []byte("x")))
	received(r, out)
	if len(r.out) != 1 {
		t.Fatalf("%d dead letters", len(r.out))
	}
	d := r.out[0]
	if d.Topic != "dead" || string(d.Key) != "k" || string(d.Value) != "bad one" || d.Timestamp.UnixMilli() != 7 {
		t.Errorf("dead letter is %v", d)
	}
	var got strings.Builder
	for _, h := range d.Headers {
		v := string(h.Value)
		if h.Key == "__streams.errors.stacktrace" {
			if !strings.Contains(v, "errors_test.go") {
				t.Errorf("the stack does not show the function:\n%s", v)
			}
			v = "..."
		}
		fmt.Fprintf(&got, "%s=%s\n", h.Key, v)
	}
	const want = `own=x
__streams.errors.exception=*errors.errorString
__streams.errors.message=panic: oops
__streams.errors.stacktrace=...
__streams.errors.topic=texts
__streams.errors.partition=0
__streams.errors.offset=1
__semel.errors.app=app
__semel.errors.task=0_0
__semel.errors.operator=work
__semel.errors.op=function
__semel.errors.time=7
`
	if got.String() != want {
		t.Errorf("headers are\n%s", got.String())
	}
}

func TestPoliciesSeeTheFailure(t *testing.T) {
	var seen *Failure
	policy := func(f *Failure) Action { seen = f; return Skip(f) }
	r := newRig(t, func(b *Builder) { failing(b, OnError(policy)) })
	send(r, texts, rec("k", "bad", 7).WithHeader("own", nil))
	switch f := seen; {
	case f == nil:
		t.Fatal("it was not asked")
	case f.Op != OpFunction, f.Operator != "work", f.Task != "0_0", f.Topic != "texts", f.Partition != 0, f.Offset != 0,
		string(f.Key) != "k", string(f.Value) != "bad", f.Time.UnixMilli() != 7, len(f.Headers) != 1, len(f.Stack) == 0:
		t.Errorf("it saw %+v", f)
	}
	const want = `SEMEL-FUNCTION: operator "work" failed (function, task 0_0, record texts/0 at offset 0): panic: oops; ` +
		`mend the function, or let OnError skip the record or send it to a dead-letter topic`
	if got := seen.Error(); got != want {
		t.Errorf("error is %q", got)
	}
}

func TestPoliciesThatCannotBeCarriedOutFail(t *testing.T) {
	f := &runtime.Failure{Op: runtime.OpTimer, Operator: "p", Err: errors.New("bad")}
	task := runtime.NewTask(runtime.TaskConfig{})
	for name, p := range map[string]ErrorPolicy{
		"a dead letter of a timer":    DeadLetter("dead"),
		"a dead letter without topic": DeadLetter(""),
		"a panic":                     func(*Failure) Action { panic("oops") },
	} {
		if v := p.runtime("app")(task, f, nil); v.Action != runtime.ActFail {
			t.Errorf("%s: %+v", name, v)
		}
	}
}
