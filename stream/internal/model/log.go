package model

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// An entry of a log is a record, or a marker when rec is nil.
type entry struct {
	rec     *kgo.Record
	aborted bool      // set when the abort marker is written
	at      time.Time // of a marker
}

// An opened is a transaction in a log whose marker is still to come.
type opened struct {
	pid   int64
	first int64 // its first offset, -1 while nothing was produced
	seq   int   // records produced so far: what a repeated request is known by
	base  int64 // where the last request's records begin
}

// A log is one partition. Offsets begin at start; entry i has offset start+i.
type log struct {
	entries []entry
	start   int64
	open    []opened // few: one per transaction that writes here
}

func (l *log) end() int64 { return l.start + int64(len(l.entries)) }

// stable is the last stable offset.
func (l *log) stable() int64 {
	s := l.end()
	for _, o := range l.open {
		if o.first >= 0 {
			s = min(s, o.first)
		}
	}
	return s
}

func (l *log) find(pid int64) *opened {
	for i := range l.open {
		if l.open[i].pid == pid {
			return &l.open[i]
		}
	}
	return nil
}

// append copies the records: they belong to who sent them.
func (l *log) append(recs []*kgo.Record) (base int64) {
	base = l.end()
	for i, r := range copyRecords(recs) {
		r.Offset, r.LeaderEpoch = base+int64(i), 0
		l.entries = append(l.entries, entry{rec: r})
	}
	return base
}

// produce appends within the transaction of pid. A request whose records are
// there already is a repeated one and changes nothing; it is told the offset
// of the last one, which is what the only one waiting for an answer asked.
func (l *log) produce(pid int64, epoch int16, seq int, recs []*kgo.Record) (base int64) {
	o := l.find(pid)
	if seq < o.seq {
		return o.base
	}
	o.base = l.append(recs)
	for _, e := range l.entries[o.base-l.start:] {
		e.rec.ProducerID, e.rec.ProducerEpoch = pid, epoch
	}
	if o.first < 0 {
		o.first = o.base
	}
	o.seq += len(recs)
	return o.base
}

// mark ends the transaction of pid.
func (l *log) mark(pid int64, commit bool, now time.Time) {
	o := l.find(pid)
	if !commit && o.first >= 0 {
		for i := max(o.first-l.start, 0); i < int64(len(l.entries)); i++ {
			if e := &l.entries[i]; e.rec != nil && e.rec.ProducerID == pid {
				e.aborted = true
			}
		}
	}
	l.open = slices.DeleteFunc(l.open, func(o opened) bool { return o.pid == pid })
	l.entries = append(l.entries, entry{at: now})
}

// read is a read_committed fetch: at most max records, in copies, and the
// position behind them, past markers and aborted records.
func (l *log) read(from int64, max int) (recs []*kgo.Record, next int64, err error) {
	if from < l.start || from > l.end() {
		return nil, from, kerr.OffsetOutOfRange
	}
	stable := l.stable()
	for next = from; next < stable && len(recs) < max; next++ {
		if e := l.entries[next-l.start]; e.rec != nil && !e.aborted {
			recs = append(recs, e.rec)
		}
	}
	// The reader may write into its records, never into their bytes.
	own := make([]kgo.Record, len(recs))
	for i, r := range recs {
		own[i] = *r
		recs[i] = &own[i]
	}
	return recs, next, nil
}

// since is the first offset of a record or a marker not older than t, or the
// end.
func (l *log) since(t time.Time) int64 {
	for i, e := range l.entries {
		at := e.at
		if e.rec != nil {
			at = e.rec.Timestamp
		}
		if !at.Before(t) {
			return l.start + int64(i)
		}
	}
	return l.end()
}

func (l *log) purge(before int64) {
	if n := min(before, l.end()) - l.start; n > 0 {
		l.entries = slices.Clone(l.entries[n:])
		l.start += n
	}
}

// copyRecords makes records that share nothing with recs, in three
// allocations.
func copyRecords(recs []*kgo.Record) []*kgo.Record {
	size := 0
	for _, r := range recs {
		size += len(r.Key) + len(r.Value)
	}
	arena := make([]byte, 0, size)
	own := func(b []byte) []byte {
		if b == nil {
			return nil
		}
		n := len(arena)
		arena = append(arena, b...)
		return arena[n:len(arena):len(arena)]
	}
	vals := make([]kgo.Record, len(recs))
	out := make([]*kgo.Record, len(recs))
	for i, r := range recs {
		vals[i] = kgo.Record{
			Key: own(r.Key), Value: own(r.Value),
			Topic: r.Topic, Partition: r.Partition, Timestamp: r.Timestamp.Truncate(time.Millisecond),
			ProducerID: -1, ProducerEpoch: -1,
		}
		for _, h := range r.Headers {
			vals[i].Headers = append(vals[i].Headers, kgo.RecordHeader{Key: h.Key, Value: slices.Clone(h.Value)})
		}
		out[i] = &vals[i]
	}
	return out
}
