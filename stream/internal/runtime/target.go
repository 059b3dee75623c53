package runtime

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/state"
)

// target is a store as the changelog's restorer fills it.
type target struct{ part *state.Part }

func (t target) Position() int64 { return t.part.Position() }

func (t target) Reset() error { return t.part.Reset() }

func (t target) Apply(recs []*kgo.Record, next int64) error {
	return t.part.Apply(func(yield func(state.Row) bool) {
		for _, r := range recs {
			if r.Key == nil {
				continue // of a source topic: such a record is no row
			}
			if !yield(state.Row{Key: r.Key, Value: r.Value, Time: r.Timestamp.UnixMilli()}) {
				return
			}
		}
	}, next)
}
