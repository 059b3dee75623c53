package main

import (
	"maps"
	"testing"

	"github.com/semelstream/semel/stream/streamtest"
)

func TestWordsAreCountedWhateverTheirCase(t *testing.T) {
	d := streamtest.New(t, Topology, streamtest.Partitions(3))
	d.Put(Lines, "1", "To be or not")
	d.Put(Lines, "2", "to BE")
	d.Put(Lines, "3", "")
	want := map[string]int64{"to": 2, "be": 2, "or": 1, "not": 1}
	if got := d.Last(Counts); !maps.Equal(got, want) {
		t.Errorf("counts = %v, want %v", got, want)
	}
}

func TestACrashChangesNoCount(t *testing.T) {
	d := streamtest.New(t, Topology)
	d.Put(Lines, "1", "to be")
	d.CrashAt(streamtest.UnknownCommit)
	d.LoseDisk()
	d.Put(Lines, "2", "to go")
	want := map[string]int64{"to": 2, "be": 1, "go": 1}
	if got := d.Last(Counts); !maps.Equal(got, want) {
		t.Errorf("counts = %v, want %v", got, want)
	}
}
