package runtime

import (
	"context"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	arenaRecords = 1024
	arenaBytes   = 256 << 10
)

// An arena lends out records and bytes for the open transaction, and keeps
// those of the one that is ending until it has ended. The producer owns what it
// was given until then, so that after a transaction of unknown outcome the arena
// must be left behind.
type arena struct {
	space
	ending space
}

// turn begins the next transaction.
func (a *arena) turn() { a.space, a.ending = a.ending, a.space }

// ended takes back what the transaction had that is ending.
func (a *arena) ended() { a.ending.reset() }

// A space is the memory of one transaction.
type space struct {
	records [][]kgo.Record
	ri, rn  int // chunk and used records in it
	chunks  [][]byte
	ci      int
	large   bool // some bytes are in no chunk
}

// record returns a record for topic, which has nothing else in it.
//
// A record that was used before is cleared field by field, and its pointers are
// left alone where they do not change: each one that is written has its price
// while the garbage collector runs, which is often.
func (a *space) record(topic string, partition int32, ms int64) *kgo.Record {
	if a.ri == len(a.records) {
		a.records = append(a.records, make([]kgo.Record, arenaRecords))
	}
	r := &a.records[a.ri][a.rn]
	if a.rn++; a.rn == arenaRecords {
		a.ri, a.rn = a.ri+1, 0
	}
	if r.Topic != topic {
		r.Topic = topic
	}
	if len(r.Headers) > 0 {
		r.Headers = r.Headers[:0]
	}
	if r.Context != background {
		r.Context = background
	}
	r.Partition, r.Timestamp = partition, time.UnixMilli(ms)
	r.Attrs, r.ProducerEpoch, r.ProducerID, r.LeaderEpoch, r.Offset = kgo.RecordAttrs{}, 0, 0, 0, 0
	return r
}

// background is what the client gives a record without a context.
var background = context.Background()

// copy returns a copy of b that lives until reset; nil stays nil.
func (a *space) copy(b []byte) []byte {
	if b == nil {
		return nil
	}
	if len(b) > arenaBytes/4 {
		a.large = true
		return append([]byte{}, b...)
	}
	if a.ci == len(a.chunks) {
		a.chunks = append(a.chunks, make([]byte, 0, arenaBytes))
	}
	c := a.chunks[a.ci]
	if len(c)+len(b) > cap(c) {
		a.ci++
		return a.copy(b)
	}
	n := len(c)
	c = append(c, b...)
	a.chunks[a.ci] = c
	return c[n:len(c):len(c)]
}

// reset takes everything back.
func (a *space) reset() {
	if a.large {
		a.dropLarge()
	}
	a.ri, a.rn, a.ci = 0, 0, 0
	for i := range a.chunks {
		a.chunks[i] = a.chunks[i][:0]
	}
}

// dropLarge forgets what is in no chunk: the records that have it may not be
// needed again for long.
func (a *space) dropLarge() {
	a.large = false
	for i := range min(a.ri+1, len(a.records)) {
		for j := range a.records[i] {
			r := &a.records[i][j]
			r.Key, r.Value = nil, nil
		}
	}
}
