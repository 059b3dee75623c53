package changelog

import (
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/semelstream/semel/internal/assert"
)

// An Out is where a [Writer]'s records go: the open transaction.
type Out interface {
	// Log puts a record with these parts into the transaction. Key and value
	// are the caller's again afterwards, headers are never changed; a nil value
	// stays null. The record returned has its Offset when the transaction has
	// committed.
	Log(tp TP, key, value []byte, ms int64, headers []kgo.RecordHeader) (*kgo.Record, error)
}

// A Writer logs the changes of one store's partition and knows how far its
// changelog is when they are committed.
//
//	for each changed key { w.Log(out, key, value, ms) }
//	... the transaction commits ...
//	if next, ok := w.Committed(); ok { the store's position is next }
//
// After a transaction that did not commit, or of which nobody knows, the store
// goes back to what it has stored and is restored: then comes a new Writer.
type Writer struct {
	tp      TP
	headers []kgo.RecordHeader // of each row
	last    *kgo.Record        // in the open transaction
	next    int64
}

// NewWriter makes a Writer of a partition of a changelog. Each row that it
// writes has the headers, and deletes have none: Kafka Streams says in one which
// format the rows of a store are in. A restore reads records with and without.
func NewWriter(tp TP, headers ...kgo.RecordHeader) *Writer { return &Writer{tp: tp, headers: headers} }

// TP is the partition that the Writer writes.
func (w *Writer) TP() TP { return w.tp }

// Log adds a change to the open transaction; a nil value deletes. Each key is
// logged once, with its last value. ms is the time of the row.
func (w *Writer) Log(out Out, key, value []byte, ms int64) error {
	headers := w.headers
	if value == nil {
		headers = nil
	}
	r, err := out.Log(w.tp, key, value, ms, headers)
	if err != nil {
		return err
	}
	w.last = r
	return nil
}

// Committed is told that the transaction has committed. It returns the
// position after the last change, where a marker follows that a restore passes
// over, and false if there was none.
func (w *Writer) Committed() (next int64, ok bool) {
	if w.last == nil {
		return 0, false
	}
	next, w.last = w.last.Offset+1, nil
	if next <= w.next { // asked first, since the arguments would be allocated
		assert.That(false, "changelog %s: position %d after %d", w.tp, next, w.next)
	}
	w.next = next
	return next, true
}
