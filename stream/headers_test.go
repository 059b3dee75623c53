package stream

import (
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestHeadersHaveTheClientsLayout(t *testing.T) {
	ours, theirs := reflect.TypeFor[Header](), reflect.TypeFor[kgo.RecordHeader]()
	if ours.Size() != theirs.Size() || ours.NumField() != theirs.NumField() {
		t.Fatalf("%v and %v differ in size or fields", ours, theirs)
	}
	for i := range ours.NumField() {
		a, b := ours.Field(i), theirs.Field(i)
		if a.Type != b.Type || a.Offset != b.Offset {
			t.Errorf("field %d is %s %v at %d, the client's is %s %v at %d", i, a.Name, a.Type, a.Offset, b.Name, b.Type, b.Offset)
		}
	}
}

func TestHeadersTravelBothWays(t *testing.T) {
	in := []kgo.RecordHeader{{Key: "a", Value: []byte("1")}, {Key: "b"}}
	h := fromKafka(in)
	if len(h) != 2 || h[0].Name != "a" || string(h[0].Value) != "1" || h[1].Name != "b" || h[1].Value != nil {
		t.Errorf("read %v", h)
	}
	back := toKafka(h)
	if !slices.EqualFunc(in, back, func(a, b kgo.RecordHeader) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) }) {
		t.Errorf("came back as %v", back)
	}
	if fromKafka(nil) != nil || toKafka(nil) != nil {
		t.Error("no headers are not nil")
	}
}
