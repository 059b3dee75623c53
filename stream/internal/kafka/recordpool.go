package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool keeps the slices of records that a client fetches for its next
// fetches: without it they are two fifths of all that is allocated. A slice comes
// back when the worker has recycled all its records; one of which some never come,
// because nobody reads their partition any more, is the garbage collector's. Keys
// and values are not part of it.
type recordPool struct{ free sync.Pool }

var _ kgo.PoolRecords = (*recordPool)(nil)

// GetRecords returns a slice for n records, or a shorter one, which the client
// replaces.
func (p *recordPool) GetRecords(int) []kgo.Record {
	if s, ok := p.free.Get().(*[]kgo.Record); ok {
		return *s
	}
	return nil
}

// PutRecords takes a slice back. What its records referred to is forgotten, but of
// those that the client itself left out.
func (p *recordPool) PutRecords(s []kgo.Record) { p.free.Put(&s) }
