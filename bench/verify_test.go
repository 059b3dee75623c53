package main

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

func counted(key string, n uint64) *kgo.Record {
	return &kgo.Record{Key: []byte(key), Value: binary.BigEndian.AppendUint64(nil, n)}
}

func TestWrongCountsAreFound(t *testing.T) {
	want := map[string]int64{"a": 3, "b": 1}
	for _, c := range []struct {
		name string
		recs []*kgo.Record
		bad  string // part of the complaint; empty: right
	}{
		{"right", []*kgo.Record{counted("a", 1), counted("b", 1), counted("a", 3)}, ""},
		{"one lost", []*kgo.Record{counted("a", 2), counted("b", 1)}, "1 lost"},
		{"a key lost", []*kgo.Record{counted("a", 3)}, "1 lost"},
		{"one doubled", []*kgo.Record{counted("a", 4), counted("b", 1)}, "1 doubled"},
		{"one lost and one doubled", []*kgo.Record{counted("a", 2), counted("b", 2)}, "1 lost, 1 doubled"},
		{"an unknown key", []*kgo.Record{counted("a", 3), counted("b", 1), counted("c", 1)}, "1 unknown"},
		{"a count again", []*kgo.Record{counted("a", 3), counted("a", 3), counted("b", 1)}, "1 counts that did not grow"},
		{"no count", []*kgo.Record{counted("a", 3), counted("b", 1), {Key: []byte("a")}}, "1 that are none"},
	} {
		got := tally{last: map[string]int64{}}
		for _, r := range c.recs {
			got.add(r)
		}
		err := got.compare(want)
		if (err != nil) != (c.bad != "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.bad)
		}
	}
}

func TestWrongCopiesAreFound(t *testing.T) {
	a, b := &kgo.Record{Key: []byte("k"), Value: value(1, 100)}, &kgo.Record{Key: []byte("k"), Value: value(2, 100)}
	src := &source{units: 2, sum: digest(a) + digest(b)}
	for _, c := range []struct {
		name string
		recs []*kgo.Record
		ok   bool
	}{
		{"right", []*kgo.Record{a, b}, true},
		{"in another order", []*kgo.Record{b, a}, true},
		{"one lost", []*kgo.Record{a}, false},
		{"one doubled", []*kgo.Record{a, b, b}, false},
		{"one lost and one doubled", []*kgo.Record{b, b}, false},
		{"with another key", []*kgo.Record{a, {Key: []byte("l"), Value: b.Value}}, false},
	} {
		var sum uint64
		for _, r := range c.recs {
			sum += digest(r)
		}
		if err := compareCopies(int64(len(c.recs)), sum, src); (err == nil) != c.ok {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
}
