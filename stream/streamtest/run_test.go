package streamtest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/semelstream/semel/stream"
	"github.com/semelstream/semel/stream/streamtest"
)

// panicOf is what f panics with.
func panicOf(f func()) (text string) {
	defer func() {
		if r := recover(); r != nil {
			text = fmt.Sprint(r)
		}
	}()
	f()
	return ""
}

func TestRunPanicsWhereNewFailsTheTest(t *testing.T) {
	copies := lines.Named("copies")
	for _, test := range []struct {
		name   string
		define func(*stream.Builder)
		script func(*streamtest.Driver)
		want   string
	}{
		{"a topology with problems", func(b *stream.Builder) { b.Stream(lines).Filter(nil).To(copies) }, nil, "the topology has problems"},
		{"an application that stops", func(b *stream.Builder) {
			b.Stream(lines).MapValues(func(string) string { panic("oops") }).To(copies)
		}, func(d *streamtest.Driver) { d.Put(lines, "a", "x") }, "the application stopped"},
		{"a topic that is not there", wordCount, func(d *streamtest.Driver) { d.Put(copies, "a", "x") }, `no topic "copies"`},
	} {
		var went bool
		got := panicOf(func() {
			streamtest.Run(test.define, func(d *streamtest.Driver) {
				test.script(d)
				went = true
			})
		})
		if !strings.Contains(got, test.want) {
			t.Errorf("%s: panic %q, want one with %q", test.name, got, test.want)
		}
		if went {
			t.Errorf("%s: the script went on", test.name)
		}
	}
}
