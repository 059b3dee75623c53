package runtime

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// What the client or a record before has left in an arena's record is gone when it
// is lent out again.
func TestARecordOfTheArenaHasNothingOfTheOneBefore(t *testing.T) {
	type key struct{}
	a := &arena{}
	before := a.record("topic", 1, 5)
	before.Headers = append(before.Headers, kgo.RecordHeader{Key: "h"})
	before.Key, before.Value = a.copy([]byte("k")), a.copy([]byte("v"))
	before.Attrs, before.ProducerEpoch, before.ProducerID, before.LeaderEpoch, before.Offset = kgo.RecordAttrs{}, 1, 2, 3, 4
	before.Context = context.WithValue(context.Background(), key{}, 1)
	before.Topic = "other"
	a.turn()
	a.ended()
	a.turn()
	r := a.record("topic", 7, 9)
	if r != before {
		t.Fatal("the record was not used again")
	}
	r.Key, r.Value = a.copy(nil), a.copy(nil)
	want := &kgo.Record{Topic: "topic", Partition: 7, Timestamp: time.UnixMilli(9), Context: context.Background(), Headers: []kgo.RecordHeader{}}
	if !reflect.DeepEqual(r, want) {
		t.Errorf("%+v\nwant %+v", r, want)
	}
}

// A record that is not needed again for long keeps no large value.
func TestAnArenaForgetsWhatIsLarge(t *testing.T) {
	a := &arena{}
	var large []*kgo.Record
	for i := range arenaRecords + 10 {
		r := a.record("topic", 0, 1)
		r.Key = a.copy([]byte("k"))
		if i%2 == 0 {
			r.Value = a.copy(make([]byte, arenaBytes))
			large = append(large, r)
		}
	}
	a.turn()
	a.ended()
	for i, r := range large {
		if r.Value != nil || r.Key != nil {
			t.Fatalf("large record %d has kept its bytes", i)
		}
	}
	a.turn()
	small := a.record("topic", 0, 1)
	small.Value = a.copy([]byte("v"))
	a.turn()
	a.ended()
	if small.Value == nil {
		t.Error("a small value was cleared, which costs")
	}
}
